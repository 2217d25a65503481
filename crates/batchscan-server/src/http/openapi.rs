//! The OpenAPI document (decision 046): at `/openapi.json` and from `batchscan openapi`.
//!
//! It is a file, `openapi.json`. The tests compare it with the routes and with every response.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use batchscan_store::gzip;

use super::app::App;
use super::static_files::StaticFile;
use crate::config::Config;

const DOCUMENT: &str = include_str!("../../openapi.json");
/// Operations that are deprecated if v1 has an end.
const V1_OPERATIONS: [&str; 3] = ["getTokenV1", "listBatchesV1", "headBatchesV1"];

/// `GET /openapi.json`.
pub(super) async fn get(State(app): State<App>, headers: HeaderMap) -> Response {
    let build = || {
        let plain = document(&app.config).into_bytes();
        let gzip = gzip(&plain).into();
        StaticFile::new("application/json", plain.into(), Some(gzip))
    };
    app.openapi.get_or_init(build).respond(&headers)
}

/// The document for a service with this configuration.
pub fn document(config: &Config) -> String {
    let mut text = DOCUMENT.to_owned();
    if let Some(url) = &config.public_url {
        let json = |url: String| serde_json::Value::from(url).to_string();
        text = text.replacen("\"url\": \"/\"", &format!("\"url\": {}", json(url.clone())), 1);
        let token_url = json(format!("{url}/v2/auth"));
        text = text.replacen("\"tokenUrl\": \"/v2/auth\"", &format!("\"tokenUrl\": {token_url}"), 1);
    }
    if !config.metrics_in_public {
        text = without_between(&text, "    \"/metrics\": {", "    \"/openapi.json\": {");
    }
    if config.v1_sunset.is_some() {
        for operation in V1_OPERATIONS {
            let id = format!("\"operationId\": \"{operation}\",");
            text = text.replacen(&id, &format!("{id} \"deprecated\": true,"), 1);
        }
    }
    text
}

/// Removes `start` and everything up to `end`.
fn without_between(text: &str, start: &str, end: &str) -> String {
    let split = text.split_once(start).and_then(|(head, rest)| Some((head, rest.split_once(end)?.1)));
    split.map_or_else(|| text.to_owned(), |(head, tail)| format!("{head}{end}{tail}"))
}
