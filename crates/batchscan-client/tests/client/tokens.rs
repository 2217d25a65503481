//! Tokens: shared, renewed before they expire, and never requested endlessly.

use std::time::Duration;

use batchscan_client::{Client, Error, TryStreamExt};

use crate::mock_server::{ApiResponse as _, MockServer, Response, TOKEN};
use crate::{ALL, RetryLog, ids, numbered, paged};

#[tokio::test]
async fn credentials_are_sent_as_a_form_and_the_token_as_a_header() {
    let server = MockServer::with_tokens([Response::page(0..1, None)]);
    let client = Client::builder(server.url()).credentials("ann & co", "hush=7d+20 ü%");
    assert_eq!(ids(client).await.unwrap(), numbered(0..1));
    let [auth, page] = &server.requests()[..] else { panic!("{:?}", server.requests()) };
    assert_eq!(auth.header("content-type"), Some("application/x-www-form-urlencoded"));
    let form =
        [("grant_type", "client_credentials"), ("client_id", "ann & co"), ("client_secret", "hush=7d+20 ü%")];
    assert_eq!(auth.form(), form.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!(auth.header("authorization"), None);
    assert_eq!(page.header("authorization"), Some(format!("Bearer {TOKEN}1").as_str()));
    assert!(page.header("user-agent").unwrap().starts_with("batchscan-client/"));
}

#[tokio::test]
async fn clones_share_one_token() {
    // The delay makes all clones wait for the token.
    let server = MockServer::with_handler(|request| match request.query.first() {
        _ if request.method == "POST" => Response::token(1).delayed(Duration::from_millis(50)),
        None => Response::page(0..2, Some("c1")),
        Some(_) => Response::page(2..4, None),
    });
    let client = server.client().build().unwrap();
    let reads = (0..8).map(|_| tokio::spawn(client.clone().batches(ALL).try_collect::<Vec<_>>()));
    for read in reads.collect::<Vec<_>>() {
        assert_eq!(read.await.unwrap().unwrap().len(), 4);
    }
    client.sign_in().await.unwrap();
    assert_eq!(server.counts(), (1, 16));
}

/// Decision 008: services accept no token after its end. This one is due for renewal at once.
#[tokio::test]
async fn a_token_is_renewed_before_it_expires() {
    let token = || Response::new(200, r#"{"access_token":"abc","expires_in":1}"#);
    let responses = [token(), Response::page(0..1, Some("c")), token(), Response::page(1..2, None)];
    let server = MockServer::new(responses);
    assert_eq!(server.ids().await.unwrap(), numbered(0..2));
    assert_eq!(server.counts(), (2, 2));
}

#[tokio::test]
async fn a_rejected_token_is_renewed_without_a_wait() {
    let responses =
        [Response::page(0..2, Some("c")), Response::error(401, "expired"), Response::page(2..3, None)];
    let (server, log) = (MockServer::with_tokens(responses), RetryLog::default());
    assert_eq!(ids(server.client().on_retry(log.listener())).await.unwrap(), numbered(0..3));
    let requests = server.requests();
    let tokens: Vec<_> = requests.iter().filter_map(|request| request.header("authorization")).collect();
    assert_eq!(tokens, ["1", "1", "2"].map(|number| format!("Bearer {TOKEN}{number}")));
    assert!(log.waits().is_empty());
}

/// Decision 043.
#[tokio::test]
async fn a_token_that_is_rejected_twice_is_an_error() {
    let server = MockServer::with_tokens_and(|_| Response::error(401, "who are you?"));
    let error = server.ids().await.unwrap_err();
    assert_eq!(error, Error::TokenRejected { detail: Some("who are you?".into()) });
    assert_eq!(error.to_string(), "the service rejected a token that it had just issued (who are you?)");
    assert!(!error.can_retry());
    assert_eq!(server.counts(), (2, 2));
}

#[tokio::test]
async fn concurrent_requests_renew_a_rejected_token_once() {
    let server = MockServer::with_tokens_and(|request| {
        let is_first = request.header("authorization") == Some(&format!("Bearer {TOKEN}1"));
        if is_first { Response::error(401, "expired") } else { Response::page(0..1, None) }
    });
    let client = server.client().build().unwrap();
    client.sign_in().await.unwrap();
    let reads = (0..8).map(|_| tokio::spawn(client.batches(ALL).try_collect::<Vec<_>>()));
    for read in reads.collect::<Vec<_>>() {
        assert_eq!(read.await.unwrap().unwrap().len(), 1);
    }
    assert_eq!(server.counts().0, 2);
}

#[tokio::test]
async fn wrong_credentials_are_not_retried() {
    let service = paged(1, 1).await;
    service.client().build().unwrap().sign_in().await.unwrap();
    for (id, secret) in [(service.client_id(), "bs_made_up"), ("unknown", service.client_secret())] {
        let client = Client::builder(service.url()).credentials(id, secret);
        let signed_in = client.clone().build().unwrap().sign_in().await;
        for error in [signed_in.unwrap_err(), ids(client).await.unwrap_err()] {
            assert!(matches!(error, Error::CredentialsRejected { .. }) && !error.can_retry(), "{error:?}");
            let message = error.to_string();
            assert!(message.starts_with("the service rejected the credentials ("), "{message}");
            assert!(message.ends_with("); check the client id and secret"), "{message}");
        }
    }
    let server = MockServer::new([Response::error(401, "no"), Response::token(1)]);
    assert!(server.ids().await.is_err());
    assert_eq!(server.counts(), (1, 0));
}

/// API section 4: other fields of the token response are optional.
#[tokio::test]
async fn a_token_response_may_have_any_other_fields() {
    for body in [
        r#"{"access_token":"abc"}"#,
        r#"{"access_token":"abc","expires_in":null,"refresh_token":7,"scope":["x"]}"#,
        r#"{"expires_in":"3600","token_type":"Bearer","access_token":"abc"}"#,
        "\n{\n  \"access_token\": \"abc\",\n  \"expires_in\": 9e99\n}\n",
    ] {
        let pages = [Response::page(0..1, Some("c")), Response::page(1..2, None)];
        let server = MockServer::new([Response::new(200, body)].into_iter().chain(pages));
        assert_eq!(server.ids().await.unwrap(), numbered(0..2), "{body}");
        assert_eq!(server.requests()[2].header("authorization"), Some("Bearer abc"));
    }
}

#[tokio::test]
async fn a_token_that_is_not_a_valid_header_is_an_error() {
    let server = MockServer::with_handler(|_| Response::new(200, r#"{"access_token":"a\nb"}"#));
    let error = server.ids().await.unwrap_err();
    let expected = "the service rejected a token that it had just issued (not a valid header value)";
    assert_eq!(error.to_string(), expected);
    assert_eq!(server.counts(), (2, 0));
}

/// Decision 010.
#[tokio::test]
async fn a_credential_that_is_revoked_during_a_read_is_an_error() {
    let revoked = || Response::error(401, "revoked");
    let server = MockServer::new([Response::token(1), Response::page(0..1, Some("c")), revoked(), revoked()]);
    let mut pages = server.client().build().unwrap().pages(ALL);
    pages.try_next().await.unwrap();
    let error = pages.try_next().await.unwrap_err();
    assert_eq!(error, Error::CredentialsRejected { detail: Some("revoked".into()) });
    assert!(pages.try_next().await.unwrap().is_none(), "a stream ends after an error");
}
