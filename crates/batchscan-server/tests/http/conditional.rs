//! ETags and `If-None-Match` (decision 031).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use batchscan_model::Batch;

use super::*;

async fn etag(app: &TestApp, path: &str, token: &str) -> String {
    app.get(path, token).await.header("etag").unwrap()
}

async fn conditional(app: &TestApp, path: &str, token: &str, etags: &str) -> Reply {
    app.get_with(path, token, "if-none-match", etags).await
}

/// Decisions 030, 031; RFC 9110 §8.6.
#[tokio::test]
async fn unchanged_data_is_a_304_without_a_body() {
    let (app, token) = TestApp::nursery().await;
    let caching = [("cache-control", "private, no-cache"), ("vary", "Authorization, Accept-Encoding")];
    for path in PATHS {
        let first = app.get(path, &token).await;
        let etag = first.header("etag").unwrap();
        assert!(etag.starts_with("W/\"") && etag.ends_with('"'), "{etag}");
        let reply = conditional(&app, path, &token, &etag).await;
        assert_eq!((reply.status, reply.header("content-type")), (304, None), "{path}");
        reply.has_headers(&caching);
        reply.has_headers(&[("etag", &etag)]);
        let head = app.request("HEAD", path).bearer_auth(&token).header("if-none-match", &etag);
        assert_eq!(Reply::to(head).await.status, 304);
        let gzip = app.get_with(path, &token, "accept-encoding", "gzip").await.header("etag").unwrap();
        assert_eq!(gzip, etag, "the same for every encoding");
        let raw = Raw::request(&app, get_head(path, &token, "if-none-match: *\r\n")).await;
        assert_eq!((raw.status, raw.header("content-length")), (304, None), "{path}");
    }
}

/// Decision 031; RFC 9110 §5.3 and §13.1.2: weak comparison, lists, several fields, and `*`.
#[tokio::test]
async fn etags_are_compared_weakly_and_may_be_lists() {
    let (app, token) = TestApp::nursery().await;
    for path in PATHS {
        let etag = etag(&app, path, &token).await;
        let strong = etag.trim_start_matches("W/");
        let lists =
            [strong.to_owned(), format!("\"a\", {etag}"), format!("W/\"x\",{strong} , \"b\""), "*".into()];
        for list in lists {
            assert_eq!(conditional(&app, path, &token, &list).await.status, 304, "{list}");
        }
        for other in ["\"x\"", "W/\"x\"", "", "x", &strong.replace('.', "-"), strong.trim_matches('"')] {
            assert_eq!(conditional(&app, path, &token, other).await.status, 200, "{other}");
        }
        let fields = app.request("GET", path).bearer_auth(&token).header("if-none-match", "\"x\"");
        assert_eq!(Reply::to(fields.header("if-none-match", etag)).await.status, 304);
    }
}

/// Decision 031: the ETag depends on the query and the page size, not on the spelling.
#[tokio::test]
async fn different_queries_have_different_etags() {
    let (app, token) = TestApp::nursery().await;
    let next = app.get("/v2/batches", &token).await.next_token().unwrap();
    let mut seen = BTreeSet::new();
    for path in [
        "/v1/batches",
        "/v2/batches",
        "/v1/batches?start_date=2026-01-01T00:00:00Z",
        "/v1/batches?end_date=2026-01-01T00:00:00Z",
        "/v2/batches?end_date=2026-01-01T00:00:00Z",
        &format!("/v2/batches?next_token={next}"),
    ] {
        assert!(seen.insert(etag(&app, path, &token).await), "{path}");
    }
    let other = app.node(batchscan_server::config::Config { page_rows: 3, ..Default::default() }).await;
    assert!(seen.insert(etag(&other, "/v2/batches", &token).await), "another page size");
    let respelled = "/v2/batches?end_date=2026-01-01T00:00:00.000%2B00:00&x=1";
    assert!(!seen.insert(etag(&app, respelled, &token).await), "the same query");
}

/// Decisions 007, 031.
#[tokio::test]
async fn an_invalid_query_is_reported_before_a_304() {
    let (app, token) = TestApp::nursery().await;
    assert_eq!(conditional(&app, "/v1/batches?start_date=x", &token, "*").await.status, 422);
}

/// Decision 031: version and batch are read in one snapshot, even while the batch changes.
#[tokio::test(flavor = "multi_thread")]
async fn one_etag_of_a_batch_names_one_text() {
    let (app, _, token) = TestApp::filled(1_000, &many(3)).await;
    let texts: Mutex<BTreeMap<String, String>> = Mutex::default();
    let is_done = AtomicBool::new(false);
    let changes = async {
        for number in 0..100 {
            let comment = Some(format!("correction {number}"));
            app.import("Nursery", &[Batch { comment, ..many(1).remove(0) }]).await;
        }
        is_done.store(true, Ordering::SeqCst);
    };
    let read = async || {
        while !is_done.load(Ordering::SeqCst) {
            let reply = app.get("/v2/batches/b00000", &token).await;
            let (etag, text) = (reply.header("etag").unwrap(), reply.text().to_owned());
            let known = texts.lock().unwrap().entry(etag.clone()).or_insert_with(|| text.clone()).clone();
            assert_eq!(known, text, "{etag}");
        }
    };
    tokio::join!(changes, read(), read(), read(), read());
    assert!(texts.into_inner().unwrap().len() > 1);
}
