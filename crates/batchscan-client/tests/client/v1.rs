//! The array of v1 is complete or ends with an error.

use batchscan_client::{Error, TryStreamExt, Version};

use crate::mock_server::{ApiResponse as _, Framing, MockServer, Response};
use crate::{ALL, RetryLog, ids, numbered};

/// Decision 026.
#[tokio::test]
async fn a_truncated_array_is_an_error_and_not_retried() {
    let array = Response::array(0..3);
    let bytes = array.body.len();
    for framing in [Framing::Length, Framing::Chunked, Framing::UntilClose] {
        for missing in [1, 2, bytes / 3, bytes / 2, bytes - 1, bytes] {
            let server = MockServer::with_tokens([array.clone().framed(framing).truncated(missing)]);
            let error = ids(server.client().version(Version::V1)).await.unwrap_err();
            let is_lost = matches!(error, Error::ConnectionLost { .. });
            assert!(is_lost && error.can_retry(), "{framing:?} without {missing}: {error:?}");
            assert_eq!(server.counts(), (1, 1), "the caller may have used some of its batches");
        }
    }
}

#[tokio::test]
async fn batches_before_the_truncation_are_returned_first() {
    let array = Response::array(0..2_500).framed(Framing::UntilClose).truncated(1);
    let server = MockServer::with_tokens([array]);
    let mut batches = server.client().version(Version::V1).build().unwrap().batches(ALL);
    let mut count = 0;
    let error = loop {
        match batches.try_next().await {
            Ok(Some(_)) => count += 1,
            Ok(None) => panic!("no error"),
            Err(error) => break error,
        }
    };
    assert!((2_000..=2_500).contains(&count), "{count}");
    let expected = format!("lost the connection to {}: the array was truncated", server.address);
    assert_eq!(error.to_string(), expected);
    assert!(batches.try_next().await.unwrap().is_none());
}

#[tokio::test]
async fn errors_before_the_array_are_retried() {
    let responses =
        [Response::error(503, "busy"), Response::none(), Response::error(401, "old"), Response::array(0..3)];
    let (server, log) = (MockServer::with_tokens(responses), RetryLog::default());
    let client = server.client().version(Version::V1).on_retry(log.listener());
    assert_eq!(ids(client).await.unwrap(), numbered(0..3));
    assert_eq!((server.counts(), log.waits().len()), ((2, 4), 2));
}
