//! HEAD, OPTIONS, 404 and 405 (decisions 027, 030).

use crate::http::*;

const READ: &str = "GET, HEAD, OPTIONS";
const AUTH: &str = "POST, OPTIONS";
const ROUTES: [(&str, &str); 16] = [
    ("/v1/auth", AUTH),
    ("/v2/auth", AUTH),
    ("/v1/batches", READ),
    ("/v2/batches", READ),
    ("/v2/export.csv", READ),
    ("/session/seen", "GET, HEAD, POST, OPTIONS"),
    ("/healthz", READ),
    ("/readyz", READ),
    ("/metrics", READ),
    ("/openapi.json", READ),
    ("/docs", READ),
    ("/docs/", READ),
    ("/docs/swagger-ui.css", READ),
    ("/", READ),
    ("/batches/b1", READ),
    ("/favicon.svg", READ),
];

/// Contract section 1: the batch endpoints are read-only. Decisions 027, 030.
#[tokio::test]
async fn every_route_lists_its_methods_and_rejects_others() {
    let app = TestApp::start().await;
    for (path, allowed) in ROUTES {
        for method in ["PUT", "PATCH", "DELETE", "TRACE", "PROPFIND", "GET", "POST"] {
            if allowed.contains(method) {
                continue;
            }
            let reply = app.send(method, path).await;
            reply.is_detail(405, "Method Not Allowed");
            assert_eq!(reply.header("allow").as_deref(), Some(allowed), "{method} {path}");
        }
        let options = app.send("OPTIONS", path).await;
        assert_eq!((options.status, options.body.len()), (204, 0), "{path}");
        assert_eq!(options.header("allow").as_deref(), Some(allowed), "{path}");
    }
    let head = app.send("HEAD", "/v1/auth").await;
    assert_eq!((head.status, head.body.len(), head.header("allow").as_deref()), (405, 0, Some(AUTH)));
    // RFC 9110 §8.6.
    let raw = Raw::request(&app, "OPTIONS /v1/batches HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert_eq!((raw.status, raw.header("content-length")), (204, None));
}

/// Decision 027.
#[tokio::test]
async fn an_unknown_path_is_a_404() {
    let app = TestApp::start().await;
    for path in [
        "/v1",
        "/v1/",
        "/v3/batches",
        "/v1/batches/",
        "/v1/batches/b1",
        "/V1/batches",
        "/v2/export",
        "/v2/export.json",
        "//v1/batches",
        "/%00",
        "/index.html",
        "/assets/",
        "/assets/../index.html",
        "/assets/a/b.js",
        "/batches/",
        "/batches/a/b",
        "/docs/a/b",
    ] {
        for method in ["GET", "POST", "DELETE"] {
            app.send(method, path).await.is_detail(404, "Not Found");
        }
    }
    for file in ["/assets/no.js", "/docs/swagger-ui-bundle.js.map", "/docs/index.html", "/docs/%ff"] {
        app.send("GET", file).await.is_detail(404, "Not Found");
    }
}

/// Decisions 009, 030.
#[tokio::test]
async fn head_is_get_without_the_body() {
    // More than one chunk: the array is a stream.
    let (app, _, token) = TestApp::filled(1_000, &many_bulky(20)).await;
    let small = "/v1/batches?end_date=2026-01-01T00:00:00Z";
    for path in ["/v1/batches", small, "/v2/batches", "/healthz", "/v1/batches?start_date=x"] {
        let get = app.get(path, &token).await;
        let head = Reply::to(app.request("HEAD", path).bearer_auth(&token)).await;
        assert_eq!((head.status, head.body.len()), (get.status, 0), "{path}");
        for name in ["content-type", "content-length", "etag", "cache-control", "vary"] {
            assert_eq!(head.header(name), get.header(name), "{path} {name}");
        }
    }
}
