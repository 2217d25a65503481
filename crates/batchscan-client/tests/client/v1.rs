//! v1's one array: it comes whole, or with an error.

use batchscan_client::{Error, TryStreamExt, Version};

use crate::script::{Answer, Framing, Script};
use crate::{ALL, Service, Waits, ids, numbered};

/// Decision 026: a failed stream is cut.
#[tokio::test]
async fn an_array_that_breaks_in_the_middle_is_an_error_and_never_a_clean_end() {
    let array = Answer::array(0..3);
    let bytes = array.body_bytes();
    for framing in [Framing::Length, Framing::Chunked, Framing::UntilClose] {
        for lacking in [1, 2, bytes / 3, bytes / 2, bytes - 1, bytes] {
            let script = Script::signed_in([array.clone().framed(framing).lacking(lacking)]).await;
            let client = script.client().version(Version::V1).build().unwrap();
            let error = client.batches(ALL).try_collect::<Vec<_>>().await.unwrap_err();
            assert!(matches!(error, Error::Broken { .. }), "{framing:?} lacking {lacking}: {error:?}");
            assert!(error.can_retry());
            assert_eq!(
                script.counts(),
                (1, 1),
                "an array is not asked for again: its batches may be out already"
            );
        }
    }
}

#[tokio::test]
async fn what_came_before_the_break_is_delivered_first() {
    let array = Answer::array(0..2_500).framed(Framing::UntilClose).lacking(1);
    let script = Script::signed_in([array]).await;
    let mut batches = script.client().version(Version::V1).build().unwrap().batches(ALL);
    let mut count = 0;
    let error = loop {
        match batches.try_next().await {
            Ok(Some(_)) => count += 1,
            Ok(None) => panic!("a clean end"),
            Err(error) => break error,
        }
    };
    assert!((2_000..2_500).contains(&count), "{count}");
    let expected = format!("the connection to {} broke: the array ends in the middle", script.address);
    assert_eq!(error.to_string(), expected);
    assert!(batches.try_next().await.unwrap().is_none());
}

#[tokio::test]
async fn the_beginning_is_tried_again() {
    let answers =
        [Answer::error(503, "busy"), Answer::nothing(), Answer::error(401, "old"), Answer::array(0..3)];
    let script = Script::signed_in(answers).await;
    let waits = Waits::default();
    let client = script.client().version(Version::V1).on_retry(waits.listener()).build().unwrap();
    assert_eq!(ids(client.batches(ALL)).await.unwrap(), numbered(0..3));
    assert_eq!((script.counts(), waits.heard().len()), ((2, 4), 2));
}

#[tokio::test]
async fn what_follows_the_array_is_an_error() {
    let batch = Service::batch(0).to_json();
    let script = Script::signed_in([Answer::new(200, format!("[{batch}]{{\"detail\":\"oh no\"}}"))]).await;
    let error = ids(script.client().version(Version::V1).build().unwrap().batches(ALL)).await.unwrap_err();
    assert!(error.to_string().contains("no array of batches: found '{'"), "{error}");
}
