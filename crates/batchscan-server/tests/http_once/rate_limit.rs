//! Rate limits (decision 033).

use std::time::{Duration, Instant};

use batchscan_server::config::{Config, Rate};

use crate::http::app::skip_time;
use crate::http::*;

/// Four requests per minute. Getting a token is one.
async fn limited() -> (TestApp, Client) {
    let rate_limit = Some(Rate { requests: 4, per: Duration::from_secs(60) });
    let app = TestApp::with(Config { rate_limit, ..Config::default() }).await;
    let client = app.org("Nursery").await;
    (app, client)
}

#[track_caller]
fn is_too_many(reply: &Reply, wait: &str) {
    reply.is_detail(429, "Too many requests: wait for the time in Retry-After");
    reply.has_headers(&[("retry-after", wait)]);
}

/// Decisions 027, 033.
#[tokio::test]
async fn above_the_limit_is_a_429_with_the_time_to_wait() {
    let (app, client) = limited().await;
    let token = app.token(&client).await;
    for path in ["/v1/batches", "/v2/batches", "/v1/batches"] {
        assert_eq!(app.get(path, &token).await.status, 200);
    }
    for path in PATHS {
        is_too_many(&app.get(path, &token).await, "15");
    }
    let other = app.credential("Nursery", None).await;
    let other = app.token(&other).await;
    assert_eq!(app.get("/v1/batches", &other).await.status, 200, "each credential has its own limit");
    skip_time(Duration::from_secs(14)).await;
    is_too_many(&app.get("/v2/batches", &token).await, "1");
    skip_time(Duration::from_secs(1)).await;
    assert_eq!(app.get("/v2/batches", &token).await.status, 200);
}

/// Decision 033: token requests count; failed ones do not.
#[tokio::test]
async fn token_requests_count_and_failed_authentication_does_not() {
    let (app, client) = limited().await;
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

/// Decision 033: the limit is independent of the system's clock.
#[tokio::test]
async fn setting_the_clock_back_does_not_use_up_the_limit() {
    let (app, client) = limited().await;
    let token = app.token(&client).await;
    app.advance_secs(-86_400);
    for _ in 0..3 {
        assert_eq!(app.get("/v2/batches", &token).await.status, 200);
    }
    is_too_many(&app.get("/v2/batches", &token).await, "15");
}

/// Sends wrong secrets until their responses are delayed, and returns how many were sent.
async fn wrong_until_delayed(send: impl AsyncFn() -> Reply) -> usize {
    // More than one, because a busy machine may delay one before.
    let (mut sent, mut delayed) = (0, 0);
    while delayed < 3 {
        let start = Instant::now();
        assert_eq!(send().await.status, 401);
        delayed += usize::from(start.elapsed() >= DELAY);
        sent += 1;
        assert!(sent < 10_000, "no response was delayed");
    }
    sent
}

/// Decision 050.
const DELAY: Duration = Duration::from_secs(1);

/// Decision 050.
#[tokio::test]
async fn after_many_wrong_secrets_their_responses_are_delayed_and_the_right_one_is_not() {
    let (app, client, _) = TestApp::signed_in().await;
    let wrong = client.form().replace("client_secret=", "client_secret=x");
    let sent = wrong_until_delayed(async || app.post_form("/v2/auth", wrong.clone()).await).await;
    assert!(sent >= 600, "{sent}");
    assert_eq!(app.post_form("/v2/auth", client.form()).await.status, 200);
}

/// Decision 050: guesses of cookies, sign-in links and operator tokens count, too.
#[tokio::test]
async fn wrong_cookies_links_and_operator_tokens_are_limited() {
    let guess = format!("{}.{}", "A".repeat(16), "B".repeat(43));
    let cookie = format!("batchscan_session={guess}");
    for kind in ["cookie", "link", "operator token"] {
        let app = TestApp::with_operator().await;
        let send = async || match kind {
            "cookie" => Reply::to(app.request("POST", "/session/token").header("cookie", &cookie)).await,
            "link" => app.post_form("/session", format!("link={guess}")).await,
            _ => Reply::to(app.operator("GET", "/organisations", &guess)).await,
        };
        let sent = wrong_until_delayed(send).await;
        assert!(sent >= 600, "{kind}: {sent}");
    }
}

/// Decision 033: an exchange of the dashboard's cookie is a request like others.
#[tokio::test]
async fn token_exchanges_of_a_session_count() {
    let (app, client) = limited().await;
    let cookie = app.post_form("/session", client.form()).await.header("set-cookie").unwrap();
    let exchange = async || Reply::to(app.request("POST", "/session/token").header("cookie", &cookie)).await;
    for _ in 0..3 {
        assert_eq!(exchange().await.status, 200);
    }
    is_too_many(&exchange().await, "15");
}
