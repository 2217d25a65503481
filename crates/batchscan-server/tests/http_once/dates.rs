//! Which dates are valid (decisions 013, 014).

use serde_json::Value;

use crate::http::*;

const DATE: &str = "2026-01-31T08:00:00Z";

/// The entry of a 422 for this field.
type Reason = fn(&str) -> Value;

async fn nursery() -> (TestApp, String) {
    let (app, _, token) = TestApp::filled(1_000, &[batch("b", DATE)]).await;
    (app, token)
}

fn escape(date: &str) -> String {
    date.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

fn other_offset(field: &str) -> Value {
    let msg = "Timezone offset of 0 required: end the date with Z or +00:00";
    invalid("timezone_offset", "query", field, msg)
}

/// Contract section 2; decision 013: also with an unescaped `+`, which arrives as a space.
#[tokio::test]
async fn utc_datetimes_are_accepted() {
    let (app, token) = nursery().await;
    let mut dates = vec![DATE.to_owned(), escape(DATE), escape("2026-01-31T08:00:00+00:00")];
    for end in ["%2B00:00", "+00:00", "%2000:00", ".0Z", ".000Z", ".000000Z", ".000000000Z"] {
        dates.push(format!("2026-01-31T08:00:00{end}"));
    }
    for date in dates {
        for query in [format!("?start_date={date}"), format!("?end_date={date}")] {
            assert_eq!(app.v1_ids(&query, &token).await, ["b"], "{query}");
            assert_eq!(app.v2_ids(&query, &token).await, ["b"], "{query}");
        }
    }
    let widest = "?start_date=0001-01-01T00:00:00Z&end_date=9999-12-31T23:59:59.999999999Z";
    assert_eq!(app.v1_ids(widest, &token).await, ["b"]);
}

/// Contract sections 2 and 7; decisions 013, 014.
#[tokio::test]
async fn other_dates_are_rejected_with_the_reason() {
    let (app, token) = nursery().await;
    let cases: [(Reason, &[&str]); 3] = [
        (naive, &["2026-01-31T08:00:00", "2026-01-31T08:00:00.5", "2026-01-31"]),
        (
            other_offset,
            &["2026-01-31T08:00:00+01:00", "2026-01-31T08:00:00-05:30", "2026-01-31T08:00:00-00:00"],
        ),
        (
            not_a_datetime,
            &[
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
            ],
        ),
    ];
    for (reason, dates) in cases {
        for date in dates {
            for field in ["start_date", "end_date"] {
                for path in PATHS {
                    let reply = app.get(&format!("{path}?{field}={}", escape(date)), &token).await;
                    assert_eq!(reply.status, 422, "{date}");
                    reply.is_invalid_query(&[reason(field)]);
                }
            }
        }
    }
}

/// Decision 014: one entry per field, in the contract's order.
#[tokio::test]
async fn two_invalid_dates_are_reported_together() {
    let (app, token) = nursery().await;
    for path in PATHS {
        let reply = app.get(&format!("{path}?end_date=2026-01-31&start_date=x"), &token).await;
        reply.is_invalid_query(&[not_a_datetime("start_date"), naive("end_date")]);
    }
}
