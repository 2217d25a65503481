//! The dashboard's page and files (decision 048).

use batchscan_web::{DASHBOARD, DASHBOARD_PAGE as PAGE};

use super::fetch_file;
use crate::http::*;

async fn get(app: &TestApp, path: &str, name: &'static str, value: &str) -> Reply {
    Reply::to(app.request("GET", path).header(name, value)).await
}

/// Decision 048.
#[tokio::test]
async fn every_view_is_the_same_page_and_needs_no_token() {
    let app = TestApp::start().await;
    let page = DASHBOARD.iter().find(|file| file.path == PAGE).unwrap();
    for path in ["/", "/batches", "/batches/b-1", "/batches/a%2Fb%3F%00", "/analysis?from=2026-01-01&crop=x"]
    {
        let reply = app.send("GET", path).await;
        reply.has_headers(&[("content-type", "text/html; charset=utf-8")]);
        assert_eq!((reply.status, reply.body), (200, page.plain()), "{path}");
    }
}

#[tokio::test]
async fn a_request_with_a_token_is_not_answered_with_a_page() {
    let app = TestApp::start().await;
    let reply = get(&app, "/batches", "authorization", "Bearer abc").await;
    assert_eq!((reply.status, reply.header("content-type").as_deref()), (404, Some("application/json")));
    for reply in [reply, app.send("GET", "/batches").await, app.send("GET", "/").await] {
        reply.has_headers(&[("vary", "Authorization, Accept-Encoding")]);
    }
}

/// Decision 027.
#[tokio::test]
async fn an_unknown_path_is_a_page_only_for_browsers() {
    let app = TestApp::start().await;
    for (accept, media_type) in [
        ("text/html,application/xhtml+xml,*/*;q=0.8", "text/html; charset=utf-8"),
        ("*/*", "application/json"),
        ("text/html;q=0, application/json", "application/json"),
    ] {
        let response = app.request("GET", "/nothing").header("accept", accept).send().await.unwrap();
        let header = |name| response.headers()[name].to_str().unwrap();
        assert_eq!((response.status().as_u16(), header("content-type")), (404, media_type), "{accept}");
        assert_eq!(header("vary"), "Accept", "{accept}");
    }
}

/// Decision 048.
#[tokio::test]
async fn the_page_may_only_call_its_own_service() {
    let app = TestApp::start().await;
    for path in ["/", "/favicon.svg"] {
        let reply = app.send("GET", path).await;
        let policy = reply.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"), "{policy}");
        assert!(!policy.contains("unsafe") && !policy.contains('*') && !policy.contains("http"), "{policy}");
        reply.has_headers(&[("referrer-policy", "no-referrer")]);
    }
}

/// Decisions 031, 032, 048: only files with a hash in their name are cached without revalidation.
#[tokio::test]
async fn files_are_served_with_the_right_caching() {
    let app = TestApp::start().await;
    for file in DASHBOARD {
        let path = if file.path == PAGE { "/" } else { file.path };
        let cached = if file.is_immutable() { "public, max-age=31536000, immutable" } else { "no-cache" };
        let [plain, gzip] = fetch_file(&app, path, file.content_type, cached).await;
        assert!(plain.body == file.plain() && gzip.body == file.gzip, "{path}");
    }
}
