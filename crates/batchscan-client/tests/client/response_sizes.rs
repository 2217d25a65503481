//! Endless and compressed responses.

use batchscan_client::{Client, Version};

use crate::mock_server::{ApiResponse as _, Framing, MockServer, Response, client_of};
use crate::{ALL, ids, numbered, paged, texts};

fn endless(status: u16, text: &str) -> Response {
    Response::new(status, text.repeat(4_096)).framed(Framing::Endless)
}

#[tokio::test]
async fn endless_responses_are_limited() {
    let blank = "               ";
    let v1 = Version::V1;
    for (responses, version, expected) in [
        (vec![endless(200, blank)], Version::V2, "the response is larger than 256 KiB; check the address"),
        (
            vec![endless(401, "who? ")],
            Version::V2,
            "rejected the credentials; check the client id and secret",
        ),
        (vec![Response::token(1), endless(500, "oh no ")], Version::V2, "with 500 Internal Server Error"),
        (vec![Response::token(1), endless(200, blank)], v1, "a batch larger than 16 MiB; check the address"),
    ] {
        let server = MockServer::new(responses);
        let error = ids(server.client().version(version)).await.unwrap_err();
        assert!(error.to_string().ends_with(expected), "{error}");
    }
    let server = MockServer::with_tokens([endless(503, "busy "), Response::page(0..1, None)]);
    assert_eq!(server.ids().await.unwrap(), numbered(0..1));
}

/// Linux connects the unspecified address to loopback, and the client does not know it as loopback.
#[tokio::test]
async fn compression_is_requested_except_on_loopback() {
    let server = MockServer::with_tokens([Response::page(0..1, None), Response::page(0..1, None)]);
    for client in [server.client(), client_of(&format!("http://0.0.0.0:{}", server.address.port()))] {
        assert_eq!(ids(client).await.unwrap(), numbered(0..1));
    }
    let requests = server.requests().into_iter().filter(|request| request.method == "GET");
    let accepted: Vec<_> =
        requests.map(|request| request.header("accept-encoding").map(str::to_owned)).collect();
    assert_eq!(accepted, [None, Some("gzip".to_owned())]);
}

/// Decision 032.
#[tokio::test]
async fn a_compressed_response_has_the_same_content() {
    let service = paged(500, 200).await;
    let port = service.url().rsplit(':').next().unwrap();
    for version in [Version::V1, Version::V2] {
        let compressed = Client::builder(format!("http://0.0.0.0:{port}"))
            .credentials(service.client_id(), service.client_secret());
        let [compressed, plain] =
            [compressed, service.client()].map(|client| client.version(version).build().unwrap().pages(ALL));
        assert_eq!(texts(compressed).await.unwrap(), texts(plain).await.unwrap());
    }
}
