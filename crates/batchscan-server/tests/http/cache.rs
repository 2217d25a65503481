//! The page cache.

use batchscan_server::config::Config;

use super::*;

const HITS: &str = "batchscan_page_cache_hits_total";

/// Decisions 031, 032.
#[tokio::test]
async fn a_cached_page_has_the_same_bytes() {
    let (app, _, token) = TestApp::filled(40, &many(100)).await;
    let uncached = app.node(Config { cache_bytes: 0, page_rows: 40, ..Config::default() }).await;
    let next = app.get("/v2/batches", &token).await.next_token().unwrap();
    let next = format!("/v2/batches?next_token={next}");
    for path in ["/v1/batches", "/v2/batches", &next] {
        for encoding in ["identity", "gzip"] {
            let get = async |app: &TestApp| app.get_with(path, &token, "accept-encoding", encoding).await;
            let fresh = get(&uncached).await;
            for _ in 0..3 {
                let reply = get(&app).await;
                assert_eq!(reply.body, fresh.body, "{path} {encoding}");
                assert_eq!(reply.header("content-encoding"), fresh.header("content-encoding"));
                assert_eq!(reply.header("etag"), fresh.header("etag"));
            }
        }
    }
    assert!(metric(&app, HITS).await >= 4);
    assert_eq!(metric(&uncached, HITS).await, 0);
}

/// Decision 031.
#[tokio::test]
async fn a_page_is_never_stale_after_an_import_by_another_process() {
    let (app, token) = TestApp::nursery().await;
    let other = app.node(Config::default()).await;
    for round in 0..20 {
        let name = format!("Round {round}");
        other.import("Nursery", &[named("b00000", "2026-01-01T00:00:00Z", &name)]).await;
        for _ in 0..3 {
            let page = app.get("/v2/batches", &token).await;
            assert_eq!(page.batches()[0]["batch_name"], name.as_str());
        }
    }
}
