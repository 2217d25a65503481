//! The dashboard's page and files: sent as they are, kept as long as they may be, and fenced in (decision 048).

use batchscan_web::{DASHBOARD, DASHBOARD_PAGE as PAGE};
use serde_json::json;

use crate::http::app::TestApp;
use crate::http::reply::Reply;

/// Every view's address; a batch's id may hold anything that is escaped.
const VIEWS: [&str; 5] =
    ["/", "/batches", "/batches/b-1", "/batches/a%2Fb%3F%00", "/?from=2026-01-01&crop=x"];

async fn asking(app: &TestApp, path: &str, name: &'static str, value: &str) -> Reply {
    Reply::to(app.request("GET", path).header(name, value)).await
}

/// Decision 048.
#[tokio::test]
async fn every_view_is_the_same_page_and_needs_no_token() {
    let app = TestApp::start().await;
    for path in VIEWS {
        let reply = Reply::to(app.request("GET", path)).await;
        assert_eq!(
            (reply.status, reply.header("content-type").as_deref()),
            (200, Some("text/html; charset=utf-8"))
        );
        let page = DASHBOARD.iter().find(|file| file.path == PAGE).unwrap();
        assert_eq!(reply.body, page.plain(), "{path}");
    }
}

/// Decision 048.
#[tokio::test]
async fn the_page_may_reach_its_own_service_and_nothing_else() {
    let app = TestApp::start().await;
    for file in DASHBOARD.iter().filter(|file| file.path != PAGE) {
        let reply = Reply::to(app.request("GET", file.path)).await;
        assert_eq!((reply.status, reply.body), (200, file.plain()), "{}", file.path);
    }
    for path in ["/", "/favicon.svg"] {
        let reply = Reply::to(app.request("GET", path)).await;
        let policy = reply.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"), "{policy}");
        assert!(!policy.contains("unsafe") && !policy.contains('*') && !policy.contains("http"), "{policy}");
        assert_eq!(reply.header("x-content-type-options").as_deref(), Some("nosniff"));
        assert_eq!(reply.header("referrer-policy").as_deref(), Some("no-referrer"));
    }
}

/// Decisions 031, 048.
#[tokio::test]
async fn a_browser_asks_again_for_the_page_and_never_for_what_is_named_by_its_content() {
    let app = TestApp::start().await;
    for file in DASHBOARD {
        let path = if file.path == PAGE { "/" } else { file.path };
        let kept =
            if file.is_immutable() { "public, max-age=31536000, immutable" } else { "no-cache" };
        let first = Reply::to(app.request("GET", path)).await;
        assert_eq!(first.header("cache-control").as_deref(), Some(kept), "{path}");
        let again = asking(&app, path, "if-none-match", &first.header("etag").unwrap()).await;
        assert_eq!((again.status, again.body.len(), again.header("content-type")), (304, 0, None), "{path}");
    }
}

/// Decisions 032, 048.
#[tokio::test]
async fn files_come_compressed_to_who_takes_it() {
    let app = TestApp::start().await;
    let script = DASHBOARD.iter().max_by_key(|file| file.gzip.len()).unwrap();
    for (accepted, encoding, sent) in
        [("gzip, deflate, br, zstd", Some("gzip"), script.gzip.to_vec()), ("br", None, script.plain())]
    {
        let reply = asking(&app, script.path, "accept-encoding", accepted).await;
        assert_eq!(reply.header("content-encoding").as_deref(), encoding, "{accepted}");
        assert!(reply.body == sent, "{accepted}");
        assert_eq!(reply.header("vary").as_deref(), Some("Accept-Encoding"));
    }
}

/// Decision 027.
#[tokio::test]
async fn what_is_not_carried_is_a_404_with_a_body() {
    let app = TestApp::start().await;
    for path in [
        "/index.html",
        "/assets/",
        "/assets/no.js",
        "/assets/../index.html",
        "/assets/a/b.js",
        "/batches/",
        "/batches/a/b",
    ] {
        Reply::to(app.request("GET", path)).await.is_error(404, &json!({ "detail": "Not Found" }));
    }
}
