//! Repeated, unknown and misnamed query parameters (decisions 016, 017, 024).

use crate::http::*;

const WRONG_CURSOR_NAMES: [&str; 6] = ["cursor", "page_token", "nextToken", "page", "offset", "after"];

/// Decisions 014, 016.
#[tokio::test]
async fn a_repeated_parameter_is_rejected_even_with_the_same_value() {
    let (app, token) = TestApp::nursery().await;
    let date = "2026-01-01T00:00:00Z";
    for field in ["start_date", "end_date"] {
        for path in PATHS {
            let reply = app.get(&format!("{path}?{field}={date}&{field}={date}"), &token).await;
            reply.is_invalid_query(&[repeated("query", field)]);
        }
    }
    let next = app.get("/v2/batches", &token).await.next_token().unwrap();
    let reply = app.get(&format!("/v2/batches?next_token={next}&next_token={next}"), &token).await;
    reply.is_invalid_query(&[repeated("query", "next_token")]);
    let both = app.get("/v1/batches?end_date=y&start_date=x&end_date=", &token).await;
    both.is_invalid_query(&[not_a_datetime("start_date"), repeated("query", "end_date")]);
}

/// Decision 017.
#[tokio::test]
async fn unknown_parameters_are_ignored() {
    let (app, token) = TestApp::nursery().await;
    for query in ["limit=1", "x", "=", "&&&", "Start_Date=x", "start_date%00=x", "sort=-batch_id", "a=1&a=2"]
    {
        assert_eq!(app.v1_ids(&format!("?{query}"), &token).await.len(), 5, "{query}");
        assert_eq!(app.v2_ids(&format!("?{query}"), &token).await.len(), 5, "{query}");
    }
    let with_body = app.request("GET", "/v1/batches").bearer_auth(&token).body("start_date=x");
    assert_eq!(Reply::to(with_body).await.ids().len(), 5);
}

/// Decisions 014, 017.
#[tokio::test]
async fn a_cursor_with_a_wrong_name_is_rejected() {
    let (app, token) = TestApp::nursery().await;
    let next = app.get("/v2/batches", &token).await.next_token().unwrap();
    let msg = "Value error, the cursor goes into the parameter next_token";
    for name in WRONG_CURSOR_NAMES {
        for value in [next.as_str(), "2", ""] {
            let reply = app.get(&format!("/v2/batches?{name}={value}"), &token).await;
            reply.is_invalid_query(&[invalid("value_error", "query", name, msg)]);
        }
    }
}

/// Decisions 017, 024.
#[tokio::test]
async fn cursors_are_ignored_on_v1() {
    let (app, token) = TestApp::nursery().await;
    let next = app.get("/v2/batches", &token).await.next_token().unwrap();
    for value in [next.as_str(), "garbage", "", "a&next_token=b"] {
        assert_eq!(app.v1_ids(&format!("?next_token={value}"), &token).await.len(), 5, "{value}");
    }
    for name in WRONG_CURSOR_NAMES {
        assert_eq!(app.v1_ids(&format!("?{name}=2"), &token).await.len(), 5, "{name}");
    }
}
