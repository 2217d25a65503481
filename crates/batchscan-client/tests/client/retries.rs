//! Retries: when, how long, how often. The waits themselves are tested in `retry.rs` without real time.

use std::time::Duration;

use batchscan_client::{Error, TryStreamExt, Version};
use batchscan_server::config::{Config, Rate};

use crate::mock_server::{ApiResponse as _, MockServer, Response};
use crate::{ALL, RetryLog, Service, ids, numbered};

const fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// API section 7: on 503, the client waits and retries. Decision 043: also on 429, 502 and 504.
#[tokio::test]
async fn temporary_errors_are_retried_after_the_configured_wait() {
    for status in [429, 502, 503, 504] {
        let busy = || Response::new(status, "<html>busy</html>");
        let server = MockServer::with_tokens([busy(), busy(), Response::page(0..1, None)]);
        let log = RetryLog::default();
        let client = server.client().retry_wait(millis(10)..=millis(20)).on_retry(log.listener());
        assert_eq!(ids(client).await.unwrap(), numbered(0..1), "{status}");
        let waits = log.waits();
        assert!(
            waits.len() == 2 && waits.iter().all(|wait| (millis(10)..=millis(20)).contains(wait)),
            "{waits:?}"
        );
    }
}

/// A date depends on clocks that may be wrong; zero would cause thousands of tries.
#[tokio::test]
async fn an_unusable_retry_after_is_ignored() {
    for value in ["0", "", "soon", "-1", "Wed, 21 Oct 2065 07:28:00 GMT"] {
        let busy = Response::error(503, "busy").with("Retry-After", value);
        let server = MockServer::with_tokens([busy, Response::page(0..1, None)]);
        let log = RetryLog::default();
        assert_eq!(ids(server.client().on_retry(log.listener())).await.unwrap(), numbered(0..1), "{value}");
        assert!((millis(1)..=millis(3)).contains(&log.waits()[0]), "{value}: {:?}", log.waits());
    }
}

#[tokio::test]
async fn token_requests_are_retried_too() {
    let responses =
        [Response::error(503, "busy"), Response::none(), Response::token(1), Response::page(0..1, None)];
    let server = MockServer::new(responses);
    assert_eq!(server.ids().await.unwrap(), numbered(0..1));
    assert_eq!(server.counts(), (3, 1));
}

#[tokio::test]
async fn each_page_has_its_own_limit() {
    let busy = || Response::error(503, "busy");
    let server = MockServer::with_tokens_and({
        let first = crate::mock_server::in_order([busy(), busy(), Response::page(0..1, Some("c"))]);
        move |request| if request.query.is_empty() { first(request) } else { busy() }
    });
    let client = server.client().retry_for(millis(2_000)).retry_wait(millis(20)..=millis(40));
    let error = ids(client).await.unwrap_err();
    let Error::RetriesExhausted { elapsed, tries, last } = &error else { panic!("{error:?}") };
    assert!(*elapsed >= millis(1_900) && error.can_retry(), "{error:?}");
    assert_eq!(server.counts().1, 3 + *tries as usize);
    assert_eq!(last.to_string(), "the service responded with 503 Service Unavailable (busy)");
}

/// Decision 043.
#[tokio::test]
async fn permanent_errors_are_not_retried() {
    for (status, expected, can_retry) in [
        (400, "rejected the request with 400 Bad Request (no luck)", false),
        (403, "rejected the request with 403 Forbidden (no luck)", false),
        (404, "it returned 404 Not Found; check the address", false),
        (422, "rejected the request with 422 Unprocessable Entity (no luck)", false),
        (500, "rejected the request with 500 Internal Server Error (no luck)", true),
        (501, "rejected the request with 501 Not Implemented (no luck)", true),
    ] {
        for version in [Version::V1, Version::V2] {
            let server = MockServer::with_tokens_and(move |_| Response::error(status, "no luck"));
            let error = ids(server.client().version(version)).await.unwrap_err();
            assert!(error.to_string().ends_with(expected) && error.can_retry() == can_retry, "{error}");
            assert_eq!(server.counts(), (1, 1), "{status}");
        }
    }
}

#[tokio::test]
async fn a_422_names_the_fields() {
    let body = r#"{"detail":[{"type":"timezone_aware","loc":["query","start_date"],"msg":"Input should have timezone info"},
        {"loc":["query","end_date"],"msg":"Input should be a valid datetime"}]}"#;
    let server = MockServer::with_tokens([Response::new(422, body)]);
    assert_eq!(
        server.ids().await.unwrap_err().to_string(),
        "the service rejected the request with 422 Unprocessable Entity (query.start_date: Input should have timezone \
         info; query.end_date: Input should be a valid datetime)"
    );
}

/// Decision 028: a 503 asks for 3 to 5 seconds. Decision 033: a 429 says when the next request is allowed.
#[tokio::test]
async fn the_client_understands_the_retry_after_of_the_real_service() {
    let rate = Rate { requests: 3, per: Duration::from_secs(300) };
    let unavailable = Config { fail_rate: 1.0, ..Config::default() };
    let limited = Config { rate_limit: Some(rate), page_rows: 1, ..Config::default() };
    for (config, status, expected) in [(unavailable, 503, 3..=5), (limited, 429, 6..=300)] {
        let service = Service::configured(config, None).await;
        service.import(0..5).await;
        let pages = service.client().retry_for(Duration::from_secs(2)).build().unwrap().pages(ALL);
        let error = pages.try_collect::<Vec<_>>().await.unwrap_err();
        let Error::RetryAfterTooLong { retry_after, last, .. } = &error else { panic!("{error:?}") };
        assert!(expected.contains(&retry_after.as_secs()), "{error:?}");
        assert!(last.to_string().contains(&format!("with {status} ")), "{error}");
    }
}
