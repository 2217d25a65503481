//! Secrets and tokens are never shown.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use batchscan_client::{Error, TryStreamExt};

use crate::mock_server::{ApiResponse as _, MockServer, Request, Response, SECRET, TOKEN, client_of};
use crate::{ALL, ids};

fn assert_no_secret(shown: &str) {
    for secret in [SECRET, TOKEN] {
        assert!(!shown.contains(secret), "{shown}");
    }
}

#[tokio::test]
async fn debug_shows_no_secret_or_token() {
    let responses = [Response::page(0..1, Some("c")), Response::none(), Response::error(400, "no")];
    let server = MockServer::with_tokens(responses);
    let retries = Arc::new(Mutex::new(String::new()));
    let log = retries.clone();
    let builder = server.client().on_retry(move |retry| log.lock().unwrap().push_str(&format!("{retry:?}")));
    let client = builder.clone().build().unwrap();
    let mut pages = client.pages(ALL);
    let page = pages.try_next().await.unwrap().unwrap();
    let received = page.batches().next().unwrap().unwrap();
    let error = pages.try_next().await.unwrap_err();
    assert_no_secret(&format!(
        "{builder:?} {builder:#?} {client:?} {client:#?} {page:?} {received:?} {error:?}"
    ));
    assert!(format!("{client:?}").contains("nursery"), "the client id is not secret");
    let retries = retries.lock().unwrap();
    assert!(retries.contains("Retry {"), "{retries}");
    assert_no_secret(&retries);
}

#[tokio::test]
async fn a_password_in_the_address_is_not_stored() {
    let builder = client_of(&format!("https://ann:{SECRET}@scans.example.org"));
    assert_no_secret(&format!("{builder:?}"));
    assert_no_secret(&format!("{:?}", builder.build().unwrap_err()));
}

/// An error that repeats what was sent, as text or as a list of field errors.
fn echo(request: &Request, status: u16, as_list: bool) -> Response {
    let sent = format!(
        "you sent {} and {:?}",
        String::from_utf8_lossy(&request.body),
        request.header("authorization")
    );
    if as_list {
        let entry =
            serde_json::json!({"type": "value_error", "loc": ["body", &sent], "msg": &sent, "input": &sent});
        return Response::new(status, serde_json::json!({"detail": [entry]}).to_string());
    }
    Response::error(status, &sent)
}

#[tokio::test]
async fn secrets_that_a_service_repeats_are_redacted() {
    for status in [400, 401, 403, 422, 500, 503] {
        for as_list in [false, true] {
            let handler = move |request: &Request| echo(request, status, as_list);
            for server in [MockServer::with_handler(handler), MockServer::with_tokens_and(handler)] {
                let error = ids(server.client().retry_for(Duration::ZERO)).await.unwrap_err();
                assert_no_secret(&format!("{error} {error:?}"));
                let has_detail = !matches!(error, Error::UnexpectedResponse { .. });
                assert!(has_detail && error.to_string().contains("[redacted]"), "{error}");
            }
        }
    }
}
