//! Wrong addresses and unusual services: one clear line each, at once, without a secret.

use std::time::Duration;

use batchscan_client::{ClientBuilder, Error, Version};
use batchscan_testbed::ScriptedServer;

use crate::ids;
use crate::mock_server::{ApiResponse as _, MockServer, Response, SECRET, TOKEN, client_of};

const HTML: &str = "<!doctype html><html><body>Welcome</body></html>";

/// The message at the first contact, and whether the caller may retry.
pub(crate) async fn first_error(client: ClientBuilder) -> (String, bool) {
    let error = ids(client).await.unwrap_err();
    let (message, debug) = (error.to_string(), format!("{error:?}"));
    assert_eq!(message.lines().count(), 1, "{message}");
    for secret in [SECRET, TOKEN] {
        assert!(!message.contains(secret) && !debug.contains(secret), "{debug}");
    }
    (message, error.can_retry())
}

fn unexpected(url: &str, reason: &str) -> (String, bool) {
    (format!("{url} does not respond like a batch scan service: {reason}; check the address"), false)
}

fn unreachable(host: &str, reason: &str) -> (String, bool) {
    (format!("cannot reach {host}: {reason}; check the address, and that the service is running"), true)
}

#[tokio::test]
async fn an_unreachable_address_is_named() {
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    for scheme in ["http", "https"] {
        let error = first_error(client_of(&format!("{scheme}://{address}"))).await;
        assert_eq!(error, unreachable(&address, "connection refused"));
    }
    let error = first_error(client_of("https://nothing.invalid")).await;
    // Without a DNS server the lookup itself fails.
    let expected =
        ["no such host", "host name lookup failed"].map(|reason| unreachable("nothing.invalid", reason));
    assert!(expected.contains(&error), "{error:?}");
}

#[tokio::test]
async fn an_unexpected_token_response_is_described() {
    let no_token = "the response has no access_token";
    for (response, reason) in [
        (Response::raw("SSH-2.0-OpenSSH_9.6\r\n"), "it does not speak HTTP (try https://)"),
        (Response::new(200, HTML).with("Content-Type", "text/html"), no_token),
        (Response::new(200, ""), no_token),
        (Response::new(200, "[]"), no_token),
        (Response::new(200, "{}"), no_token),
        (Response::new(200, r#"{"token":"x"}"#), no_token),
        (Response::new(200, r#"{"access_token":7}"#), no_token),
        (Response::new(404, "<html>Not Found</html>"), "it returned 404 Not Found"),
        (Response::new(405, ""), "it returned 405 Method Not Allowed"),
        (Response::new(204, ""), "it returned 204 No Content"),
    ] {
        let server = MockServer::new([response]);
        let expected = unexpected(&format!("{}/v2/auth", server.url()), reason);
        assert_eq!(first_error(server.client()).await, expected);
        assert_eq!(server.counts(), (1, 0));
    }
}

#[tokio::test]
async fn an_unexpected_page_is_described() {
    for (body, version, reason) in [
        (HTML, Version::V1, "not an array of batches: found '<'"),
        (HTML, Version::V2, "not a page of batches: expected value at line 1 column 1"),
        (
            r#"{"data":[]}"#,
            Version::V2,
            "not a page of batches: missing field `next_token` at line 1 column 11",
        ),
        (
            r#"{"next_token":null}"#,
            Version::V2,
            "not a page of batches: missing field `data` at line 1 column 19",
        ),
        (r#"{"data":{},"next_token":null}"#, Version::V2, "not a page of batches: data is not an array"),
        (
            r#"{"data":[],"next_token":7}"#,
            Version::V2,
            "not a page of batches: invalid type: integer `7`, expected a string at line 1 column 25",
        ),
        (
            "null",
            Version::V2,
            "not a page of batches: invalid type: null, expected struct Envelope at line 1 column 4",
        ),
    ] {
        let server = MockServer::with_tokens([Response::new(200, body)]);
        let path = if version == Version::V1 { "v1" } else { "v2" };
        let expected = unexpected(&format!("{}/{path}/batches", server.url()), reason);
        assert_eq!(first_error(server.client().version(version)).await, expected);
        assert_eq!(server.counts(), (1, 1), "{body}");
    }
}

/// Whether the client sees the text before it sends the request depends on the network.
#[tokio::test]
async fn data_before_the_request_is_an_error() {
    let server = ScriptedServer::greeting("220 mail.example.org ESMTP\r\n");
    let lost = |reason| (format!("lost the connection to {}: {reason}", server.address), true);
    let expected = [
        unexpected(&format!("{}/v2/auth", server.url()), "it does not speak HTTP (try https://)"),
        lost("unexpected data before the request"),
        lost("connection reset"),
    ];
    let error = first_error(client_of(&server.url())).await;
    assert!(expected.contains(&error), "{error:?}");
}

#[tokio::test]
async fn a_connection_closed_at_first_contact_is_not_retried() {
    let server = MockServer::new([Response::none(), Response::token(1)]);
    let expected = format!("lost the connection to {}: it closed the connection", server.address);
    assert_eq!(first_error(server.client()).await, (expected, true));
    assert_eq!(server.counts(), (1, 0));
}

/// Decision 043.
#[tokio::test]
async fn a_redirect_is_reported_and_not_followed() {
    let other = MockServer::with_tokens([Response::page(0..1, None)]);
    let target = format!("{}/v2/auth", other.url());
    for status in [301, 302, 303, 307, 308] {
        let redirect = || Response::new(status, "").with("Location", &target);
        for (server, path) in
            [(MockServer::new([redirect()]), "auth"), (MockServer::with_tokens([redirect()]), "batches")]
        {
            let url = format!("{}/v2/{path}", server.url());
            let expected = format!("{url} redirects to {target}; use that address if you trust it");
            assert_eq!(first_error(server.client()).await, (expected, false));
        }
    }
    assert!(other.requests().is_empty());
}

#[tokio::test]
async fn text_of_the_service_is_clipped_and_has_no_control_characters() {
    for response in [
        Response::error(400, &format!("\x1b[31m\n{}", "no! ".repeat(10_000))),
        Response::new(200, format!(r#"{{"data":"{}"}}"#, "x".repeat(100_000))),
    ] {
        let server = MockServer::with_tokens([response]);
        let (message, _) = first_error(server.client()).await;
        assert!(message.len() < 500 && !message.contains(char::is_control), "{message}");
    }
}

#[test]
fn errors_of_the_connection_can_be_retried_and_errors_of_the_content_cannot() {
    let lost = || Error::ConnectionLost { host: "a".into(), reason: "b".into() };
    let once =
        Error::RetriesExhausted { elapsed: Duration::from_millis(2_600), tries: 1, last: Box::new(lost()) };
    let expected = "lost the connection to a: b; gave up after 1 try in 3 s: the next one would be after the time limit \
                    for retries";
    assert_eq!(once.to_string(), expected);
    for (error, can_retry) in [
        (lost(), true),
        (once, true),
        (Error::Config("a".into()), false),
        (Error::InvalidBatch("a".into()), false),
        (Error::PaginationLoop("a"), false),
    ] {
        assert_eq!(error.can_retry(), can_retry, "{error}");
    }
}
