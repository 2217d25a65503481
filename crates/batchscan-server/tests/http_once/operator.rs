//! What operators see and set: health, metrics, request ids, the access log, the end of v1.

use std::collections::BTreeSet;

use batchscan_server::config::Config;
use batchscan_server::serve::ServeOptions;
use serde_json::json;

use crate::http::app::FORM;
use crate::http::log::lines_with;
use crate::http::*;

/// The value of the line that starts like this; 0 if there is none.
fn value(metrics: &str, start: &str) -> u64 {
    let line = metrics.lines().find(|line| line.starts_with(start));
    line.map_or(0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
}

/// Operating guide, "Monitoring".
#[tokio::test]
async fn metrics_count_requests_by_route_and_status() {
    let (app, _, token) = TestApp::signed_in().await;
    for _ in 0..3 {
        app.get("/v1/batches", &token).await;
    }
    app.get("/v1/batches", "x").await;
    app.get("/some/where/else", &token).await;
    app.send("GET", "/batches/b1").await;
    let text = metrics(&app).await;
    let count = |route, status| {
        value(&text, &format!("batchscan_requests_total{{route=\"{route}\",status=\"{status}\"}}"))
    };
    assert_eq!((count("/v1/batches", 200), count("/v1/batches", 401)), (3, 1));
    assert_eq!((count("/v2/auth", 200), count("other", 404), count("/batches/{id}", 200)), (1, 1, 1));
    assert!(!text.contains("/some/where"), "unknown paths are not labels");
}

/// Operating guide, "Monitoring".
#[tokio::test]
async fn metrics_show_latency_bytes_cache_store_and_connections() {
    let (app, _, token) = TestApp::filled(1_000, &many(10)).await;
    let bytes = app.get("/v2/batches", &token).await.body.len();
    app.get("/v2/batches", &token).await;
    app.get("/v2/batches", &token).await;
    app.drop_batch_table();
    app.get("/v1/batches", &token).await;
    let text = &metrics(&app).await;
    for (start, expected) in [
        (concat!("batchscan_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"}"), 1),
        ("batchscan_request_seconds_count{route=\"/v2/batches\"}", 3),
        ("batchscan_request_seconds_bucket{le=\"+Inf\",route=\"/v2/batches\"}", 3),
        ("batchscan_sent_bytes_total{route=\"/v2/batches\"}", 3 * bytes as u64),
        ("batchscan_page_cache_hits_total", 1),
        ("batchscan_page_cache_misses_total", 2),
        ("batchscan_store_errors_total{kind=\"broken\"}", 1),
        ("batchscan_refused_connections_total", 0),
    ] {
        assert_eq!(value(text, start), expected, "{start}");
    }
    assert!(value(text, "batchscan_open_connections ") >= 1);
}

/// The text format has one type for each name, and every sample has the name of a type.
#[tokio::test]
async fn metrics_are_in_the_text_format_unless_openmetrics_is_accepted() {
    let (app, token) = TestApp::nursery().await;
    app.get("/v2/batches", &token).await;
    let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3";
    let open = app.get_with("/metrics", &token, "accept", prometheus).await;
    let media_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    open.has_headers(&[("content-type", media_type), ("vary", "Accept")]);
    assert!(open.text().ends_with("# EOF\n"));
    let text = ["*/*", "text/html", "application/openmetrics-text; version=1.0.0; q=0"];
    for accept in text {
        let reply = app.get_with("/metrics", &token, "accept", accept).await;
        reply
            .has_headers(&[("content-type", "text/plain; version=0.0.4; charset=utf-8"), ("vary", "Accept")]);
        is_prometheus_text(reply.text());
    }
}

#[track_caller]
fn is_prometheus_text(text: &str) {
    let (mut name, mut names) = ("", BTreeSet::new());
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["#", "HELP", of, _, ..] => assert!(names.insert(of), "{line}"),
            ["#", "TYPE", of, kind] => {
                name = of;
                assert!(names.contains(of), "{line}");
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
                assert_eq!(kind == "counter", of.ends_with("_total"), "{line}");
            }
            _ => {
                let rest = line.strip_prefix(name).unwrap_or_else(|| panic!("{name}: {line}"));
                let rest = ["_bucket", "_sum", "_count"]
                    .iter()
                    .find_map(|part| rest.strip_prefix(part))
                    .unwrap_or(rest);
                assert!(rest.starts_with(['{', ' ']), "{line}");
                assert!(words.last().unwrap().parse::<f64>().is_ok(), "{line}");
            }
        }
    }
    assert!(
        names.contains("batchscan_build_info") && names.contains("batchscan_requests_total"),
        "{names:?}"
    );
}

/// Operating guide, "Monitoring".
#[tokio::test]
async fn metrics_show_batches_imports_and_reads_of_each_organisation() {
    let app = TestApp::start().await;
    let names = ["Nursery", r#"A "B" \ C"#];
    for name in names {
        let token = app.token(&app.org(name).await).await;
        app.import(name, &many(3)).await;
        app.get("/v2/batches", &token).await;
    }
    app.org("Empty").await;
    let text = metrics(&app).await;
    for label in ["Nursery", r#"A \"B\" \\ C"#] {
        let count =
            |name: &str| value(&text, &format!("batchscan_organisation_{name}{{organisation=\"{label}\"}}"));
        assert_eq!(count("batches"), 3, "{text}");
        assert!(count("last_import_timestamp_seconds") > 1_700_000_000, "{text}");
        assert_eq!(count("last_read_timestamp_seconds"), u64::try_from(app.now().secs()).unwrap(), "{text}");
    }
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("\"Empty\"")).collect();
    assert_eq!(lines, ["batchscan_organisation_batches{organisation=\"Empty\"} 0"]);
    app.import("Nursery", &many(5)).await;
    app.store.remove_org("Empty", app.now()).await.unwrap();
    let text = metrics(&app).await;
    assert_eq!(value(&text, "batchscan_organisation_batches{organisation=\"Nursery\"}"), 5);
    assert!(!text.contains("Empty"));
}

/// Operating guide, "Start".
#[tokio::test]
async fn a_separate_address_for_operators_has_health_and_metrics_only() {
    let config = Config { metrics_in_public: false, ..Config::default() };
    let operator_listen = Some("127.0.0.1:0".to_owned());
    let app = TestApp::serve(ServeOptions { operator_listen, config, ..TestApp::options() }).await;
    let operator = app.operator_url.clone().unwrap();
    for (path, status) in
        [("/healthz", 200), ("/readyz", 200), ("/metrics", 200), ("/v1/batches", 404), ("/v1/auth", 404)]
    {
        let reply = Reply::to(app.http.get(format!("{operator}{path}"))).await;
        assert_eq!(reply.status, status, "{path}");
        assert!(reply.header("x-request-id").is_some());
    }
    app.send("GET", "/metrics").await.is_detail(404, "Not Found");
    for path in ["/healthz", "/readyz"] {
        assert_eq!(app.send("GET", path).await.status, 200, "{path}");
    }
}

/// RFC 6797: behind HTTPS, and not for names of the own machine, where other services may use HTTP.
#[tokio::test]
async fn browsers_are_told_to_use_only_https() {
    let app = TestApp::with(Config { is_https: true, ..Config::default() }).await;
    for (host, expected) in [
        ("scans.example.org", Some("max-age=31536000")),
        ("scans.example.org:8443", Some("max-age=31536000")),
        ("localhost:8443", None),
        ("127.0.0.1", None),
        ("[::1]:8443", None),
    ] {
        let reply = Reply::to(app.request("GET", "/").header("host", host)).await;
        assert_eq!(reply.header("strict-transport-security").as_deref(), expected, "{host}");
    }
    let plain =
        Reply::to(TestApp::start().await.request("GET", "/").header("host", "scans.example.org")).await;
    assert_eq!(plain.header("strict-transport-security"), None);
}

/// Operating guide, "Monitoring": a proxy's id is used if it is safe to log.
#[tokio::test]
async fn every_response_has_a_request_id() {
    let app = TestApp::start().await;
    let mut ids = BTreeSet::new();
    for path in ["/healthz", "/nothing", "/v1/auth", "/v1/batches", "/v2/batches?start_date=x", "/metrics"] {
        for method in ["GET", "OPTIONS"] {
            assert!(ids.insert(app.send(method, path).await.header("x-request-id").unwrap()), "{path}");
        }
    }
    let sent = async |id: &str| {
        app.get_with("/healthz", "x", "x-request-id", id).await.header("x-request-id").unwrap()
    };
    let (longest, too_long) = ("a".repeat(40), "a".repeat(41));
    for id in ["a", "4bf92f35-77b3.4da6_A", longest.as_str()] {
        assert_eq!(sent(id).await, id);
    }
    for id in ["", "a b", "a\"b", "{}", "a,b", "é", too_long.as_str()] {
        assert_ne!(sent(id).await, id);
    }
}

/// Operating guide, "Monitoring".
#[tokio::test]
async fn a_request_is_one_log_line_without_secrets() {
    let (app, client, token) = TestApp::signed_in().await;
    // Reads the organisations.
    metrics(&app).await;
    for (query, status) in [("start_date=2026-01-01T00:00:00Z", 200), ("start_date=x", 422)] {
        let id = format!("log-{status}-{}", client.id);
        app.get_with(&format!("/v2/batches?{query}"), &token, "x-request-id", &id).await;
        let lines = lines_with(&id);
        assert_eq!(lines.len(), 1, "{lines:?}");
        let line: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
        let fields = &line["fields"];
        assert_eq!((&fields["method"], &fields["route"]), (&json!("GET"), &json!("/v2/batches")));
        assert_eq!((&fields["status"], &fields["client"]), (&json!(status), &json!(client.id)));
        assert_eq!((&fields["org_name"], &fields["address"]), (&json!("Nursery"), &json!("127.0.0.1")));
    }
    for secret in [token.as_str(), client.secret.as_str()] {
        assert!(lines_with(secret).is_empty());
    }
}

/// The fields of the log line of a request.
fn logged(request_id: &str) -> serde_json::Value {
    let lines = lines_with(&format!("\"id\":\"{request_id}\""));
    assert_eq!(lines.len(), 1, "{lines:?}");
    serde_json::from_str::<serde_json::Value>(&lines[0]).unwrap()["fields"].take()
}

/// Operating guide, "Monitoring".
#[tokio::test]
async fn a_rejected_request_is_logged_with_its_client_and_address() {
    let (app, client, token) = TestApp::signed_in().await;
    let wrong = Client { secret: "wrong".into(), ..client.clone() };
    let id = format!("wrong-{}", client.id);
    let request = app.request("POST", "/v2/auth").header("content-type", FORM).body(wrong.form());
    assert_eq!(Reply::to(request.header("x-request-id", &id)).await.status, 401);
    let fields = logged(&id);
    assert_eq!((&fields["client"], &fields["address"]), (&json!(client.id), &json!("127.0.0.1")));
    assert_eq!((&fields["org"], &fields["org_name"]), (&json!(null), &json!(null)));
    let id = format!("expired-{}", client.id);
    app.advance_secs(3_600);
    assert_eq!(app.get_with("/v2/batches", &token, "x-request-id", &id).await.status, 401);
    let fields = logged(&id);
    assert_eq!((&fields["client"], &fields["org"]), (&json!(client.id), &json!(null)));
}

/// Operating guide, "Configuration".
#[tokio::test]
async fn only_a_trusted_proxy_can_forward_the_address_of_the_client() {
    let trusting = Config { trusted_proxies: vec!["127.0.0.1".parse().unwrap()], ..Config::default() };
    let apps = [TestApp::with(trusting).await, TestApp::start().await];
    for (number, (forwarded, seen)) in [
        ("203.0.113.7", "203.0.113.7"),
        ("203.0.113.7, 127.0.0.1", "203.0.113.7"),
        // The client wrote the first one.
        ("198.51.100.1, 203.0.113.7", "203.0.113.7"),
        ("2001:db8::1", "2001:db8::1"),
        ("203.0.113.7\" status=200", "127.0.0.1"),
        ("", "127.0.0.1"),
    ]
    .into_iter()
    .enumerate()
    {
        for (app, expected) in apps.iter().zip([seen, "127.0.0.1"]) {
            let id = format!("proxy-{number}-{}", app.address().rsplit(':').next().unwrap());
            let request = app.request("GET", "/v2/batches").header("x-forwarded-for", forwarded);
            Reply::to(request.header("x-request-id", &id)).await;
            assert_eq!(logged(&id)["address"], json!(expected), "{forwarded}");
        }
    }
}

/// A secret in the wrong field must not be logged either.
#[tokio::test]
async fn a_client_id_that_was_never_issued_is_not_logged() {
    let app = TestApp::start().await;
    for (number, client_id) in
        ["bs_0123456789abcde%0A{\"status\":200}", "bs_0123456789abcd%0A", "wh-47110815"].iter().enumerate()
    {
        let id = format!("forged-{number}-{}", app.address().rsplit(':').next().unwrap());
        let form = format!("client_id={client_id}&client_secret=x&grant_type=client_credentials");
        let request = app.request("POST", "/v2/auth").header("content-type", FORM).body(form);
        assert_eq!(Reply::to(request.header("x-request-id", &id)).await.status, 401);
        assert_eq!(logged(&id)["client"], json!(null), "{client_id}");
    }
    assert!(lines_with("wh-47110815").is_empty());
}

/// Decision 038; RFC 9745, RFC 8594.
#[tokio::test]
async fn the_end_of_v1_is_announced_on_v1_only() {
    let v1_sunset = Some(instant("2027-01-01T00:00:00Z"));
    let app = TestApp::with(Config { v1_sunset, ..Config::default() }).await;
    let client = app.org("Nursery").await;
    let token = app.token(&client).await;
    let auth = app.post_form("/v1/auth", client.form()).await;
    let rejected = app.get("/v1/batches?start_date=x", &token).await;
    for reply in [app.get("/v1/batches", &token).await, auth, rejected] {
        reply.has_headers(&[("deprecation", "@1798761600"), ("sunset", "Fri, 01 Jan 2027 00:00:00 GMT")]);
    }
    let (without, _, other_token) = TestApp::signed_in().await;
    for reply in [
        app.get("/v2/batches", &token).await,
        app.get("/healthz", &token).await,
        without.get("/v1/batches", &other_token).await,
    ] {
        assert_eq!((reply.header("deprecation"), reply.header("sunset")), (None, None));
    }
}
