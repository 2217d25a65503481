//! The `oauth2` crate, unmodified and with its defaults, against a running service.
//!
//! Each test compares its result with the crate's row in `docs/CLIENTS.md`.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, and so do the parts it is made of"
)]

use std::time::Duration;

use oauth2::basic::{BasicClient, BasicErrorResponseType, BasicTokenResponse, BasicTokenType};
use oauth2::{ClientId, ClientSecret, RequestTokenError, TokenResponse as _, TokenUrl, reqwest};
use serde_json::Value;

#[path = "cli/program.rs"]
#[expect(dead_code, reason = "the other tests use the rest")]
mod program;
#[path = "cli/service.rs"]
#[expect(dead_code, reason = "the other tests use the rest")]
mod service;

use service::Service;

/// Three full pages of v2.
const BATCHES: &str = "3000";
/// Far above what a walk takes here: one that reads on is going in circles.
const PAGES_LIMIT: usize = 50;

#[tokio::test]
async fn a_token_names_its_kind_and_its_life() {
    let (demo, _service) = Demo::start();
    let token = demo.token(&demo.client_secret).await.unwrap();
    assert_eq!(*token.token_type(), BasicTokenType::Bearer);
    assert_eq!(token.expires_in(), Some(Duration::from_secs(3600)));
    assert_documented("bearer, for 3600 s");
}

#[tokio::test]
async fn paging_brings_what_v1_brings() {
    let (demo, _service) = Demo::start();
    let token = demo.token(&demo.client_secret).await.unwrap();
    let (mut ids, mut query, mut pages) = (Vec::new(), Vec::new(), 0);
    loop {
        let page = demo.get("/v2/batches", &query, &token).await;
        ids.extend(ids_of(&page["data"]));
        pages += 1;
        let Some(next) = page["next_token"].as_str() else { break };
        assert!(pages < PAGES_LIMIT, "no end after {pages} pages");
        query = vec![("next_token", next.to_owned())];
    }
    assert!(pages > 1, "one page holds it all, so that nothing was shown of paging");
    assert_eq!(ids, ids_of(&demo.get("/v1/batches", &[], &token).await));
    assert_documented(&format!("all {} batches in order, in {pages} pages", ids.len()));
}

#[tokio::test]
async fn a_wrong_secret_is_an_error_of_the_server_that_names_the_client() {
    let (demo, _service) = Demo::start();
    let error = demo.token("not-the-secret-of-anyone").await.unwrap_err();
    let RequestTokenError::ServerResponse(response) = error else { panic!("{error:?}") };
    assert_eq!(*response.error(), BasicErrorResponseType::InvalidClient);
    assert_documented("gives `ServerResponse`, `invalid_client`");
}

type TokenError = oauth2::basic::BasicRequestTokenError<oauth2::HttpClientError<reqwest::Error>>;

/// Where a demo listens, and the credentials it printed.
struct Demo {
    url: String,
    client_id: String,
    client_secret: String,
    http: reqwest::Client,
    /// Where its data lies: a demo that is killed leaves it behind.
    _folder: tempfile::TempDir,
}

impl Demo {
    fn start() -> (Self, Service) {
        let folder = tempfile::tempdir().unwrap();
        let words = ["demo", "--listen", "127.0.0.1:0", "--batches", BATCHES];
        let service = Service::start(program::batchscan(&words).env("TMPDIR", folder.path()));
        let printed = |label: &str| {
            let value = service.welcome.lines().find_map(|line| line.trim().strip_prefix(label));
            value.unwrap().trim().to_owned()
        };
        // As the crate's own docs have it: a token endpoint that redirects is not to be followed.
        let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy().build();
        let demo = Self {
            url: service.url.clone(),
            client_id: printed("client id"),
            client_secret: printed("client secret"),
            http: http.unwrap(),
            _folder: folder,
        };
        (demo, service)
    }

    async fn token(&self, secret: &str) -> Result<BasicTokenResponse, TokenError> {
        let client = BasicClient::new(ClientId::new(self.client_id.clone()))
            .set_client_secret(ClientSecret::new(secret.to_owned()))
            .set_token_uri(TokenUrl::new(format!("{}/v2/auth", self.url)).unwrap());
        client.exchange_client_credentials().request_async(&self.http).await
    }

    async fn get(&self, path: &str, query: &[(&str, String)], token: &BasicTokenResponse) -> Value {
        let request = self.http.get(format!("{}{path}", self.url)).query(query);
        let answer = request.bearer_auth(token.access_token().secret()).send().await.unwrap();
        let body = answer.error_for_status().unwrap().text().await.unwrap();
        serde_json::from_str(&body).unwrap()
    }
}

fn ids_of(batches: &Value) -> Vec<String> {
    let batches = batches.as_array().unwrap();
    batches.iter().map(|batch| batch["batch_id"].as_str().unwrap().to_owned()).collect()
}

/// Requires this result in the row of the crate in `docs/CLIENTS.md`.
fn assert_documented(result: &str) {
    let start = format!("| oauth2 (Rust) | {} |", version());
    let row = include_str!("../../../docs/CLIENTS.md").lines().find(|line| line.starts_with(&start));
    let is_there = row.is_some_and(|row| row.contains(&format!("| {result} |")));
    assert!(is_there, "docs/CLIENTS.md: expected {result} in the row {start}, found {row:?}");
}

/// The version in the lock file.
fn version() -> &'static str {
    let lock = include_str!("../../../Cargo.lock");
    let (_, entry) = lock.split_once("name = \"oauth2\"\nversion = \"").unwrap();
    entry.split_once('"').unwrap().0
}
