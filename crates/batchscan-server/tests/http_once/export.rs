//! Exports with HTTP Basic (decision 053).

use batchscan_server::config::{Config, Rate};
use serde_json::json;
use std::time::Duration;

use crate::http::log::lines_with;
use crate::http::*;

const PATH: &str = "/v2/export.csv";
const BOTH: &str = "Basic realm=\"batchscan\", charset=\"UTF-8\", Bearer";

async fn export(app: &TestApp, method: &str, path: &str, id: &str, secret: &str) -> Reply {
    Reply::to(app.request(method, path).basic_auth(id, Some(secret))).await
}

#[tokio::test]
async fn an_export_accepts_the_credentials_with_basic() {
    let (mut app, client, token) = TestApp::filled(2, &many(3)).await;
    app.advance_secs(60);
    let by_token = app.get(PATH, &token).await;
    let by_basic = export(&app, "GET", PATH, &client.id, &client.secret).await;
    assert_eq!((by_basic.status, by_basic.text()), (200, by_token.text()));
    assert_eq!(export(&app, "HEAD", PATH, &client.id, &client.secret).await.status, 200);
    for path in PATHS {
        let reply = export(&app, "GET", path, &client.id, &client.secret).await;
        assert_eq!(
            (reply.status, reply.header("www-authenticate").as_deref()),
            (401, Some("Bearer")),
            "{path}"
        );
    }
    assert!(lines_with(&client.secret).is_empty());
    app.stop().await.unwrap();
    let credentials = app.store.credentials(Some("Nursery")).await.unwrap();
    assert_eq!(credentials[0].last_used_at, Some(app.now()));
}

/// Excel and browsers show their dialog. After a token there is none to show.
#[tokio::test]
async fn an_export_without_credentials_asks_for_them() {
    let (app, client, _) = TestApp::signed_in().await;
    let none = app.send("GET", PATH).await;
    none.is_detail(
        401,
        "Not authenticated: send your client id and secret as user name and password (HTTP Basic), or the header \
        Authorization: Bearer ACCESS_TOKEN",
    );
    none.has_headers(&[("www-authenticate", BOTH)]);
    for (id, secret) in [(&*client.id, "wrong"), ("bs_unknown", &client.secret), ("", ""), (" ", " ")] {
        let wrong = export(&app, "GET", PATH, id, secret).await;
        wrong.is_invalid_client();
        wrong.has_headers(&[("www-authenticate", BOTH)]);
        assert_eq!(export(&app, "HEAD", PATH, id, secret).await.status, 401);
    }
    app.get(PATH, "x").await.is_invalid_token();
}

/// Decision 007: the query is checked after the credentials.
#[tokio::test]
async fn an_invalid_query_is_reported_after_wrong_credentials() {
    let (app, client, _) = TestApp::signed_in().await;
    let path = "/v2/export.xlsx?start_date=x&end_date=2026-01-31T08:00:00";
    let reply = export(&app, "GET", path, &client.id, &client.secret).await;
    reply.is_invalid_query(&[not_a_datetime("start_date"), naive("end_date")]);
    export(&app, "GET", path, &client.id, "wrong").await.is_invalid_client();
}

#[tokio::test]
async fn the_rate_limit_and_simulated_failures_include_basic() {
    let rate_limit = Some(Rate { requests: 1, per: Duration::from_secs(60) });
    let app = TestApp::with(Config { rate_limit, ..Config::default() }).await;
    let client = app.org("Nursery").await;
    for status in [200, 429] {
        assert_eq!(export(&app, "GET", PATH, &client.id, &client.secret).await.status, status);
    }
    let app = TestApp::with(Config { fail_rate: 1.0, ..Config::default() }).await;
    let client = app.org("Nursery").await;
    export(&app, "GET", PATH, &client.id, &client.secret).await.is_unavailable();
}

/// The operator sees that the organisation reads its data.
#[tokio::test]
async fn an_export_is_logged_and_counted_like_other_reads() {
    let (app, client, _) = TestApp::filled(2, &many(3)).await;
    let reply = export(&app, "GET", "/v2/export.ndjson", &client.id, &client.secret).await;
    let id = reply.header("x-request-id").unwrap();
    until(async || !lines_with(&id).is_empty()).await;
    let line: serde_json::Value = serde_json::from_str(&lines_with(&id)[0]).unwrap();
    for (name, value) in [
        ("route", json!("/v2/export.ndjson")),
        ("status", json!(200)),
        ("bytes", json!(reply.body.len())),
        ("client", json!(client.id)),
    ] {
        assert_eq!(line["fields"][name], value, "{line}");
    }
    let (metrics, now) = (metrics(&app).await, app.now().secs());
    assert!(metrics.contains("batchscan_requests_total{route=\"/v2/export.ndjson\",status=\"200\"} 1\n"));
    let read =
        format!("batchscan_organisation_last_read_timestamp_seconds{{organisation=\"Nursery\"}} {now}\n");
    assert!(metrics.contains(&read), "{metrics}");
}
