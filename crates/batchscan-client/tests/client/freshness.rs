//! Freshness: whether anything changed, without reading it.

use batchscan_client::{Client, DateRange, Error, Freshness};

use crate::mock_server::{ApiResponse as _, MockServer, Response};
use crate::{ALL, Service, paged};

async fn changed_etag(client: &Client, range: DateRange, etag: Option<&str>) -> String {
    match client.freshness(range, etag).await.unwrap() {
        Freshness::Changed { etag } => etag.unwrap(),
        Freshness::Unchanged => panic!("unchanged"),
    }
}

/// Decisions 031 and 044.
#[tokio::test]
async fn nothing_changes_until_an_import() {
    let service = paged(10, 3).await;
    let client = service.client().build().unwrap();
    let first = changed_etag(&client, ALL, None).await;
    assert_eq!(client.freshness(ALL, Some(&first)).await.unwrap(), Freshness::Unchanged);
    service.import(10..11).await;
    let second = changed_etag(&client, ALL, Some(&first)).await;
    assert_ne!(first, second);
    assert_eq!(client.freshness(ALL, Some(&second)).await.unwrap(), Freshness::Unchanged);
    let range = DateRange { start: Some(Service::batch(5).batch_creation_date), end: None };
    assert_ne!(changed_etag(&client, range, Some(&second)).await, second);
}

#[tokio::test]
async fn a_service_without_etags_always_counts_as_changed() {
    let server = MockServer::with_tokens([Response::array(0..1), Response::array(0..1)]);
    let client = server.client().build().unwrap();
    for etag in [None, Some("\"abc\"")] {
        assert_eq!(client.freshness(ALL, etag).await.unwrap(), Freshness::Changed { etag: None });
    }
    let requests = server.requests();
    let sent: Vec<_> = requests.iter().skip(1).map(|request| request.header("if-none-match")).collect();
    assert_eq!(sent, [None, Some("\"abc\"")]);
    assert_eq!(server.targets()[1], "/v1/batches");
}

#[tokio::test]
async fn temporary_errors_are_retried() {
    let responses = [Response::error(503, "busy"), Response::error(401, "old"), Response::new(304, "")];
    let server = MockServer::with_tokens(responses);
    let client = server.client().build().unwrap();
    assert_eq!(client.freshness(ALL, Some("\"abc\"")).await.unwrap(), Freshness::Unchanged);
    assert_eq!(server.counts(), (2, 3));
}

#[tokio::test]
async fn an_unexpected_304_and_an_invalid_etag_are_errors() {
    let server = MockServer::with_tokens([Response::new(304, "")]);
    let client = server.client().build().unwrap();
    let error = client.freshness(ALL, Some("a\nb")).await.unwrap_err();
    assert_eq!(error, Error::Config("the ETag is not a valid header value".into()));
    assert!(server.requests().is_empty());
    let error = client.freshness(ALL, None).await.unwrap_err();
    assert!(error.to_string().contains("it returned 304 Not Modified"), "{error}");
}
