//! ETags and `If-None-Match` (decision 031).

use std::collections::BTreeSet;

use crate::http::app::TestApp;
use crate::http::reply::Reply;
use crate::http::sample::{many, named};
use crate::http::wire::Wire;

const PATHS: [&str; 2] = ["/v1/batches", "/v2/batches"];

async fn etag(app: &TestApp, path: &str, token: &str) -> String {
    app.get(path, token).await.header("etag").unwrap()
}

async fn holding(app: &TestApp, path: &str, token: &str, etags: &str) -> Reply {
    app.get_with(path, token, "if-none-match", etags).await
}

/// Decision 031.
#[tokio::test]
async fn an_answer_says_how_it_may_be_kept() {
    let (app, token) = TestApp::nursery().await;
    for path in PATHS {
        let reply = app.get(path, &token).await;
        assert_eq!(reply.header("cache-control").as_deref(), Some("private, no-cache"), "{path}");
        assert_eq!(reply.header("vary").as_deref(), Some("Authorization, Accept-Encoding"), "{path}");
        let etag = reply.header("etag").unwrap();
        assert!(etag.starts_with("W/\"") && etag.ends_with('"'), "{etag}");
    }
}

/// Decision 031.
#[tokio::test]
async fn unchanged_data_is_a_304_without_a_body() {
    let (app, token) = TestApp::nursery().await;
    for path in PATHS {
        let etag = etag(&app, path, &token).await;
        let reply = holding(&app, path, &token, &etag).await;
        assert_eq!((reply.status, reply.body.len()), (304, 0), "{path}");
        assert_eq!(reply.header("etag"), Some(etag));
        assert_eq!(reply.header("cache-control").as_deref(), Some("private, no-cache"));
        assert_eq!(reply.header("vary").as_deref(), Some("Authorization, Accept-Encoding"));
        assert_eq!(reply.header("content-type"), None);
    }
}

/// Decision 031; RFC 9110 §8.6: a length of 0 would be that of another answer.
#[tokio::test]
async fn a_304_claims_no_content_length() {
    let (app, token) = TestApp::nursery().await;
    for path in PATHS {
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\nif-none-match: *\r\n\r\n"
        );
        let reply = Wire::ask(&app, request).await;
        assert_eq!((reply.status, reply.header("content-length")), (304, None), "{path}");
    }
}

/// Decision 031; RFC 9110 §13.1.2: weak comparison, lists, and `*`.
#[tokio::test]
async fn held_etags_are_compared_weakly_one_by_one_or_all_at_once() {
    let (app, token) = TestApp::nursery().await;
    for path in PATHS {
        let etag = etag(&app, path, &token).await;
        let strong = etag.trim_start_matches("W/");
        let lists =
            [strong.to_owned(), format!("\"a\", {etag}"), format!("W/\"x\",{strong} , \"b\""), "*".into()];
        for list in lists {
            assert_eq!(holding(&app, path, &token, &list).await.status, 304, "{list}");
        }
        for other in ["\"x\"", "W/\"x\"", "", "x", &strong.replace('.', "-"), strong.trim_matches('"')] {
            assert_eq!(holding(&app, path, &token, other).await.status, 200, "{other}");
        }
    }
}

/// RFC 9110 §5.3: a list may come in several fields.
#[tokio::test]
async fn held_etags_may_come_in_several_fields() {
    let (app, token) = TestApp::nursery().await;
    let etag = etag(&app, "/v2/batches", &token).await;
    let request = app.request("GET", "/v2/batches").bearer_auth(&token);
    let request = request.header("if-none-match", "\"x\"").header("if-none-match", etag);
    assert_eq!(Reply::to(request).await.status, 304);
}

/// Decision 031: over the organisation's data version.
#[tokio::test]
async fn an_import_that_changes_something_changes_every_etag() {
    let (app, token) = TestApp::nursery().await;
    let path = "/v1/batches?end_date=2026-01-01T00:00:00Z";
    let changes = [
        named("b00000", "2026-01-01T00:00:00Z", "Corrected"),
        named("b00000", "2026-01-01T00:00:01Z", "Corrected"),
        named("new", "2026-01-09T00:00:00Z", "New"),
    ];
    let mut seen = BTreeSet::from([etag(&app, path, &token).await]);
    for change in changes {
        let before = etag(&app, path, &token).await;
        app.import("Nursery", &[change]).await;
        assert_eq!(holding(&app, path, &token, &before).await.status, 200);
        assert!(seen.insert(etag(&app, path, &token).await));
    }
}

/// Decision 031: a poller of unchanged data costs nothing.
#[tokio::test]
async fn an_import_that_changes_nothing_leaves_the_etag() {
    let (app, token) = TestApp::nursery().await;
    for path in PATHS {
        let before = etag(&app, path, &token).await;
        app.import("Nursery", &many(5)).await;
        app.import("Nursery", &[]).await;
        assert_eq!(holding(&app, path, &token, &before).await.status, 304);
    }
}

/// Decision 031: over the query too.
#[tokio::test]
async fn different_questions_have_different_etags() {
    let (app, token) = TestApp::nursery().await;
    let next = app.get("/v2/batches", &token).await.next_token().unwrap();
    let paths = [
        "/v1/batches".to_owned(),
        "/v2/batches".to_owned(),
        "/v1/batches?start_date=2026-01-01T00:00:00Z".to_owned(),
        "/v1/batches?end_date=2026-01-01T00:00:00Z".to_owned(),
        "/v2/batches?end_date=2026-01-01T00:00:00Z".to_owned(),
        format!("/v2/batches?next_token={next}"),
    ];
    let mut seen = BTreeSet::new();
    for path in &paths {
        assert!(seen.insert(etag(&app, path, &token).await), "{path}");
    }
}

/// Decision 031: one question in two spellings is one.
#[tokio::test]
async fn the_same_question_has_the_same_etag_however_it_is_written() {
    let (app, token) = TestApp::nursery().await;
    let [one, two] = ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000%2B00:00&x=1"]
        .map(|date| format!("/v2/batches?start_date={date}"));
    assert_eq!(etag(&app, &one, &token).await, etag(&app, &two, &token).await);
}

/// Decision 031: the page size is part of the question.
#[tokio::test]
async fn another_page_size_is_another_etag() {
    let (app, token) = TestApp::nursery().await;
    let other = app.node(batchscan_server::config::Config { page_rows: 3, ..Default::default() }).await;
    let before = etag(&app, "/v2/batches", &token).await;
    assert_ne!(before, etag(&other, "/v2/batches", &token).await);
}

/// Decision 031: weak, because it is the same for every encoding.
#[tokio::test]
async fn one_etag_serves_every_encoding() {
    let (app, token) = TestApp::nursery().await;
    for path in PATHS {
        let gzip = app.get_with(path, &token, "accept-encoding", "gzip").await.header("etag").unwrap();
        assert_eq!(holding(&app, path, &token, &gzip).await.status, 304);
    }
}

/// Decisions 030, 031.
#[tokio::test]
async fn head_is_conditional_too() {
    let (app, token) = TestApp::nursery().await;
    for path in PATHS {
        let etag = etag(&app, path, &token).await;
        let request = app.request("HEAD", path).bearer_auth(&token).header("if-none-match", etag);
        assert_eq!(Reply::to(request).await.status, 304);
    }
}

/// Decisions 007, 031: a condition answers neither for a token nor for a query.
#[tokio::test]
async fn a_condition_does_not_outrank_a_bad_token_or_query() {
    let (app, token) = TestApp::nursery().await;
    assert_eq!(holding(&app, "/v1/batches", "x", "*").await.status, 401);
    assert_eq!(holding(&app, "/v1/batches?start_date=x", &token, "*").await.status, 422);
}
