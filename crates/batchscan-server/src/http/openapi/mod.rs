//! The interface as an OpenAPI 3.1 document (decision 046): at `/openapi.json`, and by `batchscan openapi`.
//!
//! | module | owns |
//! |---|---|
//! | `paths`, `operation` | what can be asked, and what HEAD and OPTIONS make of it |
//! | `parameters` | how it is asked |
//! | `answers`, `headers` | what is answered: errors by the type that is sent |
//! | `schemas`, `batch` | what the bodies are: a batch by the model's own list of fields |
//! | `node` | JSON in the order it is written |
//!
//! Nothing is read from the handlers. So tests hold the two against each other: every route, and every answer that any
//! test of `tests/http` gets.

mod answers;
mod batch;
mod headers;
mod node;
mod operation;
mod parameters;
mod paths;
mod schemas;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Response};
use bytes::Bytes;

use super::App;
use super::encoding::Encoding;
use super::published::{Published, mark};
use crate::config::Config;
use node::{Node, object};

/// The names of the ways to say who is calling.
const CLIENT_CREDENTIALS: &str = "clientCredentials";
const BEARER: &str = "bearerToken";
const BASIC: &str = "clientBasic";

const ABOUT: &str = "\
Read access to what tray scanners measured: each batch is one tray scan session, with its germination and seedling \
statistics.\n\n\
1. `POST /v2/auth` with the credentials you were given: an access token.\n\
2. `GET /v2/batches` with that token: a page of batches, and the cursor of the next one.\n\n\
Every error is JSON with a `detail`, also that of a path which is not there (404). A 503 passes: wait as long as \
`Retry-After` says. Answers are compressed with gzip or zstd where `Accept-Encoding` allows it.";

/// The document of a service that is set up so, as text for people and programs.
pub fn document(config: &Config) -> String {
    // Texts, numbers and flags: there is nothing in it that cannot be written.
    let mut text = serde_json::to_string_pretty(&tree(config)).unwrap_or_default();
    text.push('\n');
    text
}

/// `GET /openapi.json`.
pub(super) async fn answer(State(app): State<Arc<App>>, asked: HeaderMap) -> Response<Body> {
    app.document.get_or_init(|| published(&app.config)).answer(&asked)
}

fn published(config: &Config) -> Published {
    let plain = Bytes::from(document(config));
    let form = |encoding: Encoding| encoding.encode(&plain).ok().map(|bytes| (encoding, bytes));
    let compressed = [Encoding::Gzip, Encoding::Zstd].into_iter().filter_map(form).collect();
    Published::new("application/json", &mark(&plain), plain, compressed)
}

fn tree(config: &Config) -> Node {
    let server = config.public_url.as_deref().unwrap_or("/");
    object! {
        "openapi" => "3.1.0",
        "info" => object! {
            "title" => "batchscan API",
            "summary" => "An organisation's batch scan data",
            "description" => ABOUT,
            "version" => env!("CARGO_PKG_VERSION"),
            "license" => object! { "name" => "MIT", "identifier" => "MIT" },
        },
        "servers" => [object! { "url" => server }],
        "tags" => tags(),
        "paths" => paths::all(config),
        "components" => object! {
            "schemas" => schemas::all(),
            "parameters" => parameters::all(),
            "headers" => headers::all(),
            "responses" => answers::components(),
            "securitySchemes" => security_schemes(config),
        },
    }
}

fn tags() -> Node {
    let tag = |name: &str, description: &str| object! { "name" => name, "description" => description };
    Node::List(vec![
        tag("Tokens", "Credentials for a token, by OAuth 2 client credentials."),
        tag("Batches", "The data: v2 in pages, v1 all at once."),
        tag("Health", "For load balancers and Prometheus."),
        tag("Document", "What you are reading."),
        tag(operation::ALIKE, "What every path does alike."),
    ])
}

fn security_schemes(config: &Config) -> Node {
    let token_url = format!("{}/v2/auth", config.public_url.as_deref().unwrap_or_default());
    object! {
        CLIENT_CREDENTIALS => object! {
            "type" => "oauth2",
            "description" => "Gets a token with your client id and secret, and sends it.",
            "flows" => object! {
                "clientCredentials" => object! { "tokenUrl" => token_url, "scopes" => object! {} },
            },
        },
        BEARER => object! {
            "type" => "http",
            "scheme" => "bearer",
            "description" => "A token that you have already.",
        },
        BASIC => object! {
            "type" => "http",
            "scheme" => "basic",
            "description" => "For the auth endpoints alone: the client id and secret in place of the form's fields. Batches want a token.",
        },
    }
}
