//! Date ranges and the order of batches (decisions 011, 012, 018).

use super::*;

/// Contract section 4; decisions 011, 012: both ends are inclusive, at a precision of microseconds.
#[tokio::test]
async fn a_date_range_includes_both_ends() {
    let batches = [
        ("a", "2026-01-01T00:00:00Z"),
        ("b", "2026-01-02T00:00:00Z"),
        ("c", "2026-01-02T00:00:00.000001Z"),
        ("d", "2026-01-03T00:00:00Z"),
    ];
    let (app, _, token) = TestApp::filled(1_000, &batches.map(|(id, date)| batch(id, date))).await;
    for (query, ids) in [
        ("", "abcd"),
        ("?start_date=2026-01-02T00:00:00Z", "bcd"),
        ("?start_date=2026-01-03T00:00:00Z", "d"),
        ("?end_date=2026-01-02T00:00:00Z", "ab"),
        ("?end_date=2026-01-01T00:00:00Z", "a"),
        ("?start_date=2026-01-02T00:00:00.000001Z", "cd"),
        ("?start_date=2026-01-02T00:00:00.0000001Z", "cd"),
        ("?end_date=2026-01-02T00:00:00.0000009Z", "ab"),
        ("?end_date=2026-01-02T00:00:00.000001Z", "abc"),
        ("?start_date=2026-01-02T00:00:00Z&end_date=2026-01-02T00:00:00.000001Z", "bc"),
        ("?start_date=2026-01-02T00:00:00Z&end_date=2026-01-02T00:00:00Z", "b"),
        ("?start_date=2026-01-03T00:00:00Z&end_date=2026-01-01T00:00:00Z", ""),
    ] {
        assert_eq!(app.v1_ids(query, &token).await.concat(), ids, "v1 {query}");
        assert_eq!(app.v2_ids(query, &token).await.concat(), ids, "v2 {query}");
    }
    let empty = "?start_date=2030-01-01T00:00:00Z";
    assert_eq!(app.get(&format!("/v1/batches{empty}"), &token).await.text(), "[]");
    let page = app.get(&format!("/v2/batches{empty}"), &token).await;
    assert_eq!(page.text(), r#"{"data":[],"next_token":null}"#);
}

/// Decision 018: by creation date, then by the bytes of the id.
#[tokio::test]
async fn batches_are_ordered_by_creation_date_and_id() {
    let (early, late) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
    let mut ids = ["b", "B", "a", "Z", "10", "9", "ä", "_", "-", "é", "日"];
    let mut batches = vec![batch("y", late), batch("x", late)];
    batches.extend(ids.map(|id| batch(id, early)));
    let (app, _, token) = TestApp::filled(1_000, &batches).await;
    ids.sort_unstable();
    let expected = [&ids[..], &["x", "y"]].concat();
    assert_eq!(app.v1_ids("", &token).await, expected);
    assert_eq!(app.v2_ids("", &token).await, expected);
}
