//! Query parameters: repeated ones, unknown ones, misnamed ones (decisions 016, 017, 024).

use crate::http::app::TestApp;
use crate::http::reply::{fault, no_datetime, repeated};

/// Decision 016.
#[tokio::test]
async fn a_repeated_date_is_refused_even_with_the_same_value() {
    let (app, token) = TestApp::nursery().await;
    let date = "2026-01-01T00:00:00Z";
    for field in ["start_date", "end_date"] {
        for version in ["v1", "v2"] {
            let path = format!("/{version}/batches?{field}={date}&{field}={date}");
            app.get(&path, &token).await.is_invalid_query(&[repeated("query", field)]);
        }
    }
}

/// Decisions 014, 016.
#[tokio::test]
async fn a_field_that_is_repeated_and_malformed_is_one_entry() {
    let (app, token) = TestApp::nursery().await;
    let reply = app.get("/v1/batches?end_date=y&start_date=x&end_date=", &token).await;
    reply.is_invalid_query(&[no_datetime("start_date"), repeated("query", "end_date")]);
}

/// Decision 016.
#[tokio::test]
async fn a_repeated_cursor_is_refused() {
    let (app, token) = TestApp::nursery().await;
    let next = app.get("/v2/batches", &token).await.next_token().unwrap();
    let reply = app.get(&format!("/v2/batches?next_token={next}&next_token={next}"), &token).await;
    reply.is_invalid_query(&[repeated("query", "next_token")]);
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
}

/// Decisions 014, 017.
#[tokio::test]
async fn a_cursor_under_a_wrong_name_is_told_the_right_one() {
    let (app, token) = TestApp::nursery().await;
    let next = app.get("/v2/batches", &token).await.next_token().unwrap();
    let msg = "Value error, the cursor goes into the parameter next_token";
    for name in ["cursor", "page_token", "nextToken", "page", "offset", "after"] {
        for value in [next.as_str(), "2", ""] {
            let reply = app.get(&format!("/v2/batches?{name}={value}"), &token).await;
            reply.is_invalid_query(&[fault("value_error", "query", name, msg)]);
        }
    }
}

/// Decision 017: v1 has no cursor to misname.
#[tokio::test]
async fn the_wrong_names_of_a_cursor_are_ignored_on_v1() {
    let (app, token) = TestApp::nursery().await;
    for name in ["cursor", "page_token", "nextToken", "page", "offset", "after"] {
        assert_eq!(app.v1_ids(&format!("?{name}=2"), &token).await.len(), 5, "{name}");
    }
}

/// Decision 024.
#[tokio::test]
async fn next_token_on_v1_is_ignored() {
    let (app, token) = TestApp::nursery().await;
    let next = app.get("/v2/batches", &token).await.next_token().unwrap();
    for value in [next.as_str(), "garbage", "", "a&next_token=b"] {
        assert_eq!(app.v1_ids(&format!("?next_token={value}"), &token).await.len(), 5, "{value}");
    }
}

/// Interface section 4: parameters go into the query. Those in a body are none.
#[tokio::test]
async fn a_get_with_a_body_is_answered_by_its_query() {
    let (app, token) = TestApp::nursery().await;
    let request = app.request("GET", "/v1/batches").bearer_auth(&token).body("start_date=x");
    assert_eq!(crate::http::reply::Reply::to(request).await.ids().len(), 5);
}
