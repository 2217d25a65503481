//! Which dates are taken, and what is said of the others (decisions 013, 014).

use serde_json::Value;

use crate::http::app::TestApp;
use crate::http::reply::{fault, naive, no_datetime};
use crate::http::sample::batch;

/// An organisation with one batch at 08:00:00, and a token for it.
async fn nursery() -> (TestApp, String) {
    let app = TestApp::start().await;
    let client = app.org("Nursery").await;
    app.import("Nursery", &[batch("b", "2026-01-31T08:00:00Z")]).await;
    let token = app.token(&client).await;
    (app, token)
}

/// A date as a client should send it.
fn escaped(date: &str) -> String {
    date.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

async fn assert_taken(date: &str) {
    let (app, token) = nursery().await;
    for query in [format!("?start_date={date}"), format!("?end_date={date}")] {
        assert_eq!(app.v1_ids(&query, &token).await, ["b"], "{query}");
        assert_eq!(app.v2_ids(&query, &token).await, ["b"], "{query}");
    }
}

/// Each of the dates is refused so, as start and as end, by both versions.
async fn assert_refused(dates: &[&str], why: fn(&str) -> Value) {
    let (app, token) = nursery().await;
    for date in dates {
        for field in ["start_date", "end_date"] {
            for version in ["v1", "v2"] {
                let reply = app.get(&format!("/{version}/batches?{field}={}", escaped(date)), &token).await;
                assert_eq!(reply.status, 422, "{date}");
                reply.is_invalid_query(&[why(field)]);
            }
        }
    }
}

fn other_offset(field: &str) -> Value {
    let msg = "Timezone offset of 0 required: end the date with Z or +00:00";
    fault("timezone_offset", "query", field, msg)
}

/// Interface section 2; decision 013.
#[tokio::test]
async fn a_datetime_that_ends_with_z_is_taken() {
    assert_taken("2026-01-31T08:00:00Z").await;
    assert_taken(&escaped("2026-01-31T08:00:00Z")).await;
}

/// Interface section 2; decision 013.
#[tokio::test]
async fn the_offset_of_utc_is_taken_in_place_of_z() {
    assert_taken("2026-01-31T08:00:00%2B00:00").await;
    assert_taken(&escaped("2026-01-31T08:00:00+00:00")).await;
}

/// Decision 013: the commonest slip of people typing URLs.
#[tokio::test]
async fn an_unescaped_plus_is_read_as_the_plus_it_was() {
    assert_taken("2026-01-31T08:00:00+00:00").await;
    assert_taken("2026-01-31T08:00:00%2000:00").await;
}

/// Decision 013: what JavaScript's `toISOString()` prints, and finer.
#[tokio::test]
async fn a_fraction_of_one_to_nine_digits_is_taken() {
    for fraction in [".0", ".000", ".000000", ".000000000"] {
        assert_taken(&format!("2026-01-31T08:00:00{fraction}Z")).await;
    }
}

/// Interface sections 2 and 7; decision 014.
#[tokio::test]
async fn a_naive_datetime_is_refused() {
    assert_refused(&["2026-01-31T08:00:00", "2026-01-31T08:00:00.5"], naive).await;
}

/// Decisions 013, 014.
#[tokio::test]
async fn a_date_alone_is_refused_for_its_missing_timezone() {
    assert_refused(&["2026-01-31"], naive).await;
}

/// Decisions 013, 014.
#[tokio::test]
async fn an_offset_other_than_that_of_utc_is_refused_as_such() {
    let dates = ["2026-01-31T08:00:00+01:00", "2026-01-31T08:00:00-05:30", "2026-01-31T08:00:00-00:00"];
    assert_refused(&dates, other_offset).await;
}

/// Interface section 7; decisions 013, 014.
#[tokio::test]
async fn all_else_is_no_datetime() {
    let dates = [
        "",
        "x",
        "1769846400",
        "2026-01-31t08:00:00Z",
        "2026-01-31T08:00:00z",
        "2026-01-31 08:00:00Z",
        "2026-01-31T08:00Z",
        "2026-01-31T24:00:00Z",
        "2026-01-31T23:59:60Z",
        "0000-01-01T00:00:00Z",
        "2026-02-29T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-01-31T08:00:00.Z",
        "2026-01-31T08:00:00.1234567890Z",
        "2026-01-31T08:00:00+0000",
        "2026-01-31T08:00:00Z ",
        "\"2026-01-31T08:00:00Z\"",
        "now",
    ];
    assert_refused(&dates, no_datetime).await;
}

/// Decision 013: the first and the last instant there are.
#[tokio::test]
async fn the_widest_window_is_taken() {
    let (app, token) = nursery().await;
    let query = "?start_date=0001-01-01T00:00:00Z&end_date=9999-12-31T23:59:59.999999999Z";
    assert_eq!(app.v1_ids(query, &token).await, ["b"]);
}

/// Decision 014: one entry for each field at fault, in the interface's order.
#[tokio::test]
async fn both_dates_at_fault_are_told_at_once_and_in_order() {
    let (app, token) = nursery().await;
    for version in ["v1", "v2"] {
        let path = format!("/{version}/batches?end_date=2026-01-31&start_date=x");
        let reply = app.get(&path, &token).await;
        reply.is_invalid_query(&[no_datetime("start_date"), naive("end_date")]);
    }
}
