//! CORS for the origins that the operator allows (decision 030).

use batchscan_server::config::Config;

use crate::http::*;

const ALLOWED: &str = "https://erp.example.org";

async fn app(origins: &[&str]) -> TestApp {
    let cors_origins = origins.iter().map(|origin| (*origin).to_owned()).collect();
    TestApp::with(Config { cors_origins, ..Config::default() }).await
}

async fn from_origin(app: &TestApp, method: &str, origin: &str) -> Reply {
    let request = app.request(method, "/v2/batches").header("origin", origin);
    Reply::to(request.header("access-control-request-method", "GET")).await
}

/// Decision 030.
#[tokio::test]
async fn an_allowed_origin_may_read_responses_and_errors() {
    let app = app(&[ALLOWED]).await;
    let client = app.org("Nursery").await;
    let token = app.token(&client).await;
    let ok = app.get_with("/v2/batches", &token, "origin", ALLOWED).await;
    let rejected = from_origin(&app, "GET", ALLOWED).await;
    for (reply, status) in [(&ok, 200), (&rejected, 401)] {
        assert_eq!(reply.status, status);
        reply.has_headers(&[
            ("access-control-allow-origin", ALLOWED),
            ("access-control-expose-headers", "ETag, Retry-After, WWW-Authenticate, x-request-id"),
        ]);
        assert!(reply.header("vary").unwrap().ends_with("Origin"));
    }
    // A cache must not use a response to other origins for this one.
    let without = app.get("/v2/batches", &token).await;
    for reply in [ok, without] {
        reply.has_headers(&[("vary", "Authorization, Accept-Encoding, Origin")]);
    }
}

/// Decision 030.
#[tokio::test]
async fn a_preflight_of_an_allowed_origin_needs_no_token() {
    let app = app(&["https://other.example.org", ALLOWED]).await;
    let reply = from_origin(&app, "OPTIONS", ALLOWED).await;
    assert_eq!((reply.status, reply.body.len()), (204, 0));
    reply.has_headers(&[
        ("access-control-allow-origin", ALLOWED),
        ("access-control-allow-methods", "GET, HEAD, POST, OPTIONS"),
        ("access-control-allow-headers", "authorization, content-type, if-none-match"),
        ("access-control-max-age", "600"),
    ]);
}

/// Decision 030: without a setting there is no CORS.
#[tokio::test]
async fn other_origins_get_no_cors_headers() {
    let has_cors =
        |reply: &Reply| reply.headers.keys().any(|name| name.as_str().starts_with("access-control-"));
    let others =
        ["https://evil.example.org", "null", "https://erp.example.org.evil.org", "http://erp.example.org"];
    let (some, none) = (app(&[ALLOWED]).await, app(&[]).await);
    for (app, origin) in others.map(|origin| (&some, origin)).into_iter().chain([(&none, ALLOWED)]) {
        assert!(!has_cors(&from_origin(app, "GET", origin).await), "{origin}");
        let preflight = from_origin(app, "OPTIONS", origin).await;
        assert!(!has_cors(&preflight), "{origin}");
        preflight.has_headers(&[("allow", "GET, HEAD, OPTIONS")]);
    }
}

/// Decision 030.
#[tokio::test]
async fn a_star_allows_every_origin() {
    let reply = from_origin(&app(&["*"]).await, "GET", "https://anywhere.example.org").await;
    reply.has_headers(&[("access-control-allow-origin", "https://anywhere.example.org")]);
}
