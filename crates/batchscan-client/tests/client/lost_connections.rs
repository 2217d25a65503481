//! Lost connections: the page is requested again, and no batch is lost or duplicated.

use std::sync::Arc;
use std::time::Duration;

use batchscan_client::{Error, TryStreamExt};
use batchscan_testbed::ScriptedServer;
use tokio::sync::Notify;

use crate::mock_server::{ApiResponse as _, Framing, MockServer, Response, in_order};
use crate::{ALL, RetryLog, Service, ids, numbered, texts};

/// Every way in which a response can end too early, with the expected reason.
fn truncations(page: &Response) -> Vec<(Response, &'static str)> {
    let framed = |framing| page.clone().framed(framing);
    vec![
        (Response::none(), "it closed the connection"),
        (Response::raw("HTTP/1.1 200 OK\r\nContent-Le"), "it closed the connection"),
        (framed(Framing::Length).truncated(10), "the response was truncated"),
        // Only the final chunk marker is missing.
        (framed(Framing::Chunked).truncated(5), "the response was truncated"),
        (framed(Framing::Chunked).truncated(100), "the response was truncated"),
        (framed(Framing::UntilClose).truncated(1), "the JSON was truncated"),
        (framed(Framing::UntilClose).truncated(40), "the JSON was truncated"),
        (Response::new(200, "").framed(Framing::UntilClose), "the JSON was truncated"),
    ]
}

/// Decision 043.
#[tokio::test]
async fn a_truncated_page_is_requested_again() {
    let page = |number: u32, next| Response::page(number * 3..number * 3 + 3, next);
    for (truncated, reason) in truncations(&page(1, Some("c2"))) {
        let bad = || truncated.clone();
        let responses = [page(0, Some("c1")), bad(), bad(), page(1, Some("c2")), page(2, None)];
        let (server, log) = (MockServer::with_tokens(responses), RetryLog::default());
        let client = server.client().on_retry(log.listener());
        assert_eq!(ids(client).await.unwrap(), numbered(0..9), "{truncated:?}");
        assert_eq!(server.counts(), (1, 5), "{truncated:?}");
        let error = format!("lost the connection to {}: {reason}", server.address);
        assert_eq!(log.errors(), [error.clone(), error]);
        assert_eq!(server.targets()[2..5], ["/v2/batches?next_token=c1"; 3]);
    }
}

#[tokio::test]
async fn a_page_may_have_any_framing() {
    for framing in [Framing::Length, Framing::Chunked, Framing::UntilClose] {
        let server = MockServer::with_tokens([Response::page(0..5, None).framed(framing)]);
        assert_eq!(server.ids().await.unwrap(), numbered(0..5), "{framing:?}");
    }
}

#[tokio::test]
async fn a_truncated_token_is_requested_again() {
    let truncated =
        truncations(&Response::token(1)).into_iter().filter(|(_, reason)| !reason.contains("JSON"));
    let early_end = Response::token(1).framed(Framing::UntilClose).truncated(20);
    for truncated in truncated.map(|(response, _)| response).chain([early_end]) {
        // The 503 comes first: until the service has responded once, a lost connection is final.
        let busy = Response::error(503, "busy");
        let server = MockServer::new([busy, truncated, Response::token(2), Response::page(0..1, None)]);
        assert_eq!(server.ids().await.unwrap(), numbered(0..1));
    }
}

#[tokio::test]
async fn the_client_waits_for_a_restarted_server() {
    let server = MockServer::with_tokens([Response::page(0..2, Some("c1"))]);
    let (log, refused) = (RetryLog::default(), Arc::new(Notify::new()));
    let (listener, notify) = (log.listener(), refused.clone());
    let client = server.client().on_retry(move |retry| {
        listener(retry);
        if matches!(retry.error, Error::Unreachable { .. }) {
            notify.notify_one();
        }
    });
    let mut pages = client.build().unwrap().pages(ALL);
    pages.try_next().await.unwrap();
    let address = server.address;
    drop(server);
    let restarted = tokio::spawn(async move {
        refused.notified().await;
        ScriptedServer::at(address, in_order([Response::page(2..6, Some("c2")), Response::page(6..7, None)]))
    });
    let expected: Vec<_> = (2..7).map(|number| Service::batch(number).to_json()).collect();
    assert_eq!(texts(pages).await.unwrap(), expected);
    assert!(
        log.errors().contains(&format!("cannot reach {address}: connection refused")),
        "{:?}",
        log.errors()
    );
    assert_eq!(restarted.await.unwrap().requests()[0].target, "/v2/batches?next_token=c1");
}

#[tokio::test]
async fn the_client_gives_up_on_a_server_that_does_not_return() {
    let server = MockServer::with_tokens([Response::page(0..2, Some("c1"))]);
    let mut pages = server.client().retry_for(Duration::from_millis(100)).build().unwrap().pages(ALL);
    pages.try_next().await.unwrap();
    let address = server.address;
    drop(server);
    let error = pages.try_next().await.unwrap_err();
    let expected = format!("cannot reach {address}: connection refused; gave up after ");
    assert!(error.to_string().starts_with(&expected) && error.can_retry(), "{error}");
}
