//! The protocols: HTTP/1.0, HTTP/1.1 and HTTP/2 without TLS.

use reqwest::Version;
use serde_json::json;

use crate::http::app::{TestApp, plain_client};
use crate::http::reply::Reply;
use crate::http::sample::many;
use crate::http::wire::Wire;

async fn nursery() -> (TestApp, String) {
    let app = TestApp::paged(10).await;
    let client = app.org("Nursery").await;
    app.import("Nursery", &many(30)).await;
    let token = app.token(&client).await;
    (app, token)
}

/// Interface section 4, for the oldest of clients.
#[tokio::test]
async fn http_1_0_is_answered_and_closed() {
    let (app, token) = nursery().await;
    for path in ["/v1/batches", "/v2/batches"] {
        let mut wire = Wire::open(&app).await;
        wire.send(format!("GET {path} HTTP/1.0\r\nauthorization: Bearer {token}\r\n\r\n")).await;
        let reply = wire.answer().await;
        assert_eq!((reply.status, reply.header("transfer-encoding")), (200, None), "{path}");
        assert_eq!(reply.body, app.get(path, &token).await.body);
        assert!(wire.rest().await.is_empty());
    }
}

/// RFC 9112 §9.3.2: answers come in the order of the requests.
#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let (app, token) = nursery().await;
    let paths = ["/healthz", "/v1/batches", "/v2/batches", "/nothing", "/v1/batches?start_date=x", "/readyz"];
    let request = |path| format!("GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n");
    let mut wire = Wire::open(&app).await;
    wire.send(paths.map(request).concat()).await;
    for path in paths {
        let (piped, alone) = (wire.answer().await, app.get(path, &token).await);
        assert_eq!((piped.status, piped.body), (alone.status, alone.body), "{path}");
    }
}

/// Interface section 4, over HTTP/2 with prior knowledge.
#[tokio::test]
async fn http_2_speaks_the_whole_interface() {
    let (app, token) = nursery().await;
    let http = plain_client().http2_prior_knowledge().build().unwrap();
    for path in ["/v1/batches", "/v2/batches", "/nothing", "/v2/batches?next_token=x", "/healthz"] {
        let response = http.get(format!("{}{path}", app.url)).bearer_auth(&token).send().await.unwrap();
        assert_eq!(response.version(), Version::HTTP_2);
        let (status, alone) = (response.status().as_u16(), app.get(path, &token).await);
        assert_eq!((status, response.bytes().await.unwrap().to_vec()), (alone.status, alone.body), "{path}");
    }
}

/// Interface section 4: many requests at once on one connection.
#[tokio::test]
async fn http_2_answers_many_requests_at_once() {
    let (app, token) = nursery().await;
    let http = plain_client().http2_prior_knowledge().build().unwrap();
    let ask = |_| Reply::to(http.get(format!("{}/v1/batches", app.url)).bearer_auth(&token));
    let replies = futures_util::future::join_all((0..200).map(ask)).await;
    assert!(replies.iter().all(|reply| reply.status == 200 && reply.ids().len() == 30));
}

/// Decision 003, over HTTP/2.
#[tokio::test]
async fn a_token_is_had_over_http_2() {
    let app = TestApp::start().await;
    let client = app.org("Nursery").await;
    let http = plain_client().http2_prior_knowledge().build().unwrap();
    let kind = "application/x-www-form-urlencoded";
    let request = http.post(format!("{}/v2/auth", app.url)).header("content-type", kind).body(client.form());
    assert_eq!(Reply::to(request).await.json()["token_type"], "bearer");
}

/// RFC 9112 §3.2.2: the absolute form, which clients send to proxies.
#[tokio::test]
async fn a_request_target_may_be_absolute() {
    let app = TestApp::start().await;
    let reply = Wire::ask(&app, "GET http://example.org/healthz HTTP/1.1\r\nhost: example.org\r\n\r\n").await;
    assert_eq!(reply.json(), json!({ "status": "alive" }));
}

/// Decision 027: odd targets are errors like any other.
#[tokio::test]
async fn targets_that_are_no_paths_are_answered_with_a_detail() {
    let app = TestApp::start().await;
    for request in ["OPTIONS * HTTP/1.1", "CONNECT example.org:443 HTTP/1.1", "GET * HTTP/1.1"] {
        let reply = Wire::ask(&app, format!("{request}\r\nhost: x\r\n\r\n")).await;
        assert!((400..500).contains(&reply.status), "{request}: {}", reply.status);
        assert!(reply.json()["detail"].is_string(), "{request}");
    }
}

/// RFC 9110 §10.1.1: a client that asks first is told to go on.
#[tokio::test]
async fn expect_100_continue_is_honoured() {
    let app = TestApp::start().await;
    let client = app.org("Nursery").await;
    let form = client.form();
    let mut wire = Wire::open(&app).await;
    let head = format!(
        "POST /v1/auth HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: {}\r\n\
         content-type: application/x-www-form-urlencoded\r\n\r\n",
        form.len()
    );
    wire.send(head).await;
    assert_eq!(wire.head().await.0, 100);
    wire.send(form).await;
    assert_eq!(wire.answer().await.status, 200);
}

/// The connection stays for the next request, after errors too.
#[tokio::test]
async fn a_connection_is_kept_over_errors() {
    let app = TestApp::start().await;
    let mut wire = Wire::open(&app).await;
    for (path, status) in [("/nothing", 404), ("/v1/batches", 401), ("/v1/auth", 405), ("/healthz", 200)] {
        wire.send(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n")).await;
        assert_eq!(wire.answer().await.status, status, "{path}");
    }
}

#[tokio::test]
async fn a_client_that_closes_its_half_before_reading_is_answered() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let app = TestApp::start().await;
    for _ in 0..20 {
        let mut stream = tokio::net::TcpStream::connect(app.address()).await.unwrap();
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

/// Decision 027.
#[tokio::test]
async fn a_body_in_broken_chunks_is_a_bad_request_with_a_detail() {
    let app = TestApp::start().await;
    let head = "POST /v2/auth HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-www-form-urlencoded\r\n";
    let reply = Wire::ask(&app, format!("{head}transfer-encoding: chunked\r\n\r\nZZ\r\n")).await;
    assert_eq!(reply.status, 400);
    assert_eq!(reply.json(), serde_json::json!({ "detail": "The request body is not valid HTTP" }));
}
