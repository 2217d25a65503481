//! Walks that would never end.

use std::sync::atomic::{AtomicU32, Ordering};

use batchscan_client::Error;

use crate::script::{Answer, Script};
use crate::{ALL, ids, texts};

/// Decision 043.
#[tokio::test]
async fn a_cursor_that_comes_again_is_an_error() {
    let circles: [&[&str]; 3] = [&["a", "a"], &["a", "b", "a"], &["a", "b", "c", "d", "c"]];
    for cursors in circles {
        let pages = cursors.iter().enumerate().map(|(number, next)| {
            let number = u32::try_from(number).unwrap();
            Answer::page(number..number + 1, Some(next))
        });
        let script = Script::signed_in(pages).await;
        let error = ids(script.client().build().unwrap().batches(ALL)).await.unwrap_err();
        assert_eq!(error.to_string(), "the service's pages run in a circle: a cursor came a second time");
        assert!(matches!(error, Error::Circle { .. }) && !error.can_retry());
        assert_eq!(script.counts(), (1, cursors.len()));
    }
}

#[tokio::test]
async fn a_walk_that_goes_on_from_a_cursor_is_guarded_too() {
    let script = Script::with_tokens(|_| Answer::page(0..1, Some("c"))).await;
    let pages = script.client().build().unwrap().pages_after(ALL, "c");
    let error = texts(pages).await.unwrap_err();
    assert!(matches!(error, Error::Circle { .. }), "{error:?}");
}

#[tokio::test]
async fn pages_without_a_batch_are_not_read_for_ever() {
    let served = AtomicU32::new(0);
    let script = Script::with_tokens(move |_| {
        let number = served.fetch_add(1, Ordering::SeqCst);
        Answer::page(0..0, Some(&format!("c{number}")))
    })
    .await;
    let error = ids(script.client().build().unwrap().batches(ALL)).await.unwrap_err();
    let expected = "the service's pages run in a circle: page after page holds no batch and names another";
    assert_eq!(error.to_string(), expected);
    assert_eq!(script.counts(), (1, 1_001));
}
