//! Pages of v2: together they are v1, whatever their size (decisions 018, 019, 020).

use batchscan_model::Batch;
use batchscan_server::config::Config;
use proptest::prelude::*;
use tokio::runtime::Runtime;

use crate::http::app::{TestApp, instant};
use crate::http::reply::Reply;
use crate::http::sample::{at, many};

/// Interface section 4, rules 1 to 3.
#[tokio::test]
async fn next_token_leads_from_page_to_page_and_is_null_on_the_last() {
    let app = TestApp::paged(2).await;
    let client = app.org("Nursery").await;
    app.import("Nursery", &many(5)).await;
    let token = app.token(&client).await;
    let first = app.get("/v2/batches", &token).await;
    assert_eq!(first.ids(), ["b00000", "b00001"]);
    let second = follow(&app, &first, &token).await;
    assert_eq!(second.ids(), ["b00002", "b00003"]);
    let last = follow(&app, &second, &token).await;
    assert_eq!(last.ids(), ["b00004"]);
    assert!(last.json()["next_token"].is_null() && last.text().ends_with(",\"next_token\":null}"));
    assert_eq!(app.get("/v2/batches", &token).await.ids(), ["b00000", "b00001"], "no token: the first page");
}

async fn follow(app: &TestApp, page: &Reply, token: &str) -> Reply {
    app.get(&format!("/v2/batches?next_token={}", page.next_token().unwrap()), token).await
}

/// Interface section 4, rule 3: no empty page comes after a full one.
#[tokio::test]
async fn a_last_page_that_is_full_says_that_it_is_the_last() {
    let app = TestApp::paged(3).await;
    let client = app.org("Nursery").await;
    app.import("Nursery", &many(3)).await;
    let page = app.get("/v2/batches", &app.token(&client).await).await;
    assert_eq!((page.ids().len(), page.next_token()), (3, None));
}

/// Interface section 8; decision 019.
#[tokio::test]
async fn a_page_holds_a_thousand_batches_unless_the_operator_says_otherwise() {
    let app = TestApp::start().await;
    let client = app.org("Nursery").await;
    app.import("Nursery", &many(1_000)).await;
    let token = app.token(&client).await;
    let page = app.get("/v2/batches", &token).await;
    assert_eq!((page.ids().len(), page.next_token()), (1_000, None));
    assert_eq!(page.ids(), app.v1_ids("", &token).await, "the same batches in both versions");
    app.import("Nursery", &many(1_001)).await;
    let page = app.get("/v2/batches", &token).await;
    assert_eq!((page.ids().len(), page.next_token().is_some()), (1_000, true));
    assert_eq!(app.v2_ids("", &token).await.len(), 1_001);
}

/// Decision 020: neither truncates nor refuses.
#[tokio::test]
async fn v1_returns_all_above_a_thousand() {
    let app = TestApp::start().await;
    let client = app.org("Nursery").await;
    app.import("Nursery", &many(2_345)).await;
    let token = app.token(&client).await;
    let ids = app.v1_ids("", &token).await;
    assert_eq!(ids.len(), 2_345);
    assert_eq!(ids, app.v2_ids("", &token).await);
}

/// Interface section 9: apart from the envelope the versions behave identically.
#[tokio::test]
async fn the_objects_of_both_versions_are_the_same_bytes() {
    let app = TestApp::paged(7).await;
    let client = app.org("Nursery").await;
    app.import("Nursery", &many(20)).await;
    let token = app.token(&client).await;
    let mut joined = Vec::new();
    let mut page = app.get("/v2/batches", &token).await;
    loop {
        let text = page.text();
        let data = text.strip_prefix("{\"data\":[").unwrap().rsplit_once("],\"next_token\":").unwrap().0;
        joined.push(data.to_owned());
        if page.next_token().is_none() {
            break;
        }
        page = follow(&app, &page, &token).await;
    }
    assert_eq!(app.get("/v1/batches", &token).await.text(), format!("[{}]", joined.join(",")));
}

/// Batches with many ties: few instants, ids in no order.
fn with_ties() -> impl Strategy<Value = Vec<Batch>> {
    let ids = proptest::collection::btree_set("[a-zA-Z0-9äß]{1,6}", 0..60);
    (ids, proptest::collection::vec(0i64..6, 60)).prop_map(|(ids, seconds)| {
        let first = instant("2026-01-01T00:00:00Z");
        ids.iter().zip(seconds).map(|(id, second)| at(id, first.plus_secs(second))).collect()
    })
}

/// The ids that lie within the seconds, in the order of decision 018.
fn expected(batches: &[Batch], from: i64, to: i64) -> Vec<String> {
    let first = instant("2026-01-01T00:00:00Z");
    let mut within: Vec<&Batch> = batches
        .iter()
        .filter(|batch| (first.plus_secs(from)..=first.plus_secs(to)).contains(&batch.batch_creation_date))
        .collect();
    within.sort_by_key(|batch| batch.position());
    within.iter().map(|batch| batch.batch_id.as_str().to_owned()).collect()
}

async fn assert_pages_make_the_whole(batches: &[Batch], from: i64, to: i64) {
    let app = TestApp::paged(1).await;
    let client = app.org("Nursery").await;
    app.import("Nursery", batches).await;
    let token = app.token(&client).await;
    let expected = expected(batches, from, to);
    let query = format!("?start_date=2026-01-01T00:00:0{from}Z&end_date=2026-01-01T00:00:0{to}Z");
    assert_eq!(app.v1_ids(&query, &token).await, expected);
    assert_eq!(app.v2_ids(&query, &token).await, expected, "pages of 1");
    for page_rows in [2, 7, 1_000] {
        let node = app.node(Config { page_rows, ..Config::default() }).await;
        assert_eq!(node.v2_ids(&query, &token).await, expected, "pages of {page_rows}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, failure_persistence: None, ..ProptestConfig::default() })]

    /// Decisions 011, 018, 019; interface section 8.
    #[test]
    fn pages_of_any_size_make_the_whole_in_order(batches in with_ties(), from in 0i64..4, length in 0i64..6) {
        Runtime::new().unwrap().block_on(assert_pages_make_the_whole(&batches, from, from + length));
    }
}
