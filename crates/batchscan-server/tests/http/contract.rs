//! Holds answers against the OpenAPI document: every one that any test gets (decision 046).
//!
//! An answer that the document does not tell of fails the test that got it, whatever that test is about.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use batchscan_server::config::Config;
use batchscan_server::http::openapi::document;
use jsonschema::{Draft, Validator};
use serde_json::{Value, json};

use crate::http::reply::Reply;

/// Web pages are for people: the document does not tell of them.
pub(crate) const PAGES: [&str; 8] =
    ["/", "/batches", "/batches/{id}", "/assets/{file}", "/favicon.svg", "/docs", "/docs/", "/docs/{file}"];

/// The document of a service with all its routes.
pub(crate) static DOCUMENT: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(&document(&Config::default())).unwrap());

/// Fails unless the document tells of this answer to this request.
pub(crate) fn hold(method: &str, path: &str, reply: &Reply) {
    let asked = format!("{method} {path}");
    let operation = &DOCUMENT["paths"][path][method.to_ascii_lowercase()];
    let is_told = operation.is_object();
    if reply.status == 404 || (!is_told && reply.status >= 400) {
        return hold_body(&json!({ "$ref": "#/components/schemas/Error" }), method, reply, &asked);
    }
    if !is_told {
        return assert!(is_page(path), "{asked} is a {} and not in the document", reply.status);
    }
    let answer = &operation["responses"][reply.status.to_string()];
    assert!(answer.is_object(), "{asked}: {} is not in the document", reply.status);
    let answer = resolved(answer);
    hold_headers(&answer["headers"], reply, &asked);
    let Some(content) = answer["content"].as_object() else {
        // What hyper cannot parse has no method: the edge answers it with a body.
        return assert!(reply.body.is_empty() || reply.status == 400, "{asked}: {} has a body", reply.status);
    };
    let kind = reply.header("content-type").unwrap_or_default();
    let essence = kind.split(';').next().unwrap();
    let told = content.get(essence).unwrap_or_else(|| panic!("{asked}: {kind} is not in the document"));
    if essence == "application/json" {
        hold_body(&told["schema"], method, reply, &asked);
    }
}

/// What stands behind a reference, or the node itself.
pub(crate) fn resolved(node: &'static Value) -> &'static Value {
    let Some(target) = node["$ref"].as_str() else { return node };
    DOCUMENT.pointer(target.trim_start_matches('#')).unwrap_or_else(|| panic!("{target} leads nowhere"))
}

/// What is wrong with a value, by a schema of the document.
pub(crate) fn faults(schema: &Value, value: &Value) -> Vec<String> {
    validator(schema)
        .iter_errors(value)
        .map(|error| format!("{error} at {}", error.instance_path()))
        .collect()
}

fn is_page(path: &str) -> bool {
    PAGES.iter().any(|page| match page.split_once('{') {
        Some((folder, _)) => path.starts_with(folder),
        None => path == *page,
    })
}

fn hold_headers(told: &'static Value, reply: &Reply, asked: &str) {
    for (name, header) in told.as_object().into_iter().flatten() {
        let header = resolved(header);
        let Some(text) = reply.header(name) else {
            assert_ne!(header["required"], true, "{asked}: {} lacks {name}", reply.status);
            continue;
        };
        let value = match header["schema"]["type"].as_str() {
            Some("integer") => json!(text.parse::<i64>().unwrap()),
            _ => json!(text),
        };
        assert_eq!(faults(&header["schema"], &value), [""; 0], "{asked}: {name}: {text}");
    }
}

fn hold_body(schema: &Value, method: &str, reply: &Reply, asked: &str) {
    // The same body uncompressed is held elsewhere.
    if method == "HEAD" || reply.header("content-encoding").is_some() {
        return;
    }
    let body = serde_json::from_slice(&reply.body).unwrap_or_else(|error| panic!("{asked}: {error}"));
    assert_eq!(faults(schema, &body), [""; 0], "{asked}: {}", reply.status);
}

/// Made once for each schema.
fn validator(schema: &Value) -> Arc<Validator> {
    static MADE: LazyLock<Mutex<HashMap<String, Arc<Validator>>>> = LazyLock::new(Mutex::default);
    let mut made = MADE.lock().unwrap();
    let make = || {
        let mut whole = schema.clone();
        whole["components"] = json!({ "schemas": DOCUMENT["components"]["schemas"] });
        let options = jsonschema::options().with_draft(Draft::Draft202012).should_validate_formats(true);
        Arc::new(options.build(&whole).unwrap())
    };
    made.entry(schema.to_string()).or_insert_with(make).clone()
}
