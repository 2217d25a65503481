//! The page cache: invisible but for its speed.

use batchscan_server::config::Config;

use crate::http::app::TestApp;
use crate::http::operator::gauge;
use crate::http::sample::{many, named};

async fn nursery() -> (TestApp, String) {
    let app = TestApp::paged(40).await;
    let client = app.org("Nursery").await;
    app.import("Nursery", &many(100)).await;
    let token = app.token(&client).await;
    (app, token)
}

/// Decisions 031, 032.
#[tokio::test]
async fn a_cached_page_is_the_same_bytes_in_every_encoding() {
    let (app, token) = nursery().await;
    let uncached = app.node(Config { cache_bytes: 0, page_rows: 40, ..Config::default() }).await;
    let next = app.get("/v2/batches", &token).await.next_token().unwrap();
    for path in ["/v2/batches".to_owned(), format!("/v2/batches?next_token={next}")] {
        for encoding in ["identity", "gzip", "zstd"] {
            let ask = async |app: &TestApp| app.get_with(&path, &token, "accept-encoding", encoding).await;
            let (fresh, first) = (ask(&uncached).await, ask(&app).await);
            let (second, third) = (ask(&app).await, ask(&app).await);
            assert_eq!(first.body, second.body, "{path} {encoding}");
            assert_eq!(first.body, third.body, "{path} {encoding}");
            assert_eq!(first.body, fresh.body, "{path} {encoding}");
            assert_eq!(first.header("content-encoding"), second.header("content-encoding"));
            assert_eq!(first.header("etag"), second.header("etag"));
        }
    }
    assert!(gauge(&app, "batchscan_page_cache_hits_total").await >= 6);
    assert_eq!(gauge(&uncached, "batchscan_page_cache_hits_total").await, 0);
}

#[tokio::test]
async fn a_page_is_kept_when_it_is_asked_for_again() {
    let (app, token) = nursery().await;
    let hits = async || gauge(&app, "batchscan_page_cache_hits_total").await;
    for expected in [0, 0, 1, 2] {
        app.get("/v2/batches", &token).await;
        assert_eq!(hits().await, expected);
    }
}

/// Decision 031: nothing stale is ever served, whoever changed the data.
#[tokio::test]
async fn a_page_is_never_stale_after_an_import_by_another_process() {
    let (app, token) = nursery().await;
    let other = app.node(Config::default()).await;
    for round in 0..50 {
        let name = format!("Round {round}");
        other.import("Nursery", &[named("b00000", "2026-01-01T00:00:00Z", &name)]).await;
        for _ in 0..3 {
            let page = app.get("/v2/batches", &token).await;
            assert_eq!(page.batches()[0]["batch_name"], name.as_str());
        }
    }
}

/// Decision 010: the credential is looked at before the cache.
#[tokio::test]
async fn a_cached_page_is_not_for_a_dead_credential() {
    let (app, _) = nursery().await;
    let second = app.credential("Nursery", None).await;
    let token = app.token(&second).await;
    assert_eq!(app.get("/v2/batches", &token).await.status, 200);
    app.revoke(&second).await;
    assert_eq!(app.get("/v2/batches", &token).await.status, 401);
}
