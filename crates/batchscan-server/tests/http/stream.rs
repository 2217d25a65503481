//! The stream of v1: complete or aborted (decisions 020, 026), within the memory budget.

use std::io::Read;

use batchscan_server::config::Config;

use super::*;

/// About 18 MB: more than the buffers between two sockets.
const BULK: usize = 300;
/// The memory of a stream.
const STREAM_BYTES: usize = 512 * 1024;

async fn bulky_nursery() -> (TestApp, Client, String) {
    TestApp::filled(1_000, &many_bulky(BULK)).await
}

fn get_v1(token: &str, more: &str) -> String {
    format!("GET /v1/batches HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n{more}\r\n")
}

/// A stream whose client has read the head only.
async fn stalled(app: &TestApp, request: &str) -> Raw {
    let mut raw = Raw::sending(app, request).await;
    let (status, headers) = raw.head().await;
    assert_eq!((status, headers.get("content-length")), (200, None));
    raw
}

fn is_aborted(chunked: &[u8]) -> bool {
    !chunked.is_empty() && !chunked.ends_with(b"0\r\n\r\n")
}

/// Decisions 020, 032; contract section 4.
#[tokio::test]
async fn thousands_of_batches_are_one_array() {
    let batches = many(12_000);
    let (app, _, token) = TestApp::filled(1_000, &batches).await;
    let plain = app.get("/v1/batches", &token).await;
    let texts: Vec<String> = batches.iter().map(batchscan_model::Batch::to_json).collect();
    assert_eq!(plain.text(), format!("[{}]", texts.join(",")));
    plain.has_headers(&[("transfer-encoding", "chunked")]);
    let gzip = app.get_with("/v1/batches", &token, "accept-encoding", "gzip").await;
    gzip.has_headers(&[("content-encoding", "gzip")]);
    let mut decoded = Vec::new();
    flate2::read::GzDecoder::new(&gzip.body[..]).read_to_end(&mut decoded).unwrap();
    assert!(decoded == plain.body && gzip.body.len() * 6 < plain.body.len(), "{}", gzip.body.len());
}

/// Decisions 026, 032: a client must not take a part for the whole.
#[tokio::test]
async fn a_revocation_or_an_error_aborts_the_stream() {
    let (app, client, token) = bulky_nursery().await;
    let mut plain = stalled(&app, &get_v1(&token, "")).await;
    let mut gzip = stalled(&app, &get_v1(&token, "accept-encoding: gzip\r\n")).await;
    let mut http_1_0 = stalled(&app, &get_v1(&token, "").replace("HTTP/1.1", "HTTP/1.0")).await;
    let library = |http: reqwest::ClientBuilder| {
        http.build().unwrap().get(format!("{}/v1/batches", app.url)).bearer_auth(&token).send()
    };
    let http1 = library(plain_client()).await.unwrap();
    let http2 = library(plain_client().http2_prior_knowledge()).await.unwrap();
    assert_eq!((http1.status().as_u16(), http2.status().as_u16()), (200, 200));
    app.revoke(&client).await;
    assert!(is_aborted(&plain.read_rest().await) && is_aborted(&gzip.read_rest().await));
    assert!(http1.bytes().await.is_err() && http2.bytes().await.is_err());
    // HTTP/1.0 has no chunks: the array is not closed.
    let rest = http_1_0.read_rest().await;
    assert!(rest.starts_with(b"[{") && serde_json::from_slice::<serde_json::Value>(&rest).is_err());
    let second = app.credential("Nursery", None).await;
    let mut failing = stalled(&app, &get_v1(&app.token(&second).await, "")).await;
    app.drop_batch_table();
    assert!(is_aborted(&failing.read_rest().await));
}

/// Decision 026: the token is only checked at the start.
#[tokio::test]
async fn a_stream_continues_after_its_token_expired() {
    let (app, _, token) = bulky_nursery().await;
    let mut raw = stalled(&app, &get_v1(&token, "").replace("HTTP/1.1", "HTTP/1.0")).await;
    app.advance_secs(7_200);
    let all: Vec<serde_json::Value> = serde_json::from_slice(&raw.read_rest().await).unwrap();
    assert_eq!(all.len(), BULK);
}

/// Decision 030.
#[tokio::test]
async fn head_has_the_headers_of_a_stream_and_no_body() {
    let (app, _, token) = bulky_nursery().await;
    let get = app.request("GET", "/v1/batches").bearer_auth(&token).send().await.unwrap();
    let head = Reply::to(app.request("HEAD", "/v1/batches").bearer_auth(&token)).await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    for name in ["content-type", "etag", "cache-control", "vary", "content-length"] {
        assert_eq!(head.headers.get(name), get.headers().get(name), "{name}");
    }
}

/// Decision 020: slow readers block neither the store nor each other, and those that disconnect are cleaned up.
#[tokio::test]
async fn stalled_and_disconnected_readers_delay_no_one() {
    let (app, _, token) = bulky_nursery().await;
    let mut readers = Vec::new();
    for _ in 0..40 {
        readers.push(stalled(&app, &get_v1(&token, "connection: close\r\n")).await);
    }
    for _ in 0..50 {
        assert_eq!(app.get("/v2/batches?end_date=2026-01-01T00:00:00Z", &token).await.ids(), ["b00000"]);
    }
    let last = readers.pop().unwrap().read_rest().await;
    assert!(last.ends_with(b"0\r\n\r\n"), "complete");
    drop(readers);
    while metric(&app, "batchscan_open_connections").await > 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(app.v1_ids("", &token).await.len(), BULK);
}

/// Operating guide, "Limits": a stream that its client does not read counts until the client disconnects.
#[tokio::test]
async fn streams_count_against_the_memory_budget() {
    let config = Config { response_bytes_max: 2 * STREAM_BYTES, ..Config::default() };
    let app = TestApp::with(config).await;
    let client = app.org("Nursery").await;
    app.import("Nursery", &many_bulky(BULK)).await;
    let token = app.token(&client).await;
    let small = "?end_date=2026-01-01T00:00:00Z";
    let first = stalled(&app, &get_v1(&token, "")).await;
    let _second = stalled(&app, &get_v1(&token, "accept-encoding: gzip\r\n")).await;
    for path in ["/v1/batches", "/v2/batches"] {
        app.get(&format!("{path}{small}"), &token).await.is_unavailable();
    }
    app.get("/v1/batches", &token).await.is_unavailable();
    drop(first);
    while app.get(&format!("/v2/batches{small}"), &token).await.status != 200 {
        tokio::task::yield_now().await;
    }
    assert_eq!(app.v1_ids("", &token).await.len(), BULK);
}
