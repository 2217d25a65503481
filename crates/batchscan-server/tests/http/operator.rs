//! What the operator sees and sets: health, metrics, request ids, log lines, the end of v1.

use batchscan_server::config::Config;
use batchscan_server::serve::ServeOptions;
use serde_json::json;

use crate::http::app::{TestApp, instant};
use crate::http::journal;
use crate::http::reply::Reply;
use crate::http::sample::many;

/// A metric without labels, as the service tells it.
pub(crate) async fn gauge(app: &TestApp, name: &str) -> u64 {
    value(&metrics(app).await, &format!("{name} "))
}

async fn metrics(app: &TestApp) -> String {
    Reply::to(app.request("GET", "/metrics")).await.text().to_owned()
}

/// The number on the line that begins so; 0 where there is none yet.
fn value(metrics: &str, start: &str) -> u64 {
    let line = metrics.lines().find(|line| line.starts_with(start));
    line.map_or(0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
}

/// A service with an address of its own for the operator.
async fn with_operator() -> TestApp {
    let config = Config { metrics_in_public: false, ..Config::default() };
    let operator_listen = Some("127.0.0.1:0".to_owned());
    TestApp::serve(ServeOptions { operator_listen, config, ..TestApp::options() }).await
}

/// Operating guide, "Watching it".
#[tokio::test]
async fn metrics_count_requests_by_route_and_status() {
    let app = TestApp::start().await;
    let client = app.org("Nursery").await;
    let token = app.token(&client).await;
    for _ in 0..3 {
        app.get("/v1/batches", &token).await;
    }
    app.get("/v1/batches", "x").await;
    app.get("/some/where/else", &token).await;
    let text = metrics(&app).await;
    let count = |route, status| {
        value(&text, &format!("batchscan_requests_total{{route=\"{route}\",status=\"{status}\"}}"))
    };
    assert_eq!((count("/v1/batches", 200), count("/v1/batches", 401)), (3, 1));
    assert_eq!((count("/v2/auth", 200), count("other", 404)), (1, 1));
    assert!(!text.contains("/some/where"), "strangers make no labels");
}

/// Operating guide, "Watching it".
#[tokio::test]
async fn metrics_tell_latency_bytes_cache_store_and_connections() {
    let app = TestApp::start().await;
    let client = app.org("Nursery").await;
    app.import("Nursery", &many(10)).await;
    let token = app.token(&client).await;
    let bytes = app.get("/v2/batches", &token).await.body.len();
    app.get("/v2/batches", &token).await;
    app.get("/v2/batches", &token).await;
    app.lose_batches();
    app.get("/v1/batches", &token).await;
    let reply = Reply::to(app.request("GET", "/metrics")).await;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!((reply.status, reply.header("content-type").as_deref()), (200, Some(kind)));
    let text = reply.text();
    let number = |start: &str| value(text, start);
    assert_eq!(number("batchscan_request_seconds_count{route=\"/v2/batches\"}"), 3);
    assert_eq!(number("batchscan_request_seconds_bucket{le=\"+Inf\",route=\"/v2/batches\"}"), 3);
    assert_eq!(number("batchscan_sent_bytes_total{route=\"/v2/batches\"}"), 3 * bytes as u64);
    assert_eq!(
        (number("batchscan_page_cache_hits_total"), number("batchscan_page_cache_misses_total")),
        (1, 2)
    );
    assert_eq!(number("batchscan_store_errors_total{kind=\"broken\"}"), 1);
    assert!(number("batchscan_open_connections ") >= 1);
    assert_eq!(number("batchscan_refused_connections_total"), 0);
    assert!(text.ends_with("# EOF\n"));
}

/// Operating guide, "Start".
#[tokio::test]
async fn an_address_for_the_operator_serves_health_and_metrics_and_nothing_else() {
    let app = with_operator().await;
    let operator = app.operator_url.clone().unwrap();
    for (path, status) in
        [("/healthz", 200), ("/readyz", 200), ("/metrics", 200), ("/v1/batches", 404), ("/v1/auth", 404)]
    {
        let reply = Reply::to(app.http.get(format!("{operator}{path}"))).await;
        assert_eq!(reply.status, status, "{path}");
        assert!(reply.header("x-request-id").is_some());
    }
}

/// Operating guide, "Start".
#[tokio::test]
async fn metrics_are_not_public_where_the_operator_has_an_address() {
    let app = with_operator().await;
    Reply::to(app.request("GET", "/metrics")).await.is_error(404, &json!({ "detail": "Not Found" }));
    for path in ["/healthz", "/readyz"] {
        assert_eq!(Reply::to(app.request("GET", path)).await.status, 200, "{path}");
    }
}

/// Operating guide, "Watching it".
#[tokio::test]
async fn every_answer_has_a_request_id_of_its_own() {
    let app = TestApp::start().await;
    let client = app.org("Nursery").await;
    let token = app.token(&client).await;
    let mut ids = std::collections::BTreeSet::new();
    for path in ["/healthz", "/nothing", "/v1/auth", "/v1/batches", "/v2/batches?start_date=x", "/metrics"] {
        assert!(ids.insert(app.get(path, &token).await.header("x-request-id").unwrap()), "{path}");
    }
    assert!(ids.insert(Reply::to(app.request("OPTIONS", "/v1/auth")).await.header("x-request-id").unwrap()));
}

/// Operating guide, "Watching it": what a proxy sends is kept if no log can be harmed by it.
#[tokio::test]
async fn a_harmless_request_id_is_kept_and_any_other_replaced() {
    let app = TestApp::start().await;
    let sent = async |id: &str| {
        app.get_with("/healthz", "x", "x-request-id", id).await.header("x-request-id").unwrap()
    };
    let longest = "a".repeat(40);
    for id in ["a", "4bf92f35-77b3.4da6_A", longest.as_str()] {
        assert_eq!(sent(id).await, id);
    }
    let too_long = "a".repeat(41);
    for id in ["", "a b", "a\"b", "{}", "a,b", "é", too_long.as_str()] {
        assert_ne!(sent(id).await, id);
    }
}

/// Operating guide, "Watching it": every request is one log line, and none holds a secret, a token or a body.
#[tokio::test]
async fn a_request_is_one_log_line_without_secrets() {
    let app = TestApp::start().await;
    let client = app.org("Nursery").await;
    let token = app.token(&client).await;
    let id = format!("log-{}", client.id);
    app.get_with("/v2/batches?start_date=2026-01-01T00:00:00Z", &token, "x-request-id", &id).await;
    let lines = journal::lines_with(&id);
    assert_eq!(lines.len(), 1, "{lines:?}");
    let line: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
    let fields = &line["fields"];
    assert_eq!((&fields["method"], &fields["route"]), (&json!("GET"), &json!("/v2/batches")));
    assert_eq!((&fields["status"], &fields["client"]), (&json!(200), &json!(client.id)));
    for secret in [token.as_str(), client.secret.as_str()] {
        assert!(journal::lines_with(secret).is_empty());
    }
}

/// Decision 038.
#[tokio::test]
async fn v1_has_no_end_unless_the_operator_sets_one() {
    let app = TestApp::start().await;
    let client = app.org("Nursery").await;
    let reply = app.get("/v1/batches", &app.token(&client).await).await;
    assert_eq!((reply.header("deprecation"), reply.header("sunset")), (None, None));
}

/// Decision 038; RFC 9745, RFC 8594.
#[tokio::test]
async fn an_end_of_v1_is_told_on_v1_alone() {
    let v1_sunset = Some(instant("2027-01-01T00:00:00Z"));
    let app = TestApp::with(Config { v1_sunset, ..Config::default() }).await;
    let client = app.org("Nursery").await;
    let token = app.token(&client).await;
    let auth = app.post_form("/v1/auth", client.form()).await;
    let refused = app.get("/v1/batches?start_date=x", &token).await;
    for reply in [app.get("/v1/batches", &token).await, auth, refused] {
        assert_eq!(reply.header("deprecation").as_deref(), Some("@1798761600"));
        assert_eq!(reply.header("sunset").as_deref(), Some("Fri, 01 Jan 2027 00:00:00 GMT"));
    }
    for path in ["/v2/batches", "/healthz"] {
        let reply = app.get(path, &token).await;
        assert_eq!((reply.header("deprecation"), reply.header("sunset")), (None, None), "{path}");
    }
}

/// Operating guide, "Start".
#[tokio::test]
async fn a_port_that_is_taken_is_told_with_what_to_do() {
    let app = TestApp::start().await;
    let options = ServeOptions { listen: app.address().to_owned(), ..TestApp::options() };
    let clock = batchscan_server::clock::Clock::system();
    let refused = batchscan_server::serve::Server::bind(app.store.clone(), options, clock).await;
    let told = refused.unwrap_err().to_string();
    assert!(told.contains("another program uses that port"), "{told}");
}
