//! The operator API (decision 055): where it is, its limits, and that its document describes it.

use std::collections::BTreeMap;
use std::time::Duration;

use batchscan_model::ClientId;
use batchscan_server::config::Config;
use batchscan_server::operator::DOCUMENT;
use batchscan_server::serve::ServeOptions;
use batchscan_store::{ImportFilter, OperatorRole, OrgName};
use serde_json::{Value, json};

use crate::http::app::skip_time;
use crate::http::contract::{OPERATOR_DOCUMENT, errors_by};
use crate::http::*;

const IMPORTS: &str = "/organisations/Nursery/imports";
const CSV: &str = "batch_id,batch_name,batch_creation_date,number_of_images,warnings\na,Tray,2026-01-31T08:00:00Z,1,false\n";

async fn start() -> (TestApp, String) {
    start_with(Config::default()).await
}

async fn start_with(config: Config) -> (TestApp, String) {
    let operator_listen = Some("127.0.0.1:0".to_owned());
    let app = TestApp::serve(ServeOptions { operator_listen, config, ..TestApp::options() }).await;
    app.org("Nursery").await;
    let token = app.operator_token(OperatorRole::Admin, None, None).await;
    (app, token)
}

async fn send(app: &TestApp, token: &str, method: &str, path: &str, body: &str) -> Reply {
    let request = app.operator(method, path, token).header("content-type", "application/json");
    Reply::to(request.body(body.to_owned())).await
}

async fn import(app: &TestApp, token: &str) -> u16 {
    Reply::to(app.operator("POST", IMPORTS, token).header("content-type", "text/csv").body(CSV)).await.status
}

async fn imports(app: &TestApp) -> usize {
    app.store.imports("Nursery", ImportFilter::default(), 0, 100).await.unwrap().len()
}

/// The paths of the document with their methods.
fn documented() -> BTreeMap<String, Vec<String>> {
    let methods = |item: &Value| item.as_object().unwrap().keys().map(|name| name.to_uppercase()).collect();
    let paths = OPERATOR_DOCUMENT["paths"].as_object().unwrap();
    paths.iter().map(|(path, item)| (path.clone(), methods(item))).collect()
}

#[tokio::test]
async fn the_public_address_has_nothing_of_it() {
    let (app, token) = start().await;
    let without = TestApp::start().await;
    assert_eq!(without.operator_url, None);
    for (path, methods) in documented() {
        for method in methods {
            for app in [&app, &without] {
                let path = path.replace("{name}", "Nursery");
                let reply = Reply::to(app.request(&method, &path).bearer_auth(&token)).await;
                reply.is_detail(404, "Not Found");
            }
        }
    }
}

#[tokio::test]
async fn every_route_is_documented_with_its_methods() {
    let (app, token) = start().await;
    let routes = include_str!("../../src/operator/mod.rs");
    let paths = routes.split('"').filter(|text| text.starts_with("/operator/"));
    let mut found = BTreeMap::new();
    for path in paths {
        let request = app.operator("OPTIONS", path.trim_start_matches("/operator/v1"), &token);
        let reply = request.send().await.unwrap();
        let allow = reply.headers()["allow"].to_str().unwrap().to_owned();
        let methods = allow.split(", ").filter(|method| !["HEAD", "OPTIONS"].contains(method));
        found.insert(path.to_owned(), methods.map(str::to_owned).collect::<Vec<_>>());
    }
    let mut documented = documented();
    for methods in found.values_mut().chain(documented.values_mut()) {
        methods.sort();
    }
    assert_eq!(found, documented);
}

#[tokio::test]
async fn the_document_is_served_without_a_token() {
    let (app, token) = start().await;
    assert_eq!(OPERATOR_DOCUMENT["info"]["version"], env!("CARGO_PKG_VERSION"));
    let url = format!("{}/operator/v1/openapi.json", app.operator_url.as_ref().unwrap());
    let reply = Reply::to(app.http.get(url)).await;
    assert_eq!((reply.status, reply.text()), (200, DOCUMENT));
    let etag = reply.header("etag").unwrap();
    let again = app.operator("GET", "/openapi.json", &token).header("if-none-match", etag);
    assert_eq!(Reply::to(again).await.status, 304);
}

/// Every example of a body is valid by its schema.
#[test]
fn the_examples_of_the_document_match_their_schemas() {
    let mut checked = 0;
    check_examples(&OPERATOR_DOCUMENT, &mut checked);
    assert!(checked > 30, "{checked}");
}

fn check_examples(value: &Value, checked: &mut usize) {
    if let (Some(examples), Some(_)) = (value["examples"].as_object(), value["schema"].as_object()) {
        for (name, example) in examples {
            let errors = errors_by((&OPERATOR_DOCUMENT, &value["schema"]), &example["value"]);
            assert_eq!(errors, [""; 0], "{name}: {example}");
            *checked += 1;
        }
    }
    match value {
        Value::Array(items) => items.iter().for_each(|item| check_examples(item, checked)),
        Value::Object(members) => members.values().for_each(|item| check_examples(item, checked)),
        _ => {}
    }
}

/// Decision 046: the examples in the document are what the service sends.
#[tokio::test]
async fn the_documented_errors_are_the_texts_of_the_service() {
    let (app, admin) = start().await;
    let ingest = app.operator_token(OperatorRole::Ingest, Some("Nursery"), None).await;
    let client = app.credential("Nursery", None).await.id;
    let unknown = "/organisations/Unknown";
    let credential = format!("/organisations/Nursery/credentials/{client}");
    assert_eq!(send(&app, &admin, "DELETE", &credential, "").await.status, 204);
    let batch = "/organisations/Nursery/batches/b";
    let wrong = format!("{admin}x");
    for (token, method, path, body, component, example) in [
        (&wrong, "GET", "/audit", "", "Unauthorized", "invalid"),
        (&ingest, "GET", "/audit", "", "Forbidden", "role"),
        (&ingest, "POST", "/organisations/Other/imports", "[]", "Forbidden", "organisation"),
        (&admin, "DELETE", unknown, "", "NotFound", "organisation"),
        (&admin, "DELETE", batch, "", "NotFound", "batch"),
        (&admin, "DELETE", "/organisations/Nursery/credentials/bs_x", "", "NotFound", "credential"),
        (&admin, "GET", "/organisations/%FF/imports", "", "NotFound", "path"),
        (&admin, "POST", "/organisations", r#"{"name":"Nursery"}"#, "Conflict", "organisation"),
        (&admin, "DELETE", &credential, "", "Conflict", "credential"),
        (&admin, "GET", "/audit?limit=1001", "", "InvalidRequest", "parameter"),
        (&admin, "POST", "/organisations", r#"{"nam":"x"}"#, "InvalidRequest", "body"),
        (&admin, "POST", &format!("{IMPORTS}?dry_run=1"), "[]", "InvalidImport", "parameter"),
        (&admin, "POST", &format!("{IMPORTS}?dryrun=true"), "[]", "InvalidImport", "unknown parameter"),
    ] {
        let reply = send(&app, token, method, path, body).await;
        is_example(&reply, component, example);
    }
    let post = || app.operator("POST", IMPORTS, &admin);
    for (request, component, example) in [
        (post().header("content-type", "text/html"), "UnsupportedMediaType", "type"),
        (post(), "UnsupportedMediaType", "type"),
        (
            post().header("content-type", "text/csv").header("content-encoding", "gzip"),
            "UnsupportedMediaType",
            "encoding",
        ),
        (
            app.operator("PUT", batch, &admin).header("content-type", "text/csv"),
            "UnsupportedMediaType",
            "batch",
        ),
        (post().header("content-type", "text/csv").header("idempotency-key", "a b"), "BadRequest", "key"),
        (
            post()
                .header("content-type", "text/csv")
                .header("idempotency-key", "a")
                .header("idempotency-key", "b"),
            "BadRequest",
            "key",
        ),
    ] {
        is_example(&Reply::to(request.body(CSV)).await, component, example);
    }
}

#[track_caller]
fn is_example(reply: &Reply, component: &str, example: &str) {
    let content = &OPERATOR_DOCUMENT["components"]["responses"][component]["content"]["application/json"];
    assert_eq!(
        reply.json(),
        content["examples"][example]["value"],
        "{component} {example}: {}",
        reply.status
    );
}

/// The head of an import that sends a body of this length.
fn head(app: &TestApp, token: &str, length: usize) -> String {
    head_with(app, token, &format!("Content-Length: {length}"))
}

fn head_with(app: &TestApp, token: &str, headers: &str) -> String {
    let host = app.operator_url.as_ref().unwrap().trim_start_matches("http://");
    format!(
        "POST /operator/v1{IMPORTS} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: text/csv\r\n{headers}\r\n\r\n"
    )
}

/// An import of which this much is sent, in one chunk, and more is to come.
async fn begin_chunked(app: &TestApp, token: &str, bytes: usize) -> Raw {
    let mut raw = Raw::connect_to_operator(app).await;
    raw.send(head_with(app, token, "Transfer-Encoding: chunked")).await;
    raw.send(format!("{bytes:x}\r\n{}\r\n", "x".repeat(bytes))).await;
    raw
}

#[tokio::test]
async fn a_file_above_the_maximum_is_rejected() {
    let max = CSV.len();
    let (app, token) = start_with(Config { import_bytes_max: max as u64, ..Config::default() }).await;
    assert_eq!(import(&app, &token).await, 200);
    let mut announced = Raw::connect_to_operator(&app).await;
    announced.send(head(&app, &token, max + 1)).await;
    let mut chunked = begin_chunked(&app, &token, max + 1).await;
    let detail = format!("The file has more than {max} bytes: send smaller files, or raise --max-delivery");
    for reply in [announced.response().await, chunked.response().await] {
        reply.is_detail(413, &detail);
    }
    assert_eq!(imports(&app).await, 1);
    // The default.
    let (app, token) = start().await;
    let mut announced = Raw::connect_to_operator(&app).await;
    announced.send(head(&app, &token, 1024 * 1024 * 1024 + 1)).await;
    is_example(&announced.response().await, "FileTooLarge", "large");
}

/// With a reserve that is larger than the disk.
#[tokio::test]
async fn temporary_files_never_use_the_reserve() {
    let (app, admin) = start_with(Config { temp_reserve_bytes: Some(u64::MAX), ..Config::default() }).await;
    let csv = app.operator("POST", IMPORTS, &admin).header("content-type", "text/csv").body(CSV);
    let batch = json!({
        "batch_id": "b", "batch_name": "Tray", "batch_creation_date": "2026-01-31T08:00:00Z", "number_of_images": 1,
        "warnings": false,
    });
    let put = send(&app, &admin, "PUT", "/organisations/Nursery/batches/b", &batch.to_string()).await;
    let mut chunked = begin_chunked(&app, &admin, 300_000).await;
    for reply in [Reply::to(csv).await, put, chunked.response().await] {
        assert_eq!(reply.status, 507);
        is_example(&reply, "InsufficientStorage", "full");
    }
    assert_eq!(imports(&app).await, 0);
    let client = app.credential("Nursery", None).await;
    let token = app.token(&client).await;
    for path in ["/v2/export.parquet", "/v2/export.xlsx"] {
        app.get(path, &token).await.is_unavailable();
    }
    assert_eq!(app.get("/v2/export.csv", &token).await.status, 200, "no temporary file");
}

/// `100 Continue` is not a response that the client stops reading.
#[tokio::test]
async fn a_long_import_may_begin_with_expect_100_continue() {
    let (app, token) = start().await;
    let row = CSV.lines().last().unwrap();
    let part: String = (0..1_000).map(|_| format!("{row}\n")).collect();
    let body = format!("{CSV}{}", part.repeat(35));
    let mut raw = Raw::connect_to_operator(&app).await;
    let headers = format!("Expect: 100-continue\r\nContent-Length: {}", body.len());
    raw.send(head_with(&app, &token, &headers)).await;
    assert_eq!(raw.head().await.0, 100);
    raw.send(CSV).await;
    for _ in 0..35 {
        raw.send(&part).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
        skip_time(Duration::from_secs(10)).await;
    }
    assert_eq!(raw.response().await.json()["new"], 1);
}

#[tokio::test]
async fn a_slow_body_does_not_hold_the_write_lock() {
    let (app, token) = start().await;
    let (start, end) = CSV.split_at(CSV.len() - 10);
    let mut slow = Raw::connect_to_operator(&app).await;
    slow.send(head(&app, &token, CSV.len())).await;
    slow.send(start).await;
    assert_eq!(import(&app, &token).await, 200);
    slow.send(end).await;
    assert_eq!(slow.response().await.json()["unchanged"], 1);
}

#[tokio::test]
async fn a_connection_that_breaks_in_a_body_imports_nothing() {
    let (app, token) = start().await;
    for received in [0, CSV.len() / 2, CSV.len() - 1] {
        let mut broken = Raw::connect_to_operator(&app).await;
        broken.send(head(&app, &token, CSV.len())).await;
        broken.send(&CSV[..received]).await;
        broken.half_close().await;
        broken.read_rest().await;
    }
    assert_eq!(imports(&app).await, 0);
    assert_eq!(import(&app, &token).await, 200);
    assert_eq!(imports(&app).await, 1);
}

/// Sends the beginning of a body, until the service waits for the rest. Another file is imported meanwhile.
async fn begin_import(app: &TestApp, token: &str) -> Raw {
    let mut unfinished = Raw::connect_to_operator(app).await;
    unfinished.send(head(app, token, CSV.len())).await;
    unfinished.send(&CSV[..20]).await;
    assert_eq!(import(app, token).await, 200);
    unfinished
}

#[tokio::test]
async fn a_body_that_stops_gets_a_timeout() {
    let (app, token) = start().await;
    let mut stalled = begin_import(&app, &token).await;
    skip_time(Duration::from_secs(31)).await;
    stalled.response().await.is_detail(408, "The request body did not arrive in time");
    assert_eq!(imports(&app).await, 1);
}

#[tokio::test]
async fn a_token_that_is_revoked_while_a_body_arrives_changes_nothing() {
    let (app, token) = start().await;
    let mut import = begin_import(&app, &token).await;
    let body = r#"{"name":"Late"}"#;
    let mut add = Raw::connect_to_operator(&app).await;
    add.send(format!(
        "POST /operator/v1/organisations HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        body.len()
    ))
    .await;
    assert_eq!(add.head().await.0, 100, "the token was valid");
    let id = ClientId::new(token.split('.').next().unwrap()).unwrap();
    app.store.revoke_operator_token(&id, app.now()).await.unwrap();
    import.send(&CSV[20..]).await;
    add.send(body).await;
    for reply in [import.response().await, add.response().await] {
        reply.is_detail(
            401,
            "The operator token is wrong, revoked or expired: `batchscan operator token issue` issues a new one",
        );
    }
    assert_eq!(imports(&app).await, 1);
    assert!(app.store.org("Late").await.is_err());
}

#[tokio::test]
async fn a_name_that_changes_hands_during_an_import_imports_nothing() {
    let (app, token) = start().await;
    app.org("Other").await;
    let mut unfinished = begin_import(&app, &token).await;
    for (from, to) in [("Nursery", "First"), ("Other", "Nursery")] {
        app.store.rename_org(from, &OrgName::new(to).unwrap(), app.now()).await.unwrap();
    }
    unfinished.send(&CSV[20..]).await;
    unfinished.response().await.is_detail(404, "There is no organisation with this name");
    assert_eq!(imports(&app).await, 0);
}

#[tokio::test]
async fn slow_imports_of_one_organisation_leave_slots_for_others() {
    let (app, token) = start().await;
    app.org("Other").await;
    let mut slow = Vec::new();
    while import(&app, &token).await == 200 {
        assert!(slow.len() < 128, "too many");
        let mut unfinished = Raw::connect_to_operator(&app).await;
        unfinished.send(head(&app, &token, CSV.len())).await;
        slow.push(unfinished);
    }
    assert!(slow.len() >= 60, "only {}", slow.len());
    let other = app.operator("POST", "/organisations/Other/imports", &token);
    assert_eq!(Reply::to(other.header("content-type", "text/csv").body(CSV)).await.status, 200);
    // Also a file of another type is recorded only if there is a slot.
    for (org, status) in [("Nursery", 503), ("Other", 415)] {
        let old = app.operator("POST", &format!("/organisations/{org}/imports?file=old.xls"), &token);
        assert_eq!(Reply::to(old.header("content-type", "application/octet-stream")).await.status, status);
        let filter = ImportFilter { rejected: true, ..ImportFilter::default() };
        let rejected = app.store.imports(org, filter, 0, 9).await.unwrap();
        let reasons: Vec<String> = rejected.into_iter().flat_map(|import| import.messages).collect();
        let expected = "it is another spreadsheet: save it as .xlsx and import that";
        assert_eq!(reasons, if status == 415 { vec![expected] } else { Vec::new() }, "{org}");
    }
}

#[tokio::test]
async fn too_large_requests_are_rejected() {
    let (app, token) = start().await;
    let padding = "x".repeat(20_000);
    for (method, path, bytes) in
        [("POST", "/organisations", 20_000), ("PUT", "/organisations/Nursery/batches/b", 1_100_000)]
    {
        let body = json!({ "name": "x".repeat(bytes) }).to_string();
        assert_eq!(send(&app, &token, method, path, &body).await.status, 413, "{path}");
    }
    assert_eq!(send(&app, &token, "GET", &format!("/audit?x={padding}"), "").await.status, 414);
    let headers = app.operator("GET", "/audit", &token).header("x-pad", "x".repeat(40_000));
    assert_eq!(Reply::to(headers).await.status, 431);
    assert_eq!(send(&app, &token, "TRACE", "/audit", "").await.status, 405);
}

#[tokio::test]
async fn invalid_json_is_rejected() {
    let (app, token) = start().await;
    let credentials = "/organisations/Nursery/credentials";
    for (path, body) in [
        ("/organisations", ""),
        ("/organisations", "{"),
        ("/organisations", "null"),
        ("/organisations", r#"["New"]"#),
        ("/organisations", r#" ["New"]"#),
        ("/organisations", r#"{"name":7}"#),
        ("/organisations", r#"{"name":"New","name":"Newer"}"#),
        ("/organisations", r#"{"name":"New","batches":1}"#),
        ("/organisations", r#"{"name":"New"} x"#),
        (credentials, r#"{"label":null}"#),
        (credentials, r#"{"label":"a\u0000b"}"#),
        (credentials, r#"{"label":"\ud800"}"#),
        (credentials, r#"{"expires_at":"2026-01-31T08:00:00Z"}"#),
        (credentials, r#"{"expires_at":"2030-01-31"}"#),
        (credentials, r#"{"expires":"2030-01-31T08:00:00Z"}"#),
    ] {
        assert_eq!(send(&app, &token, "POST", path, body).await.status, 422, "{path} {body}");
    }
    let client = app.credential("Nursery", None).await.id;
    for body in [r#"{"retire_after_seconds":-1}"#, r#"{"retire_after_seconds":1.5}"#, "[null]"] {
        assert_eq!(
            send(&app, &token, "POST", &format!("{credentials}/{client}/rotate"), body).await.status,
            422
        );
    }
    for query in ["limit=0", "limit=x", "after=-1", "since=x", "limit=1&limit=2"] {
        assert_eq!(send(&app, &token, "GET", &format!("/audit?{query}"), "").await.status, 422, "{query}");
    }
}
