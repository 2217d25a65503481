//! Limits on requests: 414, 431, and what hyper refuses by itself (decision 027).

use serde_json::json;

use crate::http::app::TestApp;
use crate::http::reply::Reply;
use crate::http::wire::Wire;

const URI_BYTES_MAX: usize = 8 * 1024;
const HEADER_BYTES_MAX: usize = 32 * 1024;

/// An error that was written where no handler could.
#[track_caller]
fn is_bare_error(reply: &Reply, status: u16, detail: &str) {
    assert_eq!((reply.status, reply.json()), (status, json!({ "detail": detail })));
    assert_eq!(reply.header("content-type").as_deref(), Some("application/json"));
    assert_eq!(reply.header("cache-control").as_deref(), Some("no-store"));
    assert_eq!(reply.header("connection").as_deref(), Some("close"));
}

/// Decision 027.
#[tokio::test]
async fn a_path_and_query_past_8_kib_are_a_414() {
    let app = TestApp::start().await;
    let client = app.org("Nursery").await;
    let token = app.token(&client).await;
    let query = |bytes: usize| format!("/v1/batches?{}", "x".repeat(bytes - "/v1/batches".len()));
    assert_eq!(app.get(&query(URI_BYTES_MAX), &token).await.status, 200);
    for path in [query(URI_BYTES_MAX + 1), query(40_000), format!("/{}", "x".repeat(URI_BYTES_MAX))] {
        let reply = app.get(&path, &token).await;
        reply.is_error(414, &json!({ "detail": "The path and query are too long" }));
    }
}

/// Decision 027.
#[tokio::test]
async fn header_fields_past_32_kib_are_a_431() {
    let app = TestApp::start().await;
    let with = async |bytes: usize| {
        Reply::to(app.request("GET", "/healthz").header("x-pad", "x".repeat(bytes))).await
    };
    assert_eq!(with(HEADER_BYTES_MAX - 1_000).await.status, 200);
    for bytes in [HEADER_BYTES_MAX, 50_000] {
        let reply = with(bytes).await;
        reply.is_error(431, &json!({ "detail": "The request's header fields are too large" }));
    }
}

/// Decision 027: also past what hyper reads.
#[tokio::test]
async fn a_head_past_what_is_buffered_is_a_431_with_a_body() {
    let app = TestApp::start().await;
    for bytes in [70_000, 1_000_000] {
        let mut wire = Wire::open(&app).await;
        let _ =
            wire.try_send(format!("GET /healthz HTTP/1.1\r\nhost: x\r\nx-pad: {}", "x".repeat(bytes))).await;
        is_bare_error(&wire.answer().await, 431, "The request's header fields are too large");
        assert!(wire.rest().await.is_empty());
    }
}

/// Decision 027: also past as many as hyper reads.
#[tokio::test]
async fn too_many_header_fields_are_a_431_with_a_body() {
    let app = TestApp::start().await;
    let fields = |count: usize| (0..count).map(|n| format!("x-{n}: 1\r\n")).collect::<String>();
    let request = |count| format!("GET /healthz HTTP/1.1\r\nhost: x\r\n{}\r\n", fields(count));
    assert_eq!(Wire::ask(&app, request(90)).await.status, 200);
    let refused = Wire::ask(&app, request(150)).await;
    is_bare_error(&refused, 431, "The request's header fields are too large");
}

/// Decision 027; interface section 7: every error response has a JSON body with a field detail.
#[tokio::test]
async fn what_is_not_http_is_a_400_with_a_body() {
    let app = TestApp::start().await;
    for request in [
        "hello\r\n\r\n",
        "GET\r\n\r\n",
        "GET /healthz\r\n\r\n",
        "GET /healthz HTTP/9.9\r\n\r\n",
        "GET /heal thz HTTP/1.1\r\n\r\n",
        "G\u{1}T /healthz HTTP/1.1\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nno colon\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nbad name: x\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nhost: x\r\nx: a\u{0}b\r\n\r\n",
        "POST /v1/auth HTTP/1.1\r\nhost: x\r\ncontent-length: many\r\n\r\n",
        "POST /v1/auth HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        "POST /v1/auth HTTP/1.1\r\nhost: x\r\ntransfer-encoding: gzip\r\n\r\n",
        "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\u{0}\u{1}\u{fc}\u{3}\u{3}\r\n\r\n",
    ] {
        let reply = Wire::ask(&app, request).await;
        is_bare_error(&reply, 400, "The request is not valid HTTP");
    }
}

/// Decision 027: the answers before it are not lost.
#[tokio::test]
async fn a_malformed_request_behind_a_good_one_is_answered_after_it() {
    let app = TestApp::start().await;
    let mut wire = Wire::open(&app).await;
    wire.send("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\nno http at all\r\n\r\n").await;
    assert_eq!(wire.answer().await.text(), r#"{"status":"alive"}"#);
    is_bare_error(&wire.answer().await, 400, "The request is not valid HTTP");
    assert!(wire.rest().await.is_empty());
}

/// Decision 027: the same for an answer of hundreds of bytes and more before it.
#[tokio::test]
async fn a_malformed_request_behind_a_page_is_answered_after_it() {
    let app = TestApp::start().await;
    let client = app.org("Nursery").await;
    app.import("Nursery", &crate::http::sample::many(500)).await;
    let token = app.token(&client).await;
    let mut wire = Wire::open(&app).await;
    wire.send(format!(
        "GET /v2/batches HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n?\r\n\r\n"
    ))
    .await;
    assert_eq!(wire.answer().await.ids().len(), 500);
    is_bare_error(&wire.answer().await, 400, "The request is not valid HTTP");
}

/// Decision 027: always. A client that sends all of a long body before it reads is not reset while it does.
#[tokio::test]
async fn a_client_that_sends_all_before_it_reads_gets_its_answer() {
    let app = TestApp::start().await;
    let form = "application/x-www-form-urlencoded";
    for (path, kind, status) in
        [("/v1/auth", form, 413), ("/v1/auth", "text/plain", 422), ("/v1/batches", form, 405)]
    {
        let mut wire = Wire::open(&app).await;
        let bytes = 20_000_000;
        wire.send(format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: {kind}\r\ncontent-length: {bytes}\r\n\r\n"
        ))
        .await;
        wire.send(vec![b'x'; bytes]).await;
        let reply = wire.answer().await;
        assert_eq!((reply.status, reply.json()["detail"].is_null()), (status, false), "{path} {kind}");
    }
}
