//! Timeouts of connections and forms. The test skips the time instead of waiting for it.

use std::time::Duration;

use crate::http::app::{FORM, skip_time};
use crate::http::*;

const HEALTHZ: &str = "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n";
/// For the service to notice that time has passed.
const MOMENT: Duration = Duration::from_millis(100);

/// Ten seconds after now, and not before, the connection is closed without a response.
async fn is_closed_after_ten_seconds(mut raw: Raw) {
    tokio::time::sleep(MOMENT).await;
    skip_time(Duration::from_secs(9)).await;
    assert!(!raw.is_closed_within(MOMENT).await);
    skip_time(Duration::from_secs(1)).await;
    assert!(raw.is_closed_within(HANG_LIMIT).await);
}

/// Operating guide, "Limits".
#[tokio::test]
async fn a_connection_without_a_complete_head_is_closed_after_ten_seconds() {
    let app = TestApp::start().await;
    is_closed_after_ten_seconds(Raw::connect(&app).await).await;
    is_closed_after_ten_seconds(Raw::sending(&app, "GET /healthz HTTP/1.1\r\nx-pad: ").await).await;
    let mut second = Raw::sending(&app, HEALTHZ).await;
    assert_eq!(second.response().await.status, 200);
    second.send("GET /healthz HTTP/1.1\r\nx-pad: ").await;
    is_closed_after_ten_seconds(second).await;
}

/// Operating guide, "Limits": more bytes of the same head do not extend its timeout.
#[tokio::test]
async fn a_head_that_arrives_slowly_is_closed_ten_seconds_after_its_first_byte() {
    let app = TestApp::start().await;
    let mut raw = Raw::sending(&app, "GET /healthz HTTP/1.1\r\nx-pad: ").await;
    for _ in 0..3 {
        tokio::time::sleep(MOMENT).await;
        skip_time(Duration::from_secs(3)).await;
        assert!(raw.try_send("x").await);
    }
    tokio::time::sleep(MOMENT).await;
    skip_time(Duration::from_secs(1)).await;
    assert!(raw.is_closed_within(HANG_LIMIT).await);
}

/// Operating guide, "Limits".
#[tokio::test]
async fn an_idle_connection_is_closed_after_75_seconds() {
    let app = TestApp::start().await;
    let mut raw = Raw::sending(&app, HEALTHZ).await;
    assert_eq!(raw.response().await.status, 200);
    skip_time(Duration::from_secs(70)).await;
    raw.send(HEALTHZ).await;
    assert_eq!(raw.response().await.status, 200);
    tokio::time::sleep(MOMENT).await;
    skip_time(Duration::from_secs(75)).await;
    assert!(raw.is_closed_within(HANG_LIMIT).await);
}

/// Decision 027: a 408 has a JSON body too, and closes the connection.
#[tokio::test]
async fn a_form_that_does_not_arrive_is_a_408() {
    let app = TestApp::start().await;
    let head =
        format!("POST /v1/auth HTTP/1.1\r\nhost: x\r\ncontent-type: {FORM}\r\ncontent-length: 100\r\n\r\n");
    let mut raw = Raw::sending(&app, format!("{head}client_id=")).await;
    tokio::time::sleep(MOMENT).await;
    skip_time(Duration::from_secs(10)).await;
    let reply = raw.response().await;
    contract::check("POST", "/v1/auth", &reply);
    reply.is_detail(408, "The request body did not arrive in time");
    assert!(raw.is_closed_within(HANG_LIMIT).await);
}

/// Operating guide, "Limits".
#[tokio::test]
async fn five_hundred_incomplete_requests_block_no_one() {
    let app = TestApp::start().await;
    let client = app.org("Nursery").await;
    let mut incomplete = Vec::new();
    for n in 0..500 {
        let mut raw = Raw::connect(&app).await;
        if n % 2 == 0 {
            raw.send("GET /v1/batches HTTP/1.1\r\nauthoriz").await;
        }
        incomplete.push(raw);
    }
    let token = app.token(&client).await;
    assert_eq!(app.get("/v1/batches", &token).await.status, 200);
    assert!(metric(&app, "batchscan_open_connections").await > 500);
}
