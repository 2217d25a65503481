//! v1's stream: whole or cut, never a part that passes for the whole (decisions 020, 026).

use std::io::Read;

use crate::http::app::{Client, TestApp, plain_client};
use crate::http::reply::Reply;
use crate::http::sample::{many, many_bulky};
use crate::http::wire::Wire;

/// Some 18 MB: more than the buffers between two sockets hold.
const BULK: usize = 300;

async fn bulky_nursery() -> (TestApp, Client, String) {
    let app = TestApp::start().await;
    let client = app.org("Nursery").await;
    app.import("Nursery", &many_bulky(BULK)).await;
    let token = app.token(&client).await;
    (app, client, token)
}

fn get_v1(token: &str, more: &str) -> String {
    format!("GET /v1/batches HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n{more}\r\n")
}

/// Reads the first bytes of an answer, lets `harm` happen, and returns all the rest there is.
async fn rest_after(app: &TestApp, request: &str, harm: impl AsyncFnOnce()) -> Vec<u8> {
    let mut wire = Wire::open(app).await;
    wire.send(request).await;
    let (status, headers) = wire.head().await;
    assert_eq!(status, 200);
    assert_eq!(headers.get("content-length"), None, "its length is not known when it begins");
    harm().await;
    wire.rest().await
}

fn assert_cut(chunked: &[u8]) {
    assert!(!chunked.is_empty(), "it had begun");
    assert!(!chunked.ends_with(b"0\r\n\r\n"), "the last chunk was sent: a client takes this for the whole");
}

/// Decision 020; interface section 4.
#[tokio::test]
async fn thousands_of_batches_come_as_one_array() {
    let app = TestApp::start().await;
    let client = app.org("Nursery").await;
    let batches = many(12_000);
    app.import("Nursery", &batches).await;
    let reply = app.get("/v1/batches", &app.token(&client).await).await;
    let texts: Vec<String> = batches.iter().map(batchscan_model::Batch::to_json).collect();
    assert_eq!(reply.text(), format!("[{}]", texts.join(",")));
    assert_eq!(reply.header("transfer-encoding").as_deref(), Some("chunked"));
}

/// Decision 026.
#[tokio::test]
async fn a_revocation_in_mid_stream_cuts_the_connection() {
    let (app, client, token) = bulky_nursery().await;
    let rest = rest_after(&app, &get_v1(&token, ""), async || app.revoke(&client).await).await;
    assert_cut(&rest);
}

/// Decision 026.
#[tokio::test]
async fn damage_in_mid_stream_cuts_the_connection() {
    let (app, _, token) = bulky_nursery().await;
    let rest = rest_after(&app, &get_v1(&token, ""), async || app.lose_batches()).await;
    assert_cut(&rest);
}

/// Decisions 026, 032.
#[tokio::test]
async fn a_compressed_stream_that_fails_is_cut_too() {
    for encoding in ["gzip", "zstd"] {
        let (app, client, token) = bulky_nursery().await;
        let request = get_v1(&token, &format!("accept-encoding: {encoding}\r\n"));
        assert_cut(&rest_after(&app, &request, async || app.revoke(&client).await).await);
    }
}

/// Decision 026: HTTP/1.0 knows no chunks, and an array that does not end is no JSON.
#[tokio::test]
async fn a_cut_stream_is_no_json_for_http_1_0_either() {
    let (app, client, token) = bulky_nursery().await;
    let request = get_v1(&token, "").replace("HTTP/1.1", "HTTP/1.0");
    let rest = rest_after(&app, &request, async || app.revoke(&client).await).await;
    assert!(rest.starts_with(b"[{") && !rest.ends_with(b"]"));
    assert!(serde_json::from_slice::<serde_json::Value>(&rest).is_err());
}

/// Decision 026: a client library reports it, over either protocol.
#[tokio::test]
async fn a_client_library_sees_a_cut_stream_as_an_error() {
    for http in [plain_client(), plain_client().http2_prior_knowledge()] {
        let (app, client, token) = bulky_nursery().await;
        let request = http.build().unwrap().get(format!("{}/v1/batches", app.url)).bearer_auth(&token);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        app.revoke(&client).await;
        assert!(response.bytes().await.is_err());
    }
}

/// Decision 026: the token's own end is no failure; what was begun is finished.
#[tokio::test]
async fn a_stream_outlives_its_token() {
    let (app, _, token) = bulky_nursery().await;
    let request = get_v1(&token, "").replace("HTTP/1.1", "HTTP/1.0");
    let rest = rest_after(&app, &request, async || app.advance_secs(7_200)).await;
    let whole: Vec<serde_json::Value> = serde_json::from_slice(&rest).unwrap();
    assert_eq!(whole.len(), BULK);
}

/// Decision 032.
#[tokio::test]
async fn compressed_streams_decode_to_the_same_bytes() {
    let app = TestApp::start().await;
    let client = app.org("Nursery").await;
    app.import("Nursery", &many(3_000)).await;
    let token = app.token(&client).await;
    let plain = app.get("/v1/batches", &token).await;
    let gzip = app.get_with("/v1/batches", &token, "accept-encoding", "gzip").await;
    assert_eq!(gzip.header("content-encoding").as_deref(), Some("gzip"));
    let mut decoded = Vec::new();
    flate2::read::GzDecoder::new(&gzip.body[..]).read_to_end(&mut decoded).unwrap();
    assert!(decoded == plain.body && gzip.body.len() * 6 < plain.body.len(), "{}", gzip.body.len());
    let zstd = app.get_with("/v1/batches", &token, "accept-encoding", "zstd").await;
    assert_eq!(zstd.header("content-encoding").as_deref(), Some("zstd"));
    assert!(zstd::decode_all(&zstd.body[..]).unwrap() == plain.body);
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

/// Decision 020: whoever hangs up early costs nothing more.
#[tokio::test]
async fn clients_that_hang_up_early_do_no_harm() {
    let (app, _, token) = bulky_nursery().await;
    for _ in 0..40 {
        let mut wire = Wire::open(&app).await;
        wire.send(get_v1(&token, "")).await;
        assert_eq!(wire.head().await.0, 200);
    }
    while crate::http::operator::gauge(&app, "batchscan_open_connections").await > 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(app.v1_ids("", &token).await.len(), BULK);
}

/// Decision 020: slow readers hold neither a reader of the store nor each other.
#[tokio::test]
async fn many_stalled_readers_keep_nobody_waiting() {
    let (app, _, token) = bulky_nursery().await;
    let mut stalled = Vec::new();
    for _ in 0..12 {
        let mut wire = Wire::open(&app).await;
        wire.send(get_v1(&token, "connection: close\r\n")).await;
        assert_eq!(wire.head().await.0, 200);
        stalled.push(wire);
    }
    let path = "/v2/batches?end_date=2026-01-01T00:00:00Z";
    for _ in 0..50 {
        assert_eq!(app.get(path, &token).await.ids(), ["b00000"]);
    }
    let last = stalled.last_mut().unwrap().rest().await;
    assert!(last.ends_with(b"0\r\n\r\n"), "it was only waiting");
}
