//! Shutdown: unfinished responses are completed, up to a limit.

use std::time::Duration;

use batchscan_server::serve::ServeOptions;
use tokio::net::TcpStream;

use crate::http::*;

/// A service with a stream that its client does not read.
async fn streaming(drain: Duration) -> (TestApp, Raw) {
    let app = TestApp::serve(ServeOptions { drain, ..TestApp::options() }).await;
    let client = app.org("Nursery").await;
    app.import("Nursery", &many_bulky(300)).await;
    let token = app.token(&client).await;
    let request = format!("GET /v1/batches HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n");
    let mut raw = Raw::sending(&app, request).await;
    assert_eq!(raw.head().await.0, 200);
    (app, raw)
}

/// Operating guide, "Start".
#[tokio::test]
async fn a_stream_finishes_while_new_connections_are_refused() {
    let (mut app, mut raw) = streaming(Duration::from_secs(30)).await;
    let stopped = app.stop();
    while TcpStream::connect(app.address()).await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert!(!stopped.is_finished(), "it waits for the response");
    assert!(raw.read_rest().await.ends_with(b"]\r\n0\r\n\r\n"), "complete");
    stopped.await.unwrap();
}

/// Decision 026: an incomplete response must be recognisable.
#[tokio::test]
async fn a_stream_that_exceeds_the_drain_time_is_aborted() {
    let (mut app, mut raw) = streaming(Duration::from_millis(300)).await;
    app.stop().await.unwrap();
    assert!(!raw.read_rest().await.ends_with(b"0\r\n\r\n"));
}

/// Operating guide, "Start".
#[tokio::test]
async fn idle_connections_do_not_delay_a_stop() {
    let drain = 2 * HANG_LIMIT;
    let mut app = TestApp::serve(ServeOptions { drain, ..TestApp::options() }).await;
    let (mut silent, mut kept) = (Raw::connect(&app).await, Raw::connect(&app).await);
    kept.send("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert_eq!(kept.response().await.status, 200);
    tokio::time::timeout(HANG_LIMIT, app.stop()).await.unwrap().unwrap();
    for raw in [&mut silent, &mut kept] {
        assert!(raw.is_closed_within(HANG_LIMIT).await);
    }
}

/// Operating guide, "Organisations and credentials".
#[tokio::test]
async fn the_last_use_of_a_credential_is_stored_on_shutdown() {
    let (mut app, _, _) = TestApp::signed_in().await;
    app.stop().await.unwrap();
    let credentials = app.store.credentials(Some("Nursery")).await.unwrap();
    assert_eq!(credentials[0].last_used_at, Some(app.now()));
}
