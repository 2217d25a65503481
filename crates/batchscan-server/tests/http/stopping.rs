//! The way down: answers under way finish, nothing new begins, and patience has an end.

use std::time::{Duration, Instant};

use batchscan_server::serve::ServeOptions;
use tokio::net::TcpStream;

use crate::http::app::TestApp;
use crate::http::sample::{many, many_bulky};
use crate::http::wire::Wire;

/// A service with a stream under way that its client does not read.
async fn streaming(drain: Duration) -> (TestApp, Wire) {
    let app = TestApp::serve(ServeOptions { drain, ..TestApp::options() }).await;
    let client = app.org("Nursery").await;
    app.import("Nursery", &many_bulky(300)).await;
    let token = app.token(&client).await;
    let mut wire = Wire::open(&app).await;
    wire.send(format!("GET /v1/batches HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n")).await;
    assert_eq!(wire.head().await.0, 200);
    (app, wire)
}

async fn refuses_connections(app: &TestApp) {
    while TcpStream::connect(app.address()).await.is_ok() {
        tokio::task::yield_now().await;
    }
}

/// Operating guide, "Start": answers under way finish.
#[tokio::test]
async fn a_stream_under_way_finishes_while_new_connections_are_refused() {
    let (mut app, mut wire) = streaming(Duration::from_secs(30)).await;
    let down = app.stop();
    refuses_connections(&app).await;
    assert!(!down.is_finished(), "it waits for its answer");
    assert!(wire.rest().await.ends_with(b"]\r\n0\r\n\r\n"), "whole");
    down.await.unwrap();
}

/// Decision 026: what is cut cannot be taken for the whole.
#[tokio::test]
async fn a_stream_that_outlasts_the_drain_is_cut() {
    let (mut app, mut wire) = streaming(Duration::from_millis(300)).await;
    let told = Instant::now();
    app.stop().await.unwrap();
    assert!(told.elapsed() < Duration::from_secs(3), "{:?}", told.elapsed());
    assert!(!wire.rest().await.ends_with(b"0\r\n\r\n"));
}

/// Operating guide, "Start".
#[tokio::test]
async fn idle_connections_do_not_hold_up_a_stop() {
    let mut app = TestApp::start().await;
    let (mut silent, mut kept) = (Wire::open(&app).await, Wire::open(&app).await);
    kept.send("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert_eq!(kept.answer().await.status, 200);
    let told = Instant::now();
    app.stop().await.unwrap();
    assert!(told.elapsed() < Duration::from_secs(3), "{:?}", told.elapsed());
    for wire in [&mut silent, &mut kept] {
        assert!(wire.is_closed_within(Duration::from_secs(1)).await);
    }
}

/// Operating guide, "Organisations and credentials".
#[tokio::test]
async fn when_a_credential_was_last_used_is_written_down_at_the_latest_on_the_way_down() {
    let mut app = TestApp::start().await;
    let client = app.org("Nursery").await;
    app.import("Nursery", &many(1)).await;
    let _ = app.token(&client).await;
    app.stop().await.unwrap();
    let known = app.store.credentials("Nursery").await.unwrap();
    assert_eq!(known[0].last_used_at, Some(app.now()));
}
