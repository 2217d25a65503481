//! What takes ten seconds: connections that say nothing, too little, or not enough yet.
//!
//! The slow cases are watched side by side, once, by the first test that asks: they cost as much as their longest.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::runtime::Runtime;

use crate::http::app::TestApp;
use crate::http::contract;
use crate::http::reply::Reply;
use crate::http::wire::Wire;

const HEAD_WAIT_SECS: f64 = 10.0;
/// How much later than promised the end may be seen on a busy machine.
const SLACK_SECS: f64 = 2.0;

/// What was seen of each slow case.
struct Seen {
    silent_secs: f64,
    trickled_secs: f64,
    second_head_secs: f64,
    idle: Reply,
    slow_form: Reply,
    slow_form_secs: f64,
    closed_after_slow_form: bool,
}

static SEEN: LazyLock<Seen> = LazyLock::new(|| {
    // A runtime of its own: the first test's is gone when the others look.
    std::thread::spawn(|| Runtime::new().unwrap().block_on(watch())).join().unwrap()
});

async fn watch() -> Seen {
    let app = TestApp::start().await;
    let (silent_secs, trickled_secs, second_head_secs, idle, slow) =
        tokio::join!(silent(&app), trickled(&app), second_head(&app), idle(&app), slow_form(&app));
    let (slow_form, slow_form_secs, closed_after_slow_form) = slow;
    Seen {
        silent_secs,
        trickled_secs,
        second_head_secs,
        idle,
        slow_form,
        slow_form_secs,
        closed_after_slow_form,
    }
}

/// Seconds until a connection that sends nothing is closed.
async fn silent(app: &TestApp) -> f64 {
    let mut wire = Wire::open(app).await;
    let opened = Instant::now();
    assert!(wire.is_closed_within(Duration::from_secs(15)).await);
    opened.elapsed().as_secs_f64()
}

/// Seconds from the first byte until a connection that sends a byte now and then is closed.
async fn trickled(app: &TestApp) -> f64 {
    let mut wire = Wire::open(app).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    closed_while_trickling(&mut wire).await
}

/// The same where a request was answered before.
async fn second_head(app: &TestApp) -> f64 {
    let mut wire = Wire::open(app).await;
    wire.send("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert_eq!(wire.answer().await.status, 200);
    closed_while_trickling(&mut wire).await
}

async fn closed_while_trickling(wire: &mut Wire) -> f64 {
    wire.send("GET /healthz HTTP/1.1\r\nx-pad: ").await;
    let begun = Instant::now();
    while !wire.is_closed_within(Duration::from_millis(400)).await {
        assert!(begun.elapsed() < Duration::from_secs(15));
        let _ = wire.try_send("x").await;
    }
    begun.elapsed().as_secs_f64()
}

/// The answer on a connection that was idle for longer than a head may take.
async fn idle(app: &TestApp) -> Reply {
    let mut wire = Wire::open(app).await;
    let request = "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n";
    wire.send(request).await;
    assert_eq!(wire.answer().await.status, 200);
    tokio::time::sleep(Duration::from_millis(11_500)).await;
    wire.send(request).await;
    wire.answer().await
}

/// The answer to a form that does not come, how long it took, and whether the connection was closed.
async fn slow_form(app: &TestApp) -> (Reply, f64, bool) {
    let mut wire = Wire::open(app).await;
    let kind = "content-type: application/x-www-form-urlencoded";
    wire.send(format!(
        "POST /v1/auth HTTP/1.1\r\nhost: x\r\n{kind}\r\ncontent-length: 100\r\n\r\nclient_id="
    ))
    .await;
    let begun = Instant::now();
    let reply = wire.answer().await;
    let secs = begun.elapsed().as_secs_f64();
    (reply, secs, wire.is_closed_within(Duration::from_secs(3)).await)
}

#[track_caller]
fn assert_about_ten(secs: f64) {
    assert!((HEAD_WAIT_SECS - 0.5..HEAD_WAIT_SECS + SLACK_SECS).contains(&secs), "{secs} s");
}

/// Operating guide, "Limits".
#[test]
fn a_connection_that_sends_nothing_is_closed_after_ten_seconds() {
    assert_about_ten(SEEN.silent_secs);
}

/// Operating guide, "Limits".
#[test]
fn a_head_that_trickles_is_cut_ten_seconds_after_its_first_byte() {
    assert_about_ten(SEEN.trickled_secs);
}

/// Operating guide, "Limits".
#[test]
fn a_later_head_that_trickles_is_cut_too() {
    assert_about_ten(SEEN.second_head_secs);
}

/// Operating guide, "Limits".
#[test]
fn an_idle_connection_outlives_the_wait_for_a_head() {
    assert_eq!((SEEN.idle.status, SEEN.idle.json()), (200, json!({ "status": "alive" })));
}

/// Decision 027: a JSON body with `detail`, always.
#[test]
fn a_form_that_does_not_come_is_a_408_and_the_end_of_its_connection() {
    contract::hold("POST", "/v1/auth", &SEEN.slow_form);
    SEEN.slow_form.is_error(408, &json!({ "detail": "The request body did not arrive in time" }));
    assert_about_ten(SEEN.slow_form_secs);
    assert!(SEEN.closed_after_slow_form);
}

/// Operating guide, "Limits".
#[tokio::test]
async fn five_hundred_half_open_connections_keep_nobody_waiting() {
    let app = TestApp::start().await;
    let client = app.org("Nursery").await;
    let mut half_open = Vec::new();
    for n in 0..500 {
        let mut wire = Wire::open(&app).await;
        if n % 2 == 0 {
            wire.send("GET /v1/batches HTTP/1.1\r\nauthoriz").await;
        }
        half_open.push(wire);
    }
    let begun = Instant::now();
    let token = app.token(&client).await;
    assert_eq!(app.get("/v1/batches", &token).await.status, 200);
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    assert!(crate::http::operator::gauge(&app, "batchscan_open_connections").await > 500);
}
