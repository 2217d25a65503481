//! Compares every response of every test with the OpenAPI documents (decision 046).

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use batchscan_server::config::Config;
use batchscan_server::http::openapi::document;
use batchscan_server::operator;
use jsonschema::{Draft, Validator};
use serde_json::{Value, json};

use super::Reply;

/// Web pages, and what only the dashboard requests, are not in the document.
pub(crate) const PAGES: [&str; 13] = [
    "/",
    "/batches",
    "/batches/{id}",
    "/analysis",
    "/assets/{file}",
    "/favicon.svg",
    "/docs",
    "/docs/",
    "/docs/{file}",
    "/session",
    "/session/token",
    "/session/seen",
    "/demo/reports/{id}",
];

/// The document of a service with all routes.
pub(crate) static DOCUMENT: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(&document(&Config::default())).unwrap());

/// The document of the operator API.
pub(crate) static OPERATOR_DOCUMENT: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(operator::DOCUMENT).unwrap());

/// Fails if the response is not as documented.
pub(crate) fn check(method: &str, path: &str, reply: &Reply) {
    let request = format!("{method} {path}");
    assert_eq!(reply.header("x-content-type-options").as_deref(), Some("nosniff"), "{request}");
    let is_operator = path.starts_with("/operator/");
    let document: &Value = if is_operator { &OPERATOR_DOCUMENT } else { &DOCUMENT };
    // The document of the operator API leaves out HEAD.
    let documented_method =
        if is_operator && method == "HEAD" { "get" } else { &method.to_ascii_lowercase() };
    let operation = &document["paths"][documented_path(document, path)][documented_method];
    let is_documented = operation.is_object();
    let is_unknown = reply.status == 404 && operation["responses"]["404"].is_null();
    if is_unknown || (!is_documented && reply.status >= 400) {
        let error = json!({ "$ref": "#/components/schemas/Error" });
        return check_body((document, &error), method, reply, &request);
    }
    if !is_documented {
        return assert!(is_page(path), "{request} ({}) is not in the document", reply.status);
    }
    let response = &operation["responses"][reply.status.to_string()];
    assert!(response.is_object(), "{request}: {} is not in the document", reply.status);
    let response = resolve(document, response);
    check_headers(document, &response["headers"], reply, &request);
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
        check_body((document, &content["schema"]), method, reply, &request);
        check_members((document, &content["schema"]), reply, &request);
    }
}

/// The path in the document.
fn documented_path<'a>(document: &'a Value, path: &'a str) -> &'a str {
    let matches = |template: &str| {
        let (names, parts) = (template.split('/'), path.split('/'));
        names.clone().count() == parts.clone().count()
            && names
                .zip(parts)
                .all(|(name, part)| name == part || (name.starts_with('{') && !part.is_empty()))
    };
    let mut templates = document["paths"].as_object().unwrap().keys();
    templates.find(|template| matches(template)).map_or(path, String::as_str)
}

/// Follows a reference.
fn resolve<'a>(document: &'a Value, node: &'a Value) -> &'a Value {
    let Some(target) = node["$ref"].as_str() else { return node };
    document.pointer(target.trim_start_matches('#')).unwrap_or_else(|| panic!("{target} does not exist"))
}

/// The errors of a value, by a schema of the public document.
pub(crate) fn schema_errors(schema: &Value, value: &Value) -> Vec<String> {
    errors_by((&DOCUMENT, schema), value)
}

/// The errors of a value, by a schema of a document.
pub(crate) fn errors_by(schema: (&Value, &Value), value: &Value) -> Vec<String> {
    let validator = validator(schema);
    validator.iter_errors(value).map(|error| format!("{error} at {}", error.instance_path())).collect()
}

fn is_page(path: &str) -> bool {
    PAGES.iter().any(|page| match page.split_once('{') {
        Some((folder, _)) => path.starts_with(folder),
        None => path == *page,
    })
}

fn check_headers(document: &Value, documented: &Value, reply: &Reply, request: &str) {
    for (name, header) in documented.as_object().into_iter().flatten() {
        let header = resolve(document, header);
        let Some(text) = reply.header(name) else {
            assert_ne!(header["required"], true, "{request}: {} has no {name}", reply.status);
            continue;
        };
        let value = match header["schema"]["type"].as_str() {
            Some("integer") => json!(text.parse::<i64>().unwrap()),
            _ => json!(text),
        };
        let errors = errors_by((document, &header["schema"]), &value);
        assert_eq!(errors, [""; 0], "{request}: {name}: {text}");
    }
}

fn check_body(schema: (&Value, &Value), method: &str, reply: &Reply, request: &str) {
    // Compressed bodies are compared with plain ones in other tests.
    if method == "HEAD" || reply.header("content-encoding").is_some() {
        return;
    }
    let body = serde_json::from_slice(&reply.body).unwrap_or_else(|error| panic!("{request}: {error}"));
    assert_eq!(errors_by(schema, &body), [""; 0], "{request}: {}", reply.status);
}

/// Fails if the body has members that are not documented.
fn check_members(schema: (&Value, &Value), reply: &Reply, request: &str) {
    let body: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    for name in body.as_object().into_iter().flat_map(|members| members.keys()) {
        assert!(declares(schema, name), "{request}: {}: {name} is not documented", reply.status);
    }
}

/// Whether a schema has a member of this name, or describes none.
fn declares((document, schema): (&Value, &Value), name: &str) -> bool {
    let schema = resolve(document, schema);
    match schema["anyOf"].as_array() {
        Some(schemas) => schemas.iter().any(|schema| declares((document, schema), name)),
        None => schema["properties"].as_object().is_none_or(|members| members.contains_key(name)),
    }
}

/// Built once for each schema.
fn validator((document, schema): (&Value, &Value)) -> Arc<Validator> {
    static BUILT: LazyLock<Mutex<HashMap<String, Arc<Validator>>>> = LazyLock::new(Mutex::default);
    let build = || {
        let mut whole = schema.clone();
        whole["components"] = json!({ "schemas": document["components"]["schemas"] });
        let options = jsonschema::options().with_draft(Draft::Draft202012).should_validate_formats(true);
        Arc::new(options.build(&whole).unwrap())
    };
    let name = format!("{}: {schema}", document["info"]["title"]);
    BUILT.lock().unwrap().entry(name).or_insert_with(build).clone()
}
