//! CORS for the origins the operator names (decision 030).

use batchscan_server::config::Config;

use crate::http::app::TestApp;
use crate::http::reply::Reply;

const NAMED: &str = "https://erp.example.org";

async fn app(origins: &[&str]) -> TestApp {
    let cors_origins = origins.iter().map(|origin| (*origin).to_owned()).collect();
    TestApp::with(Config { cors_origins, ..Config::default() }).await
}

async fn from_origin(app: &TestApp, method: &str, origin: &str) -> Reply {
    let request = app.request(method, "/v2/batches").header("origin", origin);
    Reply::to(request.header("access-control-request-method", "GET")).await
}

fn names_cors(reply: &Reply) -> bool {
    reply.headers.keys().any(|name| name.as_str().starts_with("access-control-"))
}

/// Decision 030.
#[tokio::test]
async fn a_named_origin_may_read_answers_and_errors() {
    let app = app(&[NAMED]).await;
    let client = app.org("Nursery").await;
    let token = app.token(&client).await;
    let ok = app.get_with("/v2/batches", &token, "origin", NAMED).await;
    let refused = from_origin(&app, "GET", NAMED).await;
    for (reply, status) in [(&ok, 200), (&refused, 401)] {
        assert_eq!(reply.status, status);
        assert_eq!(reply.header("access-control-allow-origin").as_deref(), Some(NAMED));
        let exposed = reply.header("access-control-expose-headers").unwrap();
        assert_eq!(exposed, "ETag, Retry-After, WWW-Authenticate, x-request-id");
        assert!(reply.header("vary").unwrap().ends_with("Origin"));
    }
    assert_eq!(ok.header("vary").as_deref(), Some("Authorization, Accept-Encoding, Origin"));
}

/// Decision 030.
#[tokio::test]
async fn a_preflight_of_a_named_origin_is_answered_without_a_token() {
    let app = app(&["https://other.example.org", NAMED]).await;
    let reply = from_origin(&app, "OPTIONS", NAMED).await;
    assert_eq!((reply.status, reply.body.len()), (204, 0));
    for (name, value) in [
        ("access-control-allow-origin", NAMED),
        ("access-control-allow-methods", "GET, HEAD, POST, OPTIONS"),
        ("access-control-allow-headers", "authorization, content-type, if-none-match"),
        ("access-control-max-age", "600"),
    ] {
        assert_eq!(reply.header(name).as_deref(), Some(value), "{name}");
    }
}

/// Decision 030.
#[tokio::test]
async fn an_unnamed_origin_is_told_nothing() {
    let app = app(&[NAMED]).await;
    for origin in
        ["https://evil.example.org", "null", "https://erp.example.org.evil.org", "http://erp.example.org"]
    {
        assert!(!names_cors(&from_origin(&app, "GET", origin).await), "{origin}");
        let preflight = from_origin(&app, "OPTIONS", origin).await;
        assert!(!names_cors(&preflight), "{origin}");
        assert_eq!(preflight.header("allow").as_deref(), Some("GET, HEAD, OPTIONS"));
    }
}

/// Decision 030: only for origins the operator names.
#[tokio::test]
async fn without_named_origins_there_is_no_cors() {
    let app = TestApp::start().await;
    assert!(!names_cors(&from_origin(&app, "GET", NAMED).await));
    assert!(!names_cors(&from_origin(&app, "OPTIONS", NAMED).await));
}

/// Decision 030: a star names them all.
#[tokio::test]
async fn a_star_names_every_origin() {
    let app = app(&["*"]).await;
    let reply = from_origin(&app, "GET", "https://anywhere.example.org").await;
    let allowed = reply.header("access-control-allow-origin");
    assert_eq!(allowed.as_deref(), Some("https://anywhere.example.org"));
}
