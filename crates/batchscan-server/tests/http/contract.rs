//! Compares every response of every test with the OpenAPI document (decision 046).

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use batchscan_server::config::Config;
use batchscan_server::http::openapi::document;
use jsonschema::{Draft, Validator};
use serde_json::{Value, json};

use super::Reply;

/// Web pages, and what only the dashboard requests, are not in the document.
pub(crate) const PAGES: [&str; 11] = [
    "/",
    "/batches",
    "/batches/{id}",
    "/assets/{file}",
    "/favicon.svg",
    "/docs",
    "/docs/",
    "/docs/{file}",
    "/session",
    "/session/token",
    "/demo/reports/{id}",
];

/// The document of a service with all routes.
pub(crate) static DOCUMENT: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(&document(&Config::default())).unwrap());

/// Fails if the response is not as documented.
pub(crate) fn check(method: &str, path: &str, reply: &Reply) {
    let request = format!("{method} {path}");
    let operation = &DOCUMENT["paths"][documented_path(path)][method.to_ascii_lowercase()];
    let is_documented = operation.is_object();
    let is_unknown = reply.status == 404 && operation["responses"]["404"].is_null();
    if is_unknown || (!is_documented && reply.status >= 400) {
        return check_body(&json!({ "$ref": "#/components/schemas/Error" }), method, reply, &request);
    }
    if !is_documented {
        return assert!(is_page(path), "{request} ({}) is not in the document", reply.status);
    }
    let response = &operation["responses"][reply.status.to_string()];
    assert!(response.is_object(), "{request}: {} is not in the document", reply.status);
    let response = resolve(response);
    check_headers(&response["headers"], reply, &request);
    let Some(content) = response["content"].as_object() else {
        // A 400 is sent before the method is known, so it has a body even for HEAD.
        return assert!(
            reply.body.is_empty() || reply.status == 400,
            "{request}: {} has a body",
            reply.status
        );
    };
    let media_type = reply.header("content-type").unwrap_or_default();
    let essence = media_type.split(';').next().unwrap();
    let content = content.get(essence).unwrap_or_else(|| panic!("{request}: {media_type} is not documented"));
    if essence == "application/json" {
        check_body(&content["schema"], method, reply, &request);
    }
}

/// The path in the document.
fn documented_path(path: &str) -> &str {
    match path.strip_prefix("/v2/batches/") {
        Some(id) if !id.is_empty() && !id.contains('/') => "/v2/batches/{batch_id}",
        _ => path,
    }
}

/// Follows a reference.
fn resolve(node: &'static Value) -> &'static Value {
    let Some(target) = node["$ref"].as_str() else { return node };
    DOCUMENT.pointer(target.trim_start_matches('#')).unwrap_or_else(|| panic!("{target} does not exist"))
}

/// The errors of a value, by a schema of the document.
pub(crate) fn schema_errors(schema: &Value, value: &Value) -> Vec<String> {
    let validator = validator(schema);
    validator.iter_errors(value).map(|error| format!("{error} at {}", error.instance_path())).collect()
}

fn is_page(path: &str) -> bool {
    PAGES.iter().any(|page| match page.split_once('{') {
        Some((folder, _)) => path.starts_with(folder),
        None => path == *page,
    })
}

fn check_headers(documented: &'static Value, reply: &Reply, request: &str) {
    for (name, header) in documented.as_object().into_iter().flatten() {
        let header = resolve(header);
        let Some(text) = reply.header(name) else {
            assert_ne!(header["required"], true, "{request}: {} has no {name}", reply.status);
            continue;
        };
        let value = match header["schema"]["type"].as_str() {
            Some("integer") => json!(text.parse::<i64>().unwrap()),
            _ => json!(text),
        };
        assert_eq!(schema_errors(&header["schema"], &value), [""; 0], "{request}: {name}: {text}");
    }
}

fn check_body(schema: &Value, method: &str, reply: &Reply, request: &str) {
    // Compressed bodies are compared with plain ones in other tests.
    if method == "HEAD" || reply.header("content-encoding").is_some() {
        return;
    }
    let body = serde_json::from_slice(&reply.body).unwrap_or_else(|error| panic!("{request}: {error}"));
    assert_eq!(schema_errors(schema, &body), [""; 0], "{request}: {}", reply.status);
}

/// Built once for each schema.
fn validator(schema: &Value) -> Arc<Validator> {
    static BUILT: LazyLock<Mutex<HashMap<String, Arc<Validator>>>> = LazyLock::new(Mutex::default);
    let build = || {
        let mut whole = schema.clone();
        whole["components"] = json!({ "schemas": DOCUMENT["components"]["schemas"] });
        let options = jsonschema::options().with_draft(Draft::Draft202012).should_validate_formats(true);
        Arc::new(options.build(&whole).unwrap())
    };
    BUILT.lock().unwrap().entry(schema.to_string()).or_insert_with(build).clone()
}
