//! No caller ever sees a batch of another organisation.

use proptest::prelude::*;
use proptest::strategy::ValueTree;

use super::*;

const ORGS: usize = 100;

struct Tenant {
    name: String,
    token: String,
    cursor: String,
    etag: String,
}

/// Organisations with batches of the same ids and dates, but different names.
async fn tenants(app: &TestApp) -> Vec<Tenant> {
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
        tenants.push(Tenant { name, token, cursor, etag });
    }
    tenants
}

#[track_caller]
fn assert_only(reply: &Reply, name: &str) {
    assert_eq!(reply.status, 200, "{}", reply.text());
    let batches = reply.batches();
    assert!(!batches.is_empty() && batches.iter().all(|batch| batch["batch_name"] == name), "{batches:?}");
}

/// Requests with one tenant's token and another's cursor and ETag.
async fn mix(app: &TestApp, own: &Tenant, other: &Tenant) {
    let page = app.get(&format!("/v2/batches?next_token={}", other.cursor), &own.token).await;
    if own.name == other.name {
        assert_only(&page, &own.name);
    } else {
        page.is_invalid_query(&[bad_cursor()]);
        let conditional = app.get_with("/v2/batches", &own.token, "if-none-match", &other.etag).await;
        assert_only(&conditional, &own.name);
    }
    for path in PATHS {
        assert_only(&app.get(path, &own.token).await, &own.name);
    }
}

/// Contract section 5.
#[tokio::test]
async fn a_hundred_organisations_never_see_each_others_batches() {
    let app = TestApp::paged(1).await;
    let tenants = tenants(&app).await;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for _ in 0..200 {
        let (own, other) = (0..ORGS, 0..ORGS).new_tree(&mut runner).unwrap().current();
        mix(&app, &tenants[own], &tenants[other]).await;
    }
    for tenant in &tenants {
        mix(&app, tenant, tenant).await;
    }
}

/// Contract section 5.
#[tokio::test]
async fn an_import_into_one_organisation_does_not_affect_others() {
    let app = TestApp::start().await;
    let (one, two) = (app.org("One").await, app.org("Two").await);
    app.import("One", &[named("a", "2026-01-01T00:00:00Z", "One")]).await;
    let (one, two) = (app.token(&one).await, app.token(&two).await);
    let etag = app.get("/v2/batches", &one).await.header("etag").unwrap();
    assert_eq!(app.get("/v2/batches", &two).await.ids(), [""; 0]);
    app.import("Two", &[named("b", "2026-01-01T00:00:00Z", "Two")]).await;
    assert_eq!(app.get_with("/v2/batches", &one, "if-none-match", &etag).await.status, 304);
    assert_eq!(app.get("/v2/batches", &two).await.ids(), ["b"]);
}
