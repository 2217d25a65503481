//! Which batches a window holds, and in what order (decisions 011, 012, 018).

use crate::http::app::TestApp;
use crate::http::sample::batch;

const TIMES: [(&str, &str); 4] = [
    ("a", "2026-01-01T00:00:00Z"),
    ("b", "2026-01-02T00:00:00Z"),
    ("c", "2026-01-02T00:00:00.000001Z"),
    ("d", "2026-01-03T00:00:00Z"),
];

async fn nursery() -> (TestApp, String) {
    let app = TestApp::start().await;
    let client = app.org("Nursery").await;
    app.import("Nursery", &TIMES.map(|(id, date)| batch(id, date))).await;
    let token = app.token(&client).await;
    (app, token)
}

async fn assert_window(query: &str, ids: &[&str]) {
    let (app, token) = nursery().await;
    assert_eq!(app.v1_ids(query, &token).await, ids, "v1 {query}");
    assert_eq!(app.v2_ids(query, &token).await, ids, "v2 {query}");
}

/// Interface section 4: without parameters, all batches of the organisation.
#[tokio::test]
async fn without_parameters_all_batches_are_returned() {
    assert_window("", &["a", "b", "c", "d"]).await;
}

/// Interface section 4: on or after; decision 011.
#[tokio::test]
async fn the_start_is_inclusive() {
    assert_window("?start_date=2026-01-02T00:00:00Z", &["b", "c", "d"]).await;
    assert_window("?start_date=2026-01-03T00:00:00Z", &["d"]).await;
}

/// Interface section 4: on or before; decision 011.
#[tokio::test]
async fn the_end_is_inclusive() {
    assert_window("?end_date=2026-01-02T00:00:00Z", &["a", "b"]).await;
    assert_window("?end_date=2026-01-01T00:00:00Z", &["a"]).await;
}

/// Decision 011: at the stored precision, microseconds.
#[tokio::test]
async fn the_filters_compare_microseconds() {
    assert_window("?start_date=2026-01-02T00:00:00.000001Z", &["c", "d"]).await;
    assert_window("?start_date=2026-01-02T00:00:00.0000001Z", &["c", "d"]).await;
    assert_window("?end_date=2026-01-02T00:00:00.0000009Z", &["a", "b"]).await;
    assert_window("?end_date=2026-01-02T00:00:00.000001Z", &["a", "b", "c"]).await;
}

/// Decision 011.
#[tokio::test]
async fn both_ends_together_are_a_window() {
    let query = "?start_date=2026-01-02T00:00:00Z&end_date=2026-01-02T00:00:00.000001Z";
    assert_window(query, &["b", "c"]).await;
    assert_window("?start_date=2026-01-02T00:00:00Z&end_date=2026-01-02T00:00:00Z", &["b"]).await;
}

/// Decision 012.
#[tokio::test]
async fn a_reversed_window_is_an_empty_answer() {
    assert_window("?start_date=2026-01-03T00:00:00Z&end_date=2026-01-01T00:00:00Z", &[]).await;
}

/// Decision 012.
#[tokio::test]
async fn an_empty_window_is_an_empty_answer_with_its_envelope() {
    let (app, token) = nursery().await;
    let query = "?start_date=2030-01-01T00:00:00Z";
    assert_eq!(app.get(&format!("/v1/batches{query}"), &token).await.text(), "[]");
    let page = app.get(&format!("/v2/batches{query}"), &token).await;
    assert_eq!(page.text(), r#"{"data":[],"next_token":null}"#);
}

/// Decision 018: creation date, then id, ascending.
#[tokio::test]
async fn batches_come_by_creation_date_then_by_id() {
    let app = TestApp::start().await;
    let client = app.org("Nursery").await;
    let (early, late) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
    let shuffled = [batch("b", late), batch("z", early), batch("c", early), batch("a", late)];
    app.import("Nursery", &shuffled).await;
    let token = app.token(&client).await;
    assert_eq!(app.v1_ids("", &token).await, ["c", "z", "a", "b"]);
}

/// Decision 018: bytes, not locale.
#[tokio::test]
async fn ids_are_ordered_by_their_bytes() {
    let app = TestApp::start().await;
    let client = app.org("Nursery").await;
    let mut ids = ["b", "B", "a", "Z", "10", "9", "ä", "_", "-", "é", "日"];
    app.import("Nursery", &ids.map(|id| batch(id, "2026-01-01T00:00:00Z"))).await;
    ids.sort_unstable();
    let token = app.token(&client).await;
    assert_eq!(app.v1_ids("", &token).await, ids);
    assert_eq!(app.v2_ids("", &token).await, ids);
}
