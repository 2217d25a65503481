//! Methods and paths: HEAD, OPTIONS, 404, 405 (decisions 027, 030).

use serde_json::json;

use crate::http::app::TestApp;
use crate::http::reply::Reply;
use crate::http::sample::many;
use crate::http::wire::Wire;

const READING: &str = "GET, HEAD, OPTIONS";
const AUTH: &str = "POST, OPTIONS";
const ROUTES: [(&str, &str); 14] = [
    ("/v1/auth", AUTH),
    ("/v2/auth", AUTH),
    ("/v1/batches", READING),
    ("/v2/batches", READING),
    ("/healthz", READING),
    ("/readyz", READING),
    ("/metrics", READING),
    ("/openapi.json", READING),
    ("/docs", READING),
    ("/docs/", READING),
    ("/docs/swagger-ui.css", READING),
    ("/", READING),
    ("/batches/b1", READING),
    ("/favicon.svg", READING),
];

/// Interface section 1: all batch endpoints are read-only. Decision 027.
#[tokio::test]
async fn a_method_that_a_route_does_not_know_is_a_405_with_allow_and_a_body() {
    let app = TestApp::start().await;
    for (path, allowed) in ROUTES {
        for method in ["PUT", "PATCH", "DELETE", "TRACE", "PROPFIND", "GET", "POST"] {
            if allowed.contains(method) {
                continue;
            }
            let reply = Reply::to(app.request(method, path)).await;
            reply.is_error(405, &json!({ "detail": "Method Not Allowed" }));
            assert_eq!(reply.header("allow").as_deref(), Some(allowed), "{method} {path}");
        }
    }
}

/// Decisions 027, 030.
#[tokio::test]
async fn head_on_an_auth_endpoint_is_a_405_without_a_body() {
    let app = TestApp::start().await;
    let reply = Reply::to(app.request("HEAD", "/v1/auth")).await;
    assert_eq!((reply.status, reply.body.len()), (405, 0));
    assert_eq!(reply.header("allow").as_deref(), Some(AUTH));
}

/// Decision 027.
#[tokio::test]
async fn a_path_that_is_not_there_is_a_404_with_a_body() {
    let app = TestApp::start().await;
    for path in [
        "/v1",
        "/v1/",
        "/v3/batches",
        "/v1/batches/",
        "/v1/batches/b1",
        "/V1/batches",
        "//v1/batches",
        "/%00",
    ] {
        for method in ["GET", "POST", "DELETE"] {
            let reply = Reply::to(app.request(method, path)).await;
            reply.is_error(404, &json!({ "detail": "Not Found" }));
        }
    }
}

/// Decision 030.
#[tokio::test]
async fn head_is_get_without_the_body() {
    let app = TestApp::start().await;
    let client = app.org("Nursery").await;
    app.import("Nursery", &many(3)).await;
    let token = app.token(&client).await;
    for path in ["/v1/batches", "/v2/batches", "/healthz", "/v1/batches?start_date=x"] {
        let get = app.get(path, &token).await;
        let head = Reply::to(app.request("HEAD", path).bearer_auth(&token)).await;
        assert_eq!((head.status, head.body.len()), (get.status, 0), "{path}");
        for name in ["content-type", "content-length", "etag", "cache-control", "vary"] {
            assert_eq!(head.header(name), get.header(name), "{path} {name}");
        }
    }
}

/// Decisions 009, 030.
#[tokio::test]
async fn head_needs_a_token_too() {
    let app = TestApp::start().await;
    let reply = Reply::to(app.request("HEAD", "/v2/batches")).await;
    assert_eq!((reply.status, reply.header("www-authenticate").as_deref()), (401, Some("Bearer")));
}

/// Decision 030.
#[tokio::test]
async fn options_answers_with_allow() {
    let app = TestApp::start().await;
    for (path, allowed) in ROUTES {
        let reply = Reply::to(app.request("OPTIONS", path)).await;
        assert_eq!((reply.status, reply.body.len()), (204, 0), "{path}");
        assert_eq!(reply.header("allow").as_deref(), Some(allowed), "{path}");
    }
}

/// Decision 030; RFC 9110 §8.6: a 204 has no `Content-Length`.
#[tokio::test]
async fn a_204_claims_no_content_length() {
    let app = TestApp::start().await;
    let reply = Wire::ask(&app, "OPTIONS /v1/batches HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert_eq!((reply.status, reply.header("content-length")), (204, None));
}
