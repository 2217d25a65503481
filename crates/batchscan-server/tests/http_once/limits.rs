//! Limits of requests: 414, 431, and errors that hyper reports itself (decision 027).

use serde_json::json;

use crate::http::app::FORM;
use crate::http::*;

const URI_BYTES_MAX: usize = 8 * 1024;
const HEADER_BYTES_MAX: usize = 32 * 1024;
const NOT_HTTP: &str = "The request is not valid HTTP";
const HEADERS_TOO_LARGE: &str = "The request's header fields are too large";

/// An error that was sent without a handler and closes the connection.
#[track_caller]
fn is_final_error(reply: &Reply, status: u16, detail: &str) {
    reply.is_error(status, &json!({ "detail": detail }));
    reply.has_headers(&[("connection", "close")]);
}

/// Decision 027.
#[tokio::test]
async fn a_path_and_query_above_8_kib_are_a_414() {
    let (app, _, token) = TestApp::signed_in().await;
    let query = |bytes: usize| format!("/v1/batches?{}", "x".repeat(bytes - "/v1/batches".len()));
    assert_eq!(app.get(&query(URI_BYTES_MAX), &token).await.status, 200);
    for path in [query(URI_BYTES_MAX + 1), query(40_000), format!("/{}", "x".repeat(URI_BYTES_MAX))] {
        app.get(&path, &token).await.is_detail(414, "The path and query are too long");
    }
}

/// Decision 027: also above the limits of hyper.
#[tokio::test]
async fn header_fields_above_32_kib_or_too_many_are_a_431() {
    let app = TestApp::start().await;
    let with = async |bytes: usize| {
        Reply::to(app.request("GET", "/healthz").header("x-pad", "x".repeat(bytes))).await
    };
    assert_eq!(with(HEADER_BYTES_MAX - 1_000).await.status, 200);
    for bytes in [HEADER_BYTES_MAX, 50_000] {
        with(bytes).await.is_detail(431, HEADERS_TOO_LARGE);
    }
    for bytes in [70_000, 1_000_000] {
        let mut raw = Raw::connect(&app).await;
        let head = format!("GET /healthz HTTP/1.1\r\nhost: x\r\nx-pad: {}", "x".repeat(bytes));
        let _ = raw.try_send(head).await;
        is_final_error(&raw.response().await, 431, HEADERS_TOO_LARGE);
        assert!(raw.read_rest().await.is_empty());
    }
    let fields = |count: usize| (0..count).map(|n| format!("x-{n}: 1\r\n")).collect::<String>();
    let request = |count| format!("GET /healthz HTTP/1.1\r\nhost: x\r\n{}\r\n", fields(count));
    assert_eq!(Raw::request(&app, request(90)).await.status, 200);
    is_final_error(&Raw::request(&app, request(150)).await, 431, HEADERS_TOO_LARGE);
}

/// Decision 027; contract section 7: every error response has a JSON body with a field `detail`.
#[tokio::test]
async fn a_request_that_is_not_http_is_a_400() {
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
        "POST /v1/auth HTTP/1.1\r\nhost: x\r\ncontent-length: 18446744073709551616\r\n\r\n",
        "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\u{0}\u{1}\u{fc}\u{3}\u{3}\r\n\r\n",
    ] {
        is_final_error(&Raw::request(&app, request).await, 400, NOT_HTTP);
    }
    let head = format!("POST /v2/auth HTTP/1.1\r\nhost: x\r\ncontent-type: {FORM}\r\n");
    let chunked = Raw::request(&app, format!("{head}transfer-encoding: chunked\r\n\r\nZZ\r\n")).await;
    chunked.is_detail(400, "The request body is not valid HTTP");
}

/// Decision 027; RFC 9112 §3.2, §6.1: what a proxy could understand in another way.
#[tokio::test]
async fn an_ambiguous_head_is_rejected() {
    let app = TestApp::start().await;
    let request = |lines: &str| format!("GET /healthz HTTP/1.1\r\n{lines}connection: close\r\n\r\n");
    let tokens = "host: x\r\nauthorization: Bearer a\r\nauthorization: Bearer b\r\n";
    for (lines, detail) in [
        ("", "Send exactly one Host header"),
        ("host: a\r\nhost: b\r\n", "Send exactly one Host header"),
        (tokens, "Send only one Authorization header"),
    ] {
        Raw::request(&app, request(lines)).await.is_detail(400, detail);
    }
    let two_hosts = request("host: a\r\nhost: b\r\n").replace("HTTP/1.1", "HTTP/1.0");
    assert_eq!(Raw::request(&app, two_hosts).await.status, 400);
    assert_eq!(Raw::request(&app, request("").replace("HTTP/1.1", "HTTP/1.0")).await.status, 200);
    let encoded = request("host: x\r\ntransfer-encoding: gzip, chunked\r\n").replace("GET", "POST");
    Raw::request(&app, encoded).await.is_detail(501, "The only supported transfer encoding is chunked");
    let huge = request("host: x\r\ncontent-length: 18446744073709551615\r\n").replace("GET", "POST");
    is_final_error(&Raw::request(&app, huge).await, 413, "The request body is too large");
}

/// Decision 027: earlier responses are not lost, short or long.
#[tokio::test]
async fn a_malformed_pipelined_request_is_rejected_after_the_valid_one() {
    let (app, _, token) = TestApp::filled(1_000, &many(500)).await;
    for path in ["/healthz", "/v2/batches"] {
        let authorization = format!("host: x\r\nauthorization: Bearer {token}\r\n\r\n");
        let mut raw =
            Raw::sending(&app, format!("GET {path} HTTP/1.1\r\n{authorization}not http\r\n\r\n")).await;
        assert_eq!(raw.response().await.body, app.get(path, &token).await.body);
        is_final_error(&raw.response().await, 400, NOT_HTTP);
        assert!(raw.read_rest().await.is_empty());
    }
}

/// Decision 027: a client that sends a long body before it reads must not get a connection reset.
#[tokio::test]
async fn a_client_that_sends_everything_before_reading_gets_its_response() {
    let app = TestApp::start().await;
    for (path, kind, status) in
        [("/v1/auth", FORM, 413), ("/v1/auth", "text/plain", 422), ("/v1/batches", FORM, 405)]
    {
        let bytes = 20_000_000;
        let mut raw = Raw::sending(
            &app,
            format!(
                "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: {kind}\r\ncontent-length: {bytes}\r\n\r\n"
            ),
        )
        .await;
        raw.send(vec![b'x'; bytes]).await;
        let reply = raw.response().await;
        assert_eq!((reply.status, reply.json()["detail"].is_null()), (status, false), "{path} {kind}");
    }
}
