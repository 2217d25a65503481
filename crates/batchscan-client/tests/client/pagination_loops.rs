//! Pagination that would never end.

use std::sync::atomic::{AtomicU32, Ordering};

use batchscan_client::Error;

use crate::mock_server::{ApiResponse as _, MockServer, Response};
use crate::{ALL, texts};

/// Decision 043.
#[tokio::test]
async fn a_repeated_cursor_is_an_error() {
    let loops: [&[&str]; 3] = [&["a", "a"], &["a", "b", "a"], &["a", "b", "c", "d", "c"]];
    for cursors in loops {
        let pages = (0..).zip(cursors).map(|(number, next)| Response::page(number..number + 1, Some(next)));
        let server = MockServer::with_tokens(pages);
        let error = server.ids().await.unwrap_err();
        assert_eq!(error.to_string(), "pagination loops: a cursor was repeated");
        assert!(matches!(error, Error::PaginationLoop { .. }) && !error.can_retry());
        assert_eq!(server.counts(), (1, cursors.len()));
    }
    let server = MockServer::with_tokens_and(|_| Response::page(0..1, Some("c")));
    let error = texts(server.client().build().unwrap().pages_after(ALL, "c")).await.unwrap_err();
    assert!(matches!(error, Error::PaginationLoop { .. }), "{error:?}");
}

#[tokio::test]
async fn empty_pages_are_not_read_forever() {
    let count = AtomicU32::new(0);
    let server = MockServer::with_tokens_and(move |_| {
        let number = count.fetch_add(1, Ordering::SeqCst);
        Response::page(0..0, Some(&format!("c{number}")))
    });
    let error = server.ids().await.unwrap_err();
    assert_eq!(error.to_string(), "pagination loops: too many empty pages in a row");
    assert_eq!(server.counts(), (1, 1_001));
}
