//! Rate limits, where the operator sets one (decision 033).

use std::time::Duration;

use batchscan_server::config::{Config, Rate};
use serde_json::json;

use crate::http::app::TestApp;
use crate::http::reply::Reply;

/// Four requests a minute, of which the token is one.
async fn limited() -> TestApp {
    let rate_limit = Some(Rate { requests: 4, per: Duration::from_secs(60) });
    TestApp::with(Config { rate_limit, ..Config::default() }).await
}

#[track_caller]
fn is_too_many(reply: &Reply, wait: &str) {
    reply.is_error(429, &json!({ "detail": "Too many requests: wait as Retry-After says" }));
    assert_eq!(reply.header("retry-after").as_deref(), Some(wait));
}

/// Decisions 027, 033.
#[tokio::test]
async fn past_the_limit_is_a_429_that_says_how_long_to_wait() {
    let app = limited().await;
    let client = app.org("Nursery").await;
    let token = app.token(&client).await;
    for path in ["/v1/batches", "/v2/batches", "/v1/batches"] {
        assert_eq!(app.get(path, &token).await.status, 200);
    }
    for path in ["/v1/batches", "/v2/batches"] {
        is_too_many(&app.get(path, &token).await, "15");
    }
    app.advance_secs(14);
    is_too_many(&app.get("/v2/batches", &token).await, "1");
    app.advance_secs(1);
    assert_eq!(app.get("/v2/batches", &token).await.status, 200, "the advice was true");
}

/// Decision 033: per credential.
#[tokio::test]
async fn each_credential_has_a_limit_of_its_own() {
    let app = limited().await;
    let one = app.org("Nursery").await;
    let two = app.credential("Nursery", None).await;
    let (first, second) = (app.token(&one).await, app.token(&two).await);
    while app.get("/v1/batches", &first).await.status == 200 {}
    assert_eq!(app.get("/v1/batches", &first).await.status, 429);
    assert_eq!(app.get("/v1/batches", &second).await.status, 200);
}

/// Decision 033: tokens count too, and wrong secrets of a stranger use up nobody's share.
#[tokio::test]
async fn tokens_count_and_strangers_do_not() {
    let app = limited().await;
    let client = app.org("Nursery").await;
    for _ in 0..20 {
        let wrong = client.form().replace("client_secret=", "client_secret=x");
        assert_eq!(app.post_form("/v1/auth", wrong).await.status, 401);
        assert_eq!(app.get("/v1/batches", "x.y.z").await.status, 401);
    }
    for _ in 0..4 {
        assert_eq!(app.post_form("/v1/auth", client.form()).await.status, 200);
    }
    is_too_many(&app.post_form("/v1/auth", client.form()).await, "15");
}

/// Decision 033: off unless the operator sets one.
#[tokio::test]
async fn without_a_limit_nobody_is_refused() {
    let app = TestApp::start().await;
    let client = app.org("Nursery").await;
    let token = app.token(&client).await;
    for _ in 0..300 {
        assert_eq!(app.get("/v2/batches", &token).await.status, 200);
    }
}
