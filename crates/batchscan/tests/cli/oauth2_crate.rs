//! The `oauth2` crate against a running demo.

use std::time::Duration;

use oauth2::basic::{BasicClient, BasicErrorResponseType, BasicTokenResponse, BasicTokenType};
use oauth2::{
    ClientId, ClientSecret, HttpRequest, HttpResponse, RequestTokenError, TokenResponse as _, TokenUrl,
};
use serde_json::Value;

use crate::demo;
use crate::service::Service;
use crate::site::{Credential, Site};

/// Three full pages of v2.
const BATCHES: &str = "3000";
/// Stops a pagination loop.
const PAGES_LIMIT: usize = 50;

#[tokio::test]
async fn the_results_are_those_of_the_documentation() {
    let demo = Demo::start();
    let token = demo.token(&demo.credential.secret).await.unwrap();
    assert_eq!(*token.token_type(), BasicTokenType::Bearer);
    assert_eq!(token.expires_in(), Some(Duration::from_secs(3600)));
    assert_documented("bearer, for 3600 s");
    let (mut ids, mut query, mut pages) = (Vec::new(), Vec::new(), 0);
    loop {
        let page = demo.get("/v2/batches", &query, &token).await;
        ids.extend(ids_of(&page["data"]));
        pages += 1;
        let Some(next) = page["next_token"].as_str() else { break };
        assert!(pages < PAGES_LIMIT, "no end after {pages} pages");
        query = vec![("next_token", next.to_owned())];
    }
    assert!(pages > 1, "only one page");
    assert_eq!(ids, ids_of(&demo.get("/v1/batches", &[], &token).await));
    assert_documented(&format!("all {} batches in order, in {pages} pages", ids.len()));
    let error = demo.token("not-the-secret-of-anyone").await.unwrap_err();
    let RequestTokenError::ServerResponse(response) = error else { panic!("{error:?}") };
    assert_eq!(*response.error(), BasicErrorResponseType::InvalidClient);
    assert_documented("gives `ServerResponse`, `invalid_client`");
}

type TokenError = oauth2::basic::BasicRequestTokenError<reqwest::Error>;

/// A running demo and an HTTP client for it.
struct Demo {
    service: Service,
    credential: Credential,
    http: reqwest::Client,
    _site: Site,
}

impl Demo {
    fn start() -> Self {
        let site = Site::without_org();
        let (service, _) = demo::start(&site, &["--batches", BATCHES]);
        let credential = demo::credential(&service);
        let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
        // The crate's documentation says not to follow redirects.
        let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy().build();
        Self { service, credential, http: http.unwrap(), _site: site }
    }

    async fn token(&self, secret: &str) -> Result<BasicTokenResponse, TokenError> {
        let client = BasicClient::new(ClientId::new(self.credential.id.clone()))
            .set_client_secret(ClientSecret::new(secret.to_owned()))
            .set_token_uri(TokenUrl::new(format!("{}/v2/auth", self.service.url)).unwrap());
        let send = |request: HttpRequest| send(&self.http, request);
        client.exchange_client_credentials().request_async(&send).await
    }

    async fn get(&self, path: &str, query: &[(&str, String)], token: &BasicTokenResponse) -> Value {
        let request = self.http.get(format!("{}{path}", self.service.url)).query(query);
        let response = request.bearer_auth(token.access_token().secret()).send().await.unwrap();
        let body = response.error_for_status().unwrap().text().await.unwrap();
        serde_json::from_str(&body).unwrap()
    }
}

/// Our own HTTP client for the crate: its default one would be a second version of it in the build.
async fn send(http: &reqwest::Client, request: HttpRequest) -> Result<HttpResponse, reqwest::Error> {
    let response = http.execute(request.try_into()?).await?;
    let (status, headers) = (response.status(), response.headers().clone());
    let mut converted = HttpResponse::new(response.bytes().await?.to_vec());
    (*converted.status_mut(), *converted.headers_mut()) = (status, headers);
    Ok(converted)
}

fn ids_of(batches: &Value) -> Vec<String> {
    let batches = batches.as_array().unwrap();
    batches.iter().map(|batch| batch["batch_id"].as_str().unwrap().to_owned()).collect()
}

/// Requires this result in the row of the crate in `docs/CLIENTS.md`.
#[track_caller]
fn assert_documented(result: &str) {
    let row = include_str!("../../../../docs/CLIENTS.md")
        .lines()
        .find(|line| line.starts_with("| oauth2 (Rust) |"));
    assert!(row.unwrap().contains(&format!("| {result} |")), "{row:?}");
}
