//! The OpenAPI document: how it is served, and that it tells of what the service does (decision 046).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use batchscan_model::Field;
use batchscan_server::config::{Config, Rate};
use batchscan_server::http::openapi::document;
use serde_json::{Value, json};

use crate::http::app::{TestApp, instant};
use crate::http::contract::{DOCUMENT, PAGES, faults, hold};
use crate::http::reply::Reply;
use crate::http::sample::FULL;
use crate::http::wire::Wire;

/// The list of routes, as it is written.
const ROUTES: &str = include_str!("../../src/http/mod.rs");

fn tree(config: &Config) -> Value {
    serde_json::from_str(&document(config)).unwrap()
}

/// The paths of a document, each with its methods.
fn methods(document: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let paths = document["paths"].as_object().unwrap();
    let methods = |item: &Value| item.as_object().unwrap().keys().map(|name| name.to_uppercase()).collect();
    paths.iter().map(|(path, item)| (path.clone(), methods(item))).collect()
}

fn listed(methods: &str) -> BTreeSet<String> {
    methods.split(", ").map(str::to_owned).collect()
}

/// Decision 046.
#[test]
fn every_route_and_method_is_in_the_document_and_the_other_way_round() {
    let (_, routes) = ROUTES.split_once("fn routes(").unwrap();
    let (routes, _) = routes.split_once("\n}\n").unwrap();
    let mut written = BTreeMap::new();
    for route in routes.split(".route(\"").skip(1) {
        let (path, rest) = route.split_once('"').unwrap();
        let allowed = rest.split('"').nth(1).unwrap();
        written.insert(path.to_owned(), listed(allowed));
    }
    for page in PAGES {
        assert!(written.remove(page).is_some(), "{page} is no route any more: take it out of PAGES");
    }
    assert_eq!(
        written,
        methods(&DOCUMENT),
        "a route that is a web page goes into PAGES of contract.rs, every other into src/http/openapi/paths.rs"
    );
}

/// Decisions 030, 046.
#[tokio::test]
async fn every_path_allows_exactly_the_methods_of_the_document() {
    let app = TestApp::start().await;
    for (path, methods) in methods(&DOCUMENT) {
        let reply = Reply::to(app.request("OPTIONS", &path)).await;
        assert_eq!(listed(&reply.header("allow").unwrap()), methods, "{path}");
    }
}

/// Decision 046; decisions 031 and 032 for whoever asks again, and how.
#[tokio::test]
async fn the_document_is_served_without_a_token_compressed_and_once() {
    let app = TestApp::start().await;
    let plain = Reply::to(app.request("GET", "/openapi.json")).await;
    assert_eq!(plain.text(), document(&Config::default()));
    for (name, value) in
        [("content-type", "application/json"), ("cache-control", "no-cache"), ("vary", "Accept-Encoding")]
    {
        assert_eq!(plain.header(name).as_deref(), Some(value));
    }
    let etag = plain.header("etag").unwrap();
    for encoding in ["gzip", "zstd"] {
        let request = app.request("GET", "/openapi.json").header("accept-encoding", encoding);
        let reply = Reply::to(request).await;
        assert_eq!(reply.header("content-encoding").as_deref(), Some(encoding));
        assert_eq!(reply.header("etag").as_deref(), Some(etag.as_str()));
        assert!(reply.body.len() * 5 < plain.body.len(), "{}", reply.body.len());
    }
    let again = Reply::to(app.request("GET", "/openapi.json").header("if-none-match", etag)).await;
    assert_eq!((again.status, again.body.len()), (304, 0));
}

/// Decision 046.
#[tokio::test]
async fn the_document_names_the_address_that_the_operator_names() {
    assert_eq!(DOCUMENT["servers"], json!([{ "url": "/" }]));
    let token_url = "/components/securitySchemes/clientCredentials/flows/clientCredentials/tokenUrl";
    assert_eq!(DOCUMENT.pointer(token_url), Some(&json!("/v2/auth")));
    let public_url = Some("https://scans.example.org/nursery".to_owned());
    let app = TestApp::with(Config { public_url, ..Config::default() }).await;
    let served = Reply::to(app.request("GET", "/openapi.json")).await.json();
    assert_eq!(served["servers"], json!([{ "url": "https://scans.example.org/nursery" }]));
    assert_eq!(served.pointer(token_url), Some(&json!("https://scans.example.org/nursery/v2/auth")));
}

/// Decisions 038, 046.
#[test]
fn the_document_tells_of_this_service_and_no_other() {
    let without = tree(&Config { metrics_in_public: false, ..Config::default() });
    assert!(without["paths"]["/metrics"].is_null() && DOCUMENT["paths"]["/metrics"].is_object());
    let ending = tree(&Config { v1_sunset: Some(instant("2027-12-31T00:00:00Z")), ..Config::default() });
    for (path, method) in [("/v1/auth", "post"), ("/v1/batches", "get"), ("/v1/batches", "head")] {
        assert!(DOCUMENT["paths"][path][method]["deprecated"].is_null(), "{path}");
        assert_eq!(ending["paths"][path][method]["deprecated"], true, "{path}");
    }
    assert!(ending["paths"]["/v2/batches"]["get"]["deprecated"].is_null());
}

/// Decision 046.
#[test]
fn every_reference_leads_somewhere_and_every_component_is_used() {
    let (mut used, mut ids) = (BTreeSet::new(), BTreeSet::new());
    visit(&DOCUMENT, &mut |name, value| match (name, value.as_str()) {
        ("$ref", Some(target)) => {
            assert!(DOCUMENT.pointer(&target[1..]).is_some(), "{target}");
            used.insert(target.to_owned());
        }
        ("operationId", Some(id)) if !ids.insert(id.to_owned()) => assert_eq!(id, "listBatches", "a link"),
        _ => {}
    });
    for (kind, components) in DOCUMENT["components"].as_object().unwrap() {
        for name in components.as_object().unwrap().keys().filter(|_| kind != "securitySchemes") {
            assert!(used.contains(&format!("#/components/{kind}/{name}")), "{kind} {name} is not used");
        }
    }
}

fn visit(value: &'static Value, seen: &mut impl FnMut(&str, &'static Value)) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| visit(item, seen)),
        Value::Object(members) => {
            for (name, value) in members {
                seen(name, value);
                visit(value, seen);
            }
        }
        _ => {}
    }
}

/// Interface section 2, decision 046: what holds answers against the document would notice.
#[test]
fn the_schema_of_a_batch_takes_a_batch_and_nothing_else() {
    let schema = json!({ "$ref": "#/components/schemas/Batch" });
    let batch: Value = serde_json::from_str(FULL).unwrap();
    assert_eq!(faults(&schema, &batch), [""; 0]);
    let with = |name: &str, value: Value| {
        let mut batch = batch.clone();
        batch[name] = value;
        faults(&schema, &batch).len()
    };
    for decimal in ["92.5", "92.500", "9,25", "1e2", "", "+1.00", ".50"] {
        assert_eq!(with("avg_germination_rate", json!(decimal)), 1, "{decimal}");
    }
    for date in ["2026-01-31T08:00:00", "2026-01-31T08:00:00+00:00", "2026-01-31T08:00:00.50Z", "2026-01-31"]
    {
        assert!(with("batch_creation_date", json!(date)) > 0, "{date}");
    }
    assert_eq!(with("batch_creation_date", json!("2026-01-31T08:00:00.05Z")), 0);
    assert_eq!((with("number_of_images", json!(-1)), with("number_of_images", json!(1.5))), (1, 1));
    assert_eq!((with("warnings", json!("yes")), with("analysis_link", json!("not a link"))), (1, 1));
    for field in Field::ALL {
        let mut batch = batch.clone();
        batch.as_object_mut().unwrap().remove(field.name());
        assert_eq!(faults(&schema, &batch).len(), 1, "{field}");
    }
}

/// Decision 046: what every answer goes through lets no stranger pass.
#[tokio::test]
async fn an_answer_that_the_document_does_not_tell_of_is_noticed() {
    let (app, token) = TestApp::nursery().await;
    let good = app.get("/v2/batches", &token).await;
    let notices = |changed: Reply, path: &str| {
        std::panic::catch_unwind(|| hold("GET", path, &changed)).expect_err("nothing was noticed");
    };
    notices(Reply { status: 206, ..good.clone() }, "/v2/batches");
    notices(Reply { body: b"{\"data\":[]}".to_vec(), ..good.clone() }, "/v2/batches");
    notices(Reply { body: good.text().replace("00:00Z", "00:00").into(), ..good.clone() }, "/v2/batches");
    notices(good.clone(), "/v1/batches");
    notices(good.clone(), "/v3/batches");
    for (name, value) in
        [("content-type", "text/html"), ("cache-control", "public"), ("etag", "x"), ("x-request-id", "")]
    {
        let mut changed = good.clone();
        changed.headers.insert(name, value.parse().unwrap());
        notices(changed, "/v2/batches");
        let mut lacking = good.clone();
        lacking.headers.remove(name);
        notices(lacking, "/v2/batches");
    }
}

/// Decisions 013, 046.
#[tokio::test]
async fn the_dates_that_the_document_tells_of_are_the_ones_that_are_taken() {
    let (app, token) = TestApp::nursery().await;
    let schema = &DOCUMENT["components"]["parameters"]["StartDate"]["schema"];
    for date in [
        "2026-01-31T08:00:00Z",
        "2024-02-29T23:59:59.123456789+00:00",
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59.9Z",
        "0000-01-01T00:00:00Z",
        "2026-02-29T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-01-31T24:00:00Z",
        "2026-01-31T08:00:60Z",
        "2026-01-31T08:00:00.1234567890Z",
        "2026-01-31T08:00:00.Z",
        "2026-01-31T08:00:00",
        "2026-01-31T08:00:00+01:00",
        "2026-01-31T08:00:00-00:00",
        "2026-01-31t08:00:00z",
        "2026-01-31T08:00Z",
        "2026-01-31",
        "1769846400",
        "",
    ] {
        let request = app.request("GET", "/v1/batches").query(&[("start_date", date)]).bearer_auth(&token);
        let is_taken = Reply::to(request).await.status == 200;
        assert_eq!(faults(schema, &json!(date)).is_empty(), is_taken, "{date}");
    }
    // As it arrives where a + was not escaped. The pattern takes it; as a format it is none, and formats are remarks.
    let pattern = json!({ "pattern": schema["pattern"] });
    assert_eq!(faults(&pattern, &json!("2026-01-31T08:00:00 00:00")), [""; 0]);
    assert_eq!(app.get("/v1/batches?start_date=2026-01-31T08:00:00+00:00", &token).await.status, 200);
}

/// Statuses that are told of and not asked for here.
fn is_seen_elsewhere(method: &str, path: &str, status: u16) -> bool {
    match status {
        // `timing`: it takes ten seconds.
        408 => true,
        // `sqlite_failures`, `postgres_failures`, `stopping`.
        503 => path == "/readyz" || path.ends_with("/auth"),
        // Only a defect could bring it about.
        500 => method == "OPTIONS" || !path.ends_with("/batches"),
        _ => false,
    }
}

/// Decision 046: every status of every operation, from the running service. Each answer is held against the document.
#[tokio::test]
async fn every_status_of_the_document_is_one_that_the_service_gives() {
    let mut seen = BTreeSet::new();
    for (path, methods) in methods(&DOCUMENT) {
        for method in methods {
            for status in statuses(&method, &path).await {
                seen.insert((method.clone(), path.clone(), status));
            }
        }
    }
    let mut told = BTreeSet::new();
    for (path, item) in DOCUMENT["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let statuses = operation["responses"].as_object().unwrap().keys();
            told.extend(
                statuses.map(|status| (method.to_uppercase(), path.clone(), status.parse().unwrap())),
            );
        }
    }
    told.retain(|(method, path, status)| !is_seen_elsewhere(method, path, *status));
    let differing: Vec<_> = seen.symmetric_difference(&told).collect();
    assert!(differing.is_empty(), "told of and not seen, or the other way round: {differing:?}");
}

/// All that can be had of an operation by asking in many ways.
async fn statuses(method: &str, path: &str) -> BTreeSet<u16> {
    let app = TestApp::start().await;
    let client = app.org("Nursery").await;
    let token = app.token(&client).await;
    let asking = |path: &str| app.request(method, path).bearer_auth(&token);
    let mut replies = Vec::new();
    for query in ["", "?start_date=x", &format!("?{}", "x".repeat(9_000))] {
        replies.push(Reply::to(asking(&format!("{path}{query}"))).await);
    }
    replies.push(Reply::to(asking(path).header("if-none-match", "*")).await);
    replies.push(Reply::to(asking(path).header("x-pad", "x".repeat(40_000))).await);
    replies.push(Reply::to(app.request(method, path)).await);
    replies.push(Reply::to(app.request("DELETE", path)).await);
    let broken = Wire::ask(&app, format!("{method} {path} HTTP/1.1\r\nbad name: x\r\n\r\n")).await;
    hold(method, path, &broken);
    replies.push(broken);
    if method == "POST" {
        for form in [client.form(), client.form().replace("secret=", "secret=x"), "x".repeat(20_000)] {
            replies.push(app.post_form(path, form).await);
        }
    }
    app.lose_batches();
    // A question that no cache knows the answer to.
    replies.push(Reply::to(asking(&format!("{path}?end_date=2026-01-01T00:00:00Z"))).await);
    replies.extend(trouble(method, path).await);
    replies.iter().map(|reply| reply.status).collect()
}

/// What a service answers that has a limit, and one that fails on purpose.
async fn trouble(method: &str, path: &str) -> [Reply; 2] {
    let rate_limit = Some(Rate { requests: 1, per: Duration::from_secs(60) });
    let limited = TestApp::with(Config { rate_limit, ..Config::default() }).await;
    let failing = TestApp::with(Config { fail_rate: 1.0, ..Config::default() }).await;
    let ask = async |app: TestApp| {
        let client = app.org("Nursery").await;
        let token = app.token(&client).await;
        if method == "POST" {
            return app.post_form(path, client.form()).await;
        }
        Reply::to(app.request(method, path).bearer_auth(token)).await
    };
    [ask(limited).await, ask(failing).await]
}
