//! The stream of v1: complete or aborted (decisions 020, 026), within the memory budget.

use batchscan_server::config::Config;

use super::log::lines_with;
use super::*;

/// About 18 MB: more than the buffers between two sockets.
const BULK: usize = 300;
/// The memory of a stream.
const STREAM_BYTES: usize = 512 * 1024;

async fn bulky_nursery() -> (TestApp, Client, String) {
    TestApp::filled(1_000, &many_bulky(BULK)).await
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
    assert!(gzip.decoded() == plain.body && gzip.body.len() * 6 < plain.body.len(), "{}", gzip.body.len());
}

/// Decisions 026, 032: a client must not take a part for the whole.
#[tokio::test]
async fn a_revocation_or_an_error_aborts_the_stream() {
    let (app, client, token) = bulky_nursery().await;
    let mut plain = stalled(&app, &get_head("/v1/batches", &token, "")).await;
    let mut gzip = stalled(&app, &get_head("/v1/batches", &token, "accept-encoding: gzip\r\n")).await;
    let mut http_1_0 =
        stalled(&app, &get_head("/v1/batches", &token, "").replace("HTTP/1.1", "HTTP/1.0")).await;
    let library = |http: reqwest::ClientBuilder| {
        http.build().unwrap().get(format!("{}/v1/batches", app.url)).bearer_auth(&token).send()
    };
    let http1 = library(plain_client()).await.unwrap();
    let http2 = library(plain_client().http2_prior_knowledge()).await.unwrap();
    assert_eq!((http1.status().as_u16(), http2.status().as_u16()), (200, 200));
    app.revoke(&client).await;
    assert!(is_aborted(&plain.read_rest().await) && is_aborted(&gzip.read_rest().await));
    assert!(http1.bytes().await.is_err() && http2.bytes().await.is_err());
    // HTTP/1.0 has no chunks: only a reset tells a part from the whole.
    let rest = http_1_0.read_rest().await;
    assert!(rest.starts_with(b"[{") && http_1_0.was_reset);
    assert!(metrics(&app).await.contains("batchscan_store_errors_total{kind=\"unreachable\"} 0"));
    assert!(lines_with(&client.id).iter().any(|line| line.contains("the credential was revoked")));
    let second = app.credential("Nursery", None).await;
    let mut failing = stalled(&app, &get_head("/v1/batches", &app.token(&second).await, "")).await;
    app.drop_batch_table();
    assert!(is_aborted(&failing.read_rest().await));
}

/// Decision 026: the token is only checked at the start.
#[tokio::test]
async fn a_stream_continues_after_its_token_expired() {
    let (app, _, token) = bulky_nursery().await;
    let mut raw = stalled(&app, &get_head("/v1/batches", &token, "").replace("HTTP/1.1", "HTTP/1.0")).await;
    app.advance_secs(7_200);
    let all: Vec<serde_json::Value> = serde_json::from_slice(&raw.read_rest().await).unwrap();
    assert_eq!((all.len(), raw.was_reset), (BULK, false));
}

/// Decision 020: slow readers block neither the store nor each other, and those that disconnect are cleaned up.
#[tokio::test]
async fn stalled_and_disconnected_readers_delay_no_one() {
    let (app, _, token) = bulky_nursery().await;
    let mut readers = Vec::new();
    for _ in 0..40 {
        readers.push(stalled(&app, &get_head("/v1/batches", &token, "connection: close\r\n")).await);
    }
    for _ in 0..50 {
        assert_eq!(app.get("/v2/batches?end_date=2026-01-01T00:00:00Z", &token).await.ids(), ["b00000"]);
    }
    let last = readers.pop().unwrap().read_rest().await;
    assert!(last.ends_with(b"0\r\n\r\n"), "complete");
    drop(readers);
    until(async || metric(&app, "batchscan_open_connections").await <= 2).await;
    assert_eq!(app.v1_ids("", &token).await.len(), BULK);
}

/// Operating guide, "Limits": what a client does not read counts until the kernel took it or the client disconnects.
/// No client can use all of the memory.
#[tokio::test]
async fn stalled_responses_count_against_the_memory_of_their_credential_and_organisation() {
    let config = Config { response_bytes_max: 6 * STREAM_BYTES, ..Config::default() };
    let app = TestApp::with(config).await;
    let (greedy, other) = (app.org("Nursery").await, app.org("Other").await);
    let colleague = app.credential("Nursery", None).await;
    app.import("Nursery", &many_bulky(BULK)).await;
    app.import("Other", &many_bulky(BULK)).await;
    let (token, colleague, other) =
        (app.token(&greedy).await, app.token(&colleague).await, app.token(&other).await);
    let small = "/v2/batches?end_date=2026-01-01T00:00:00Z";
    let first = stalled(&app, &get_head("/v1/batches", &token, "")).await;
    let _second = stalled(&app, &get_head("/v1/batches", &token, "accept-encoding: gzip\r\n")).await;
    for path in ["/v1/batches", small] {
        app.get(path, &token).await.is_unavailable();
    }
    let _third = stalled(&app, &get_head("/v1/batches", &colleague, "")).await;
    app.get("/v1/batches", &colleague).await.is_unavailable();
    assert_eq!(app.v1_ids("", &other).await.len(), BULK);
    assert_eq!(app.send("GET", "/readyz").await.status, 200);
    drop(first);
    until(async || app.get(small, &token).await.status == 200).await;
}

/// Operating guide, "Limits": the same for a page, over HTTP/1.1 and over HTTP/2 without a flow control window.
#[tokio::test]
async fn a_page_counts_until_it_is_sent_and_is_logged_then() {
    let bulk = many_bulky(BULK);
    let page_bytes: usize = bulk.iter().map(|batch| batch.to_json().len() + 1).sum();
    let config = Config { response_bytes_max: page_bytes + 1_000, cache_bytes: 0, ..Config::default() };
    let app = TestApp::with(config).await;
    let (client, other) = (app.org("Nursery").await, app.org("Other").await);
    app.import("Nursery", &bulk).await;
    app.import("Other", &bulk).await;
    let (token, other) = (app.token(&client).await, app.token(&other).await);
    let is_free = async || app.get("/v2/batches", &other).await.status == 200;
    let request = get_head("/v2/batches", &token, "x-request-id: slow-page\r\n");
    let mut raw = Raw::sending(&app, request).await;
    assert_eq!(raw.head().await.0, 200);
    app.get("/v2/batches", &other).await.is_unavailable();
    app.send("GET", "/readyz").await.is_unavailable();
    assert!(lines_with("slow-page").is_empty(), "it was not delivered");
    drop(raw);
    until(&is_free).await;
    until(async || !lines_with("slow-page").is_empty()).await;
    let line: serde_json::Value = serde_json::from_str(&lines_with("slow-page")[0]).unwrap();
    assert!(
        line["fields"]["cut"] == true && line["fields"]["bytes"].as_u64().unwrap() < page_bytes as u64,
        "{line}"
    );

    let closed_window = plain_client().http2_prior_knowledge().http2_initial_stream_window_size(1);
    let http2 = closed_window.build().unwrap();
    let unread = http2.get(format!("{}/v2/batches", app.url)).bearer_auth(&token).send().await.unwrap();
    assert_eq!(unread.status(), 200);
    app.get("/v2/batches", &other).await.is_unavailable();
    drop((unread, http2));
    until(&is_free).await;
}
