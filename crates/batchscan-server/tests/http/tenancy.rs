//! Tenants: whatever is sent, nobody sees a batch of another organisation.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use tokio::runtime::Runtime;

use crate::http::app::TestApp;
use crate::http::reply::{Reply, bad_cursor};
use crate::http::sample::named;

const ORGS: usize = 100;

/// What one organisation holds.
struct Caller {
    name: String,
    token: String,
    cursor: String,
    etag: String,
}

/// A hundred organisations with batches of the same ids and dates, told apart by their names alone.
async fn tenants(app: &TestApp) -> Vec<Caller> {
    let mut tenants = Vec::new();
    for n in 0..ORGS {
        let name = format!("Nursery {n}");
        let client = app.org(&name).await;
        let batches =
            [1, 2, 3].map(|day| named(&format!("b{day}"), &format!("2026-01-0{day}T00:00:00Z"), &name));
        app.import(&name, &batches).await;
        let token = app.token(&client).await;
        let first = app.get("/v2/batches", &token).await;
        assert_only(&first, &name);
        let (cursor, etag) = (first.next_token().unwrap(), first.header("etag").unwrap());
        tenants.push(Caller { name, token, cursor, etag });
    }
    tenants
}

#[track_caller]
fn assert_only(reply: &Reply, name: &str) {
    assert_eq!(reply.status, 200, "{}", reply.text());
    let batches = reply.batches();
    assert!(!batches.is_empty() && batches.iter().all(|batch| batch["batch_name"] == name), "{batches:?}");
}

/// One caller with whatever belongs to another.
async fn mix(app: &TestApp, own: &Caller, other: &Caller) {
    let page = app.get(&format!("/v2/batches?next_token={}", other.cursor), &own.token).await;
    if own.name == other.name {
        assert_only(&page, &own.name);
    } else {
        page.is_invalid_query(&[bad_cursor()]);
        let held = app.get_with("/v2/batches", &own.token, "if-none-match", &other.etag).await;
        assert_only(&held, &own.name);
    }
    assert_only(&app.get("/v1/batches", &own.token).await, &own.name);
    assert_only(&app.get("/v2/batches", &own.token).await, &own.name);
}

/// Interface section 5: the batches returned are those of the organisation the credentials belong to.
#[test]
fn a_hundred_organisations_never_see_each_others_batches() {
    Runtime::new().unwrap().block_on(async {
        let app = TestApp::paged(1).await;
        let tenants = tenants(&app).await;
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        for _ in 0..200 {
            let pair = (0..ORGS, 0..ORGS).new_tree(&mut runner).unwrap().current();
            mix(&app, &tenants[pair.0], &tenants[pair.1]).await;
        }
        for tenant in &tenants {
            mix(&app, tenant, tenant).await;
        }
    });
}

/// Interface section 5: a change of one organisation is none of another's business.
#[tokio::test]
async fn an_import_of_one_organisation_leaves_the_others_as_they_are() {
    let app = TestApp::start().await;
    let (one, two) = (app.org("One").await, app.org("Two").await);
    app.import("One", &[named("a", "2026-01-01T00:00:00Z", "One")]).await;
    let (one, two) = (app.token(&one).await, app.token(&two).await);
    let (first, empty) = (app.get("/v2/batches", &one).await, app.get("/v2/batches", &two).await);
    assert_eq!(empty.ids(), [""; 0]);
    app.import("Two", &[named("b", "2026-01-01T00:00:00Z", "Two")]).await;
    let held = app.get_with("/v2/batches", &one, "if-none-match", &first.header("etag").unwrap()).await;
    assert_eq!(held.status, 304);
    assert_eq!(app.get("/v2/batches", &two).await.ids(), ["b"]);
}
