//! The OpenAPI document: how it is served, and that it describes the service (decision 046).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use batchscan_model::Field;
use batchscan_server::config::{Config, Rate};
use batchscan_server::http::openapi::document;
use serde_json::{Value, json};

use super::fetch_file;
use crate::http::contract::{DOCUMENT, OPERATOR_DOCUMENT, PAGES, check, schema_errors};
use crate::http::*;

const ROUTES: &str = include_str!("../../src/http/routes.rs");

fn document_for(config: &Config) -> Value {
    serde_json::from_str(&document(config)).unwrap()
}

/// The paths of the document with their methods.
fn documented_methods() -> BTreeMap<String, BTreeSet<String>> {
    let methods = |item: &Value| item.as_object().unwrap().keys().map(|name| name.to_uppercase()).collect();
    let paths = DOCUMENT["paths"].as_object().unwrap();
    paths.iter().map(|(path, item)| (path.clone(), methods(item))).collect()
}

/// Decisions 030, 046.
#[tokio::test]
async fn every_route_is_documented_with_its_methods() {
    let app = TestApp::start().await;
    let mut routes = BTreeMap::new();
    for route in ROUTES.split(".route(\"").skip(1) {
        let path = route.split('"').next().unwrap();
        if !PAGES.contains(&path) {
            let allow = app.send("OPTIONS", path).await.header("allow").unwrap();
            routes.insert(path.to_owned(), allow.split(", ").map(str::to_owned).collect());
        }
    }
    assert_eq!(
        routes,
        documented_methods(),
        "add the route to openapi.json, or to PAGES if it is a web page"
    );
}

/// Decisions 031, 032, 046.
#[tokio::test]
async fn the_document_is_served_compressed_and_revalidated() {
    let app = TestApp::start().await;
    let [plain, gzip] = fetch_file(&app, "/openapi.json", "application/json", "no-cache").await;
    assert_eq!(plain.text(), document(&Config::default()));
    assert!(gzip.body.len() * 5 < plain.body.len(), "{}", gzip.body.len());
}

/// Decisions 038, 046.
#[tokio::test]
async fn the_document_describes_the_configured_service() {
    assert_eq!(DOCUMENT["info"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(DOCUMENT["servers"], json!([{ "url": "/" }]));
    let token_url = "/components/securitySchemes/clientCredentials/flows/clientCredentials/tokenUrl";
    assert_eq!(DOCUMENT.pointer(token_url), Some(&json!("/v2/auth")));
    let public_url = Some("https://scans.example.org/nursery".to_owned());
    let app = TestApp::with(Config { public_url, ..Config::default() }).await;
    let served = app.send("GET", "/openapi.json").await.json();
    assert_eq!(served["servers"], json!([{ "url": "https://scans.example.org/nursery" }]));
    assert_eq!(served.pointer(token_url), Some(&json!("https://scans.example.org/nursery/v2/auth")));
    let without_metrics = document_for(&Config { metrics_in_public: false, ..Config::default() });
    let mut expected = DOCUMENT.clone();
    assert!(expected["paths"].as_object_mut().unwrap().remove("/metrics").is_some());
    assert_eq!(without_metrics, expected);
    let v1_sunset = Some(instant("2027-12-31T00:00:00Z"));
    let ending = document_for(&Config { v1_sunset, ..Config::default() });
    let mut expected = DOCUMENT.clone();
    for (path, method) in [("/v1/auth", "post"), ("/v1/batches", "get"), ("/v1/batches", "head")] {
        expected["paths"][path][method]["deprecated"] = json!(true);
    }
    assert_eq!(ending, expected);
}

/// Decision 046.
#[test]
fn every_reference_exists_and_every_component_is_used() {
    check_components(&DOCUMENT, &["listBatches", "listChanges"]);
    check_components(&OPERATOR_DOCUMENT, &[]);
}

/// `linked` are the operations that links name.
fn check_components(document: &'static Value, linked: &[&str]) {
    let (mut used, mut ids) = (BTreeSet::new(), BTreeSet::new());
    visit(document, &mut |name, value| match (name, value.as_str()) {
        ("$ref", Some(target)) => {
            assert!(document.pointer(&target[1..]).is_some(), "{target}");
            used.insert(target.to_owned());
        }
        ("operationId", Some(id)) if !ids.insert(id.to_owned()) => {
            assert!(linked.contains(&id), "{id} is not a link");
        }
        _ => {}
    });
    for (kind, components) in document["components"].as_object().unwrap() {
        for name in components.as_object().unwrap().keys().filter(|_| kind != "securitySchemes") {
            assert!(used.contains(&format!("#/components/{kind}/{name}")), "{kind} {name} is not used");
        }
    }
}

fn visit(value: &'static Value, visitor: &mut impl FnMut(&str, &'static Value)) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| visit(item, visitor)),
        Value::Object(members) => {
            for (name, value) in members {
                visitor(name, value);
                visit(value, visitor);
            }
        }
        _ => {}
    }
}

/// Contract section 2; decision 046: the schema has the fields of the model, and is strict.
#[test]
fn the_batch_schema_has_the_fields_of_the_model() {
    let schema = &DOCUMENT["components"]["schemas"]["Batch"];
    let properties = schema["properties"].as_object().unwrap();
    let documented: BTreeMap<&str, bool> = properties
        .iter()
        .map(|(name, property)| {
            (name.as_str(), property["type"].as_array().is_some_and(|types| types.contains(&json!("null"))))
        })
        .collect();
    let fields: BTreeMap<&str, bool> =
        Field::ALL.iter().map(|field| (field.name(), field.is_nullable())).collect();
    assert_eq!(documented, fields);
    assert_eq!(schema["required"], json!(Field::ALL.map(Field::name)));
    let reference = json!({ "$ref": "#/components/schemas/Batch" });
    let batch: Value = serde_json::from_str(FULL).unwrap();
    assert_eq!(schema_errors(&reference, &batch), [""; 0]);
    assert_eq!(schema_errors(&reference, &schema["examples"][0]), [""; 0]);
    let errors = |name: &str, value: Value| {
        let mut batch = batch.clone();
        batch[name] = value;
        schema_errors(&reference, &batch).len()
    };
    for decimal in ["92.5", "92.500", "9,25", "1e2", "", "+1.00", ".50"] {
        assert_eq!(errors("avg_germination_rate", json!(decimal)), 1, "{decimal}");
    }
    for date in ["2026-01-31T08:00:00", "2026-01-31T08:00:00+00:00", "2026-01-31T08:00:00.50Z", "2026-01-31"]
    {
        assert!(errors("batch_creation_date", json!(date)) > 0, "{date}");
    }
    assert_eq!(errors("batch_creation_date", json!("2026-01-31T08:00:00.05Z")), 0);
    assert_eq!((errors("number_of_images", json!(-1)), errors("number_of_images", json!(1.5))), (1, 1));
    assert_eq!((errors("warnings", json!("yes")), errors("analysis_link", json!("not a link"))), (1, 1));
}

/// Decision 046: the check of every response notices deviations.
#[tokio::test]
async fn an_undocumented_response_fails_the_check() {
    let (app, token) = TestApp::nursery().await;
    let valid = app.get("/v2/batches", &token).await;
    let fails = |changed: Reply, path: &str| {
        std::panic::catch_unwind(|| check("GET", path, &changed)).expect_err("not noticed");
    };
    fails(Reply { status: 206, ..valid.clone() }, "/v2/batches");
    fails(Reply { body: b"{\"data\":[]}".to_vec(), ..valid.clone() }, "/v2/batches");
    fails(Reply { body: valid.text().replace("00:00Z", "00:00").into(), ..valid.clone() }, "/v2/batches");
    fails(valid.clone(), "/v1/batches");
    fails(valid.clone(), "/v3/batches");
    for (name, value) in
        [("content-type", "text/html"), ("cache-control", "public"), ("etag", "x"), ("x-request-id", "")]
    {
        let mut changed = valid.clone();
        changed.headers.insert(name, value.parse().unwrap());
        fails(changed.clone(), "/v2/batches");
        changed.headers.remove(name);
        fails(changed, "/v2/batches");
    }
}

/// Decisions 013, 046.
#[tokio::test]
async fn the_documented_date_format_is_the_accepted_one() {
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
        let is_accepted = Reply::to(request).await.status == 200;
        assert_eq!(schema_errors(schema, &json!(date)).is_empty(), is_accepted, "{date}");
    }
    // An unescaped + arrives as a space. The pattern allows it; `format` does not.
    let pattern = json!({ "pattern": schema["pattern"] });
    assert_eq!(schema_errors(&pattern, &json!("2026-01-31T08:00:00 00:00")), [""; 0]);
    assert_eq!(app.get("/v1/batches?start_date=2026-01-31T08:00:00+00:00", &token).await.status, 200);
}

/// Documented statuses that are tested elsewhere.
fn is_tested_elsewhere(method: &str, path: &str, status: u16) -> bool {
    match status {
        // `timing`, `limits`.
        408 | 501 => true,
        // `sqlite_failures`, `postgres_failures`.
        503 => path == "/readyz" || path.ends_with("/auth"),
        // `changes`.
        410 => true,
        // Only a bug can cause it.
        // HEAD of an export reads no batches.
        500 => match path.starts_with("/v2/export.") {
            true => method != "GET",
            false => {
                method == "OPTIONS"
                    || !["/batches", "/{batch_id}", "/changes"].iter().any(|end| path.ends_with(end))
            }
        },
        _ => false,
    }
}

/// Decision 046: every status of every operation, from the running service. Each response is checked.
#[tokio::test]
async fn the_documented_statuses_are_those_of_the_service() {
    let (mut seen, mut documented) = (BTreeSet::new(), BTreeSet::new());
    for (path, methods) in documented_methods() {
        for method in methods {
            for status in statuses(&method, &path).await {
                seen.insert((method.clone(), path.clone(), status));
            }
            let responses = &DOCUMENT["paths"][&path][method.to_lowercase()]["responses"];
            for status in responses.as_object().unwrap().keys() {
                documented.insert((method.clone(), path.clone(), status.parse().unwrap()));
            }
        }
    }
    documented.retain(|(method, path, status)| !is_tested_elsewhere(method, path, *status));
    let differing: Vec<_> = seen.symmetric_difference(&documented).collect();
    assert!(differing.is_empty(), "documented and not seen, or vice versa: {differing:?}");
}

/// The statuses of many different requests to an operation.
async fn statuses(method: &str, path: &str) -> BTreeSet<u16> {
    let (app, client, token) = TestApp::filled(1_000, &[batch("{batch_id}", "2026-01-01T00:00:00Z")]).await;
    let request = |path: &str| app.request(method, path).bearer_auth(&token);
    let mut replies = Vec::new();
    for query in ["", "?start_date=x&since=x", &format!("?{}", "x".repeat(9_000))] {
        replies.push(Reply::to(request(&format!("{path}{query}"))).await);
    }
    replies.push(Reply::to(request(&path.replace("{batch_id}", "unknown"))).await);
    replies.push(Reply::to(request(path).header("if-none-match", "*")).await);
    replies.push(Reply::to(request(path).header("x-pad", "x".repeat(40_000))).await);
    replies.push(app.send(method, path).await);
    replies.push(app.send("DELETE", path).await);
    let malformed = Raw::request(&app, format!("{method} {path} HTTP/1.1\r\nbad name: x\r\n\r\n")).await;
    check(method, path, &malformed);
    replies.push(malformed);
    if method == "POST" {
        for form in [client.form(), client.form().replace("secret=", "secret=x"), "x".repeat(20_000)] {
            replies.push(app.post_form(path, form).await);
        }
    }
    app.drop_batch_table();
    // A query that is not cached.
    replies.push(Reply::to(request(&format!("{path}?end_date=2026-01-01T00:00:00Z"))).await);
    let rate_limit = Some(Rate { requests: 1, per: Duration::from_secs(60) });
    for config in [Config { rate_limit, ..Config::default() }, Config { fail_rate: 1.0, ..Config::default() }]
    {
        let app = TestApp::with(config).await;
        let client = app.org("Nursery").await;
        let token = app.token(&client).await;
        replies.push(match method {
            "POST" => app.post_form(path, client.form()).await,
            _ => Reply::to(app.request(method, path).bearer_auth(token)).await,
        });
    }
    replies.iter().map(|reply| reply.status).collect()
}
