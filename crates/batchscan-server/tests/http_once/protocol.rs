//! HTTP/1.0, HTTP/1.1 and HTTP/2 without TLS.

use reqwest::Version;
use serde_json::json;

use crate::http::app::FORM;
use crate::http::*;

async fn nursery() -> (TestApp, Client, String) {
    TestApp::filled(10, &many(30)).await
}

/// Contract section 4, with HTTP/1.0.
#[tokio::test]
async fn http_1_0_gets_a_whole_response_and_is_closed() {
    let (app, _, token) = nursery().await;
    for path in PATHS {
        let request = format!("GET {path} HTTP/1.0\r\nauthorization: Bearer {token}\r\n\r\n");
        let mut raw = Raw::sending(&app, request).await;
        let reply = raw.response().await;
        assert_eq!((reply.status, reply.header("transfer-encoding")), (200, None), "{path}");
        assert_eq!(reply.body, app.get(path, &token).await.body);
        assert!(raw.read_rest().await.is_empty());
    }
}

/// RFC 9112 §9.3.2.
#[tokio::test]
async fn pipelined_requests_get_responses_in_order() {
    let (app, _, token) = nursery().await;
    let paths = ["/healthz", "/v1/batches", "/v2/batches", "/nothing", "/v1/batches?start_date=x", "/readyz"];
    let mut raw = Raw::sending(&app, paths.map(|path| get_head(path, &token, "")).concat()).await;
    for path in paths {
        let (pipelined, alone) = (raw.response().await, app.get(path, &token).await);
        assert_eq!((pipelined.status, pipelined.body), (alone.status, alone.body), "{path}");
    }
}

/// Contract section 4; decision 003: over HTTP/2 with prior knowledge, many requests at once.
#[tokio::test]
async fn http_2_supports_the_whole_api() {
    let (app, client, token) = nursery().await;
    let http = plain_client().http2_prior_knowledge().build().unwrap();
    for path in ["/v1/batches", "/v2/batches", "/nothing", "/v2/batches?next_token=x", "/healthz"] {
        let response = http.get(format!("{}{path}", app.url)).bearer_auth(&token).send().await.unwrap();
        assert_eq!(response.version(), Version::HTTP_2);
        let (status, alone) = (response.status().as_u16(), app.get(path, &token).await);
        assert_eq!((status, response.bytes().await.unwrap().to_vec()), (alone.status, alone.body), "{path}");
    }
    let auth = http.post(format!("{}/v2/auth", app.url)).header("content-type", FORM).body(client.form());
    assert_eq!(Reply::to(auth).await.json()["token_type"], "bearer");
    let get = |_| Reply::to(http.get(format!("{}/v1/batches", app.url)).bearer_auth(&token));
    let replies = futures_util::future::join_all((0..200).map(get)).await;
    assert!(replies.iter().all(|reply| reply.status == 200 && reply.ids().len() == 30));
}

/// RFC 9112 §3.2.2: the absolute form; decision 027 for targets that are not paths.
#[tokio::test]
async fn a_request_target_may_be_absolute_and_others_are_errors() {
    let app = TestApp::start().await;
    let absolute = "GET http://example.org/healthz HTTP/1.1\r\nhost: example.org\r\n\r\n";
    assert_eq!(Raw::request(&app, absolute).await.json(), json!({ "status": "alive" }));
    for request in ["OPTIONS * HTTP/1.1", "CONNECT example.org:443 HTTP/1.1", "GET * HTTP/1.1"] {
        let reply = Raw::request(&app, format!("{request}\r\nhost: x\r\n\r\n")).await;
        assert!((400..500).contains(&reply.status), "{request}: {}", reply.status);
        assert!(reply.json()["detail"].is_string(), "{request}");
    }
}

/// RFC 9110 §10.1.1.
#[tokio::test]
async fn expect_100_continue_is_supported() {
    let (app, client, _) = TestApp::signed_in().await;
    let form = client.form();
    let mut raw = Raw::sending(
        &app,
        format!(
            "POST /v1/auth HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: {}\r\n\
             content-type: {FORM}\r\n\r\n",
            form.len()
        ),
    )
    .await;
    assert_eq!(raw.head().await.0, 100);
    raw.send(form).await;
    assert_eq!(raw.response().await.status, 200);
}

#[tokio::test]
async fn a_connection_stays_open_after_errors() {
    let app = TestApp::start().await;
    let mut raw = Raw::connect(&app).await;
    for (path, status) in [("/nothing", 404), ("/v1/batches", 401), ("/v1/auth", 405), ("/healthz", 200)] {
        raw.send(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n")).await;
        assert_eq!(raw.response().await.status, status, "{path}");
    }
}

#[tokio::test]
async fn a_half_closed_connection_gets_its_response() {
    let app = TestApp::start().await;
    for _ in 0..20 {
        let mut raw = Raw::sending(&app, "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await;
        raw.half_close().await;
        assert_eq!(raw.response().await.status, 200);
        assert!(raw.read_rest().await.is_empty());
    }
}
