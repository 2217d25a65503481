//! Changes since a position (decision 052).

use std::time::Duration;

use batchscan_client::Error;

use crate::mock_server::{MockServer, Response};
use crate::{RetryLog, Service, bounded, paged};

const NO_WAIT: Duration = Duration::ZERO;

fn response(numbers: std::ops::Range<u32>, removed: &[&str], since: &str, more: bool) -> Response {
    let data: Vec<String> = numbers.map(|number| Service::batch(number).to_json()).collect();
    let removed = serde_json::json!(removed);
    let body =
        format!(r#"{{"data":[{}],"removed":{removed},"since":"{since}","more":{more}}}"#, data.join(","));
    Response::new(200, body)
}

#[tokio::test]
async fn a_request_waits_for_a_change() {
    let service = paged(1, 3).await;
    let client = service.client().build().unwrap();
    let since = client.changes(None, NO_WAIT).await.unwrap().since;
    let (changes, ()) = tokio::join!(client.changes(Some(&since), Duration::from_secs(30)), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        service.import(1..2).await;
    });
    assert_eq!(changes.unwrap().batches.batches().count(), 1);
}

/// Decision 043. The time that a service may wait is not taken from the time for retries.
#[tokio::test]
async fn temporary_errors_are_retried_and_waiting_does_not_count() {
    let busy = Response::error(503, "busy").delayed(Duration::from_millis(300));
    let old = Response::error(401, "old");
    let cut = response(0..2, &[], "p1", false).truncated(5);
    let server = MockServer::with_tokens([busy, old, cut, response(0..2, &["x"], "p1", true)]);
    let log = RetryLog::default();
    let client = server.client().retry_for(Duration::from_millis(200)).on_retry(log.listener());
    let client = client.build().unwrap();
    let changes = bounded(client.changes(Some("p 0"), Duration::from_secs(99))).await.unwrap();
    assert_eq!((changes.since.as_str(), changes.more, changes.removed), ("p1", true, vec!["x".to_owned()]));
    assert_eq!((server.counts(), log.errors().len()), ((2, 4), 2));
    assert_eq!(server.targets()[1], "/v2/changes?since=p+0&wait=45");
}

#[tokio::test]
async fn a_position_that_cannot_be_continued_is_an_error_of_its_own() {
    let responses = [
        Response::error(410, "restored"),
        Response::new(410, "<html>gone</html>"),
        response(0..1, &[], "p1", true),
        Response::new(200, r#"{"data":[],"next_token":null}"#),
    ];
    let server = MockServer::with_tokens(responses);
    let client = server.client().build().unwrap();
    let mut errors = Vec::new();
    for _ in 0..4 {
        errors.push(client.changes(Some("p1"), NO_WAIT).await.unwrap_err());
    }
    assert_eq!(errors[0], Error::PositionGone);
    assert!(!errors[0].can_retry());
    assert!(errors[1].to_string().contains("it returned 410 Gone"), "{}", errors[1]);
    assert_eq!(errors[2], Error::PaginationLoop("a position was repeated"));
    assert!(errors[3].to_string().contains("not changes: missing field `removed`"), "{}", errors[3]);
}
