//! Sends authenticated requests to one service and retries them.

use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use batchscan_model::{ClientSecret, DateRange};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, IF_NONE_MATCH, LOCATION};
use reqwest::{RequestBuilder, Response, StatusCode};
use tokio::sync::Mutex;
use tokio::time::Instant;
use url::Url;

use crate::changes::Changes;
use crate::response::{PAGE_BYTES_MAX, SMALL_BYTES_MAX, read_body, read_detail, status_error};
use crate::retry::{Backoff, RetryPolicy};
use crate::token::{Token, TokenResponse};
use crate::{Error, Page, Version};

/// Shorter texts are not redacted: they are common words rather than secrets, and the service's message would suffer.
const REDACTED_BYTES_MIN: usize = 8;

pub(crate) struct Session {
    http: reqwest::Client,
    base: Url,
    client_id: String,
    client_secret: ClientSecret,
    pub(crate) version: Version,
    retry_policy: RetryPolicy,
    /// One per version: the API does not promise that a token of one version is valid for the other.
    tokens: Mutex<[Option<Token>; 2]>,
    /// Until the service has responded once, a failed connection is final: the address is probably wrong.
    has_responded: AtomicBool,
}

impl Session {
    pub(crate) fn new(
        http: reqwest::Client,
        base: Url,
        (client_id, client_secret): (String, ClientSecret),
        version: Version,
        retry_policy: RetryPolicy,
    ) -> Self {
        let (tokens, has_responded) = (Mutex::default(), AtomicBool::new(false));
        Self { http, base, client_id, client_secret, version, retry_policy, tokens, has_responded }
    }

    /// The URL of batches. The date range is repeated next to a cursor: every service accepts that.
    pub(crate) fn batches_url(&self, version: Version, range: DateRange, next_token: Option<&str>) -> Url {
        let mut url = self.url(version, "batches");
        let dates = [("start_date", range.start), ("end_date", range.end)];
        for (name, date) in dates.into_iter().filter_map(|(name, date)| Some((name, date?))) {
            url.query_pairs_mut().append_pair(name, &date.to_string());
        }
        if let Some(next_token) = next_token {
            url.query_pairs_mut().append_pair("next_token", next_token);
        }
        url
    }

    /// Requests a token, unless there is one already.
    pub(crate) async fn sign_in(&self) -> Result<(), Error> {
        self.retry(Duration::ZERO, || async { self.token(self.version).await.map(drop) }).await
    }

    pub(crate) async fn page(&self, url: &Url) -> Result<Page, Error> {
        let parse = || self.try_parse(url, "a page of batches", Page::from_envelope);
        self.retry(Duration::ZERO, parse).await
    }

    /// Reads changes after a position, or the first part of the complete state. The service may wait for a change.
    pub(crate) async fn changes(&self, since: Option<&str>, wait: Duration) -> Result<Changes, Error> {
        let mut url = self.url(Version::V2, "changes");
        if let Some(since) = since {
            url.query_pairs_mut().append_pair("since", since);
        }
        if !wait.is_zero() {
            url.query_pairs_mut().append_pair("wait", &wait.as_secs().to_string());
        }
        self.retry(wait, || self.try_parse(&url, "changes", Changes::from_envelope)).await
    }

    /// Sends a GET request. The response is a 200, or a 304 if `etag` is given. Its body is not read yet.
    pub(crate) async fn get(
        &self,
        version: Version,
        url: &Url,
        etag: Option<&str>,
    ) -> Result<Response, Error> {
        let etag = etag.map(HeaderValue::try_from).transpose();
        let etag = etag.map_err(|_| Error::Config("the ETag is not a valid header value".into()))?;
        self.retry(Duration::ZERO, || self.try_get(version, url, etag.as_ref())).await
    }

    /// Retries temporary errors within the limit, which begins after the time that a response may take. A rejected token
    /// is renewed once.
    async fn retry<T, F: Future<Output = Result<T, Error>>>(
        &self,
        wait: Duration,
        mut attempt: impl FnMut() -> F,
    ) -> Result<T, Error> {
        let mut backoff = Backoff::new(&self.retry_policy, Instant::now() + wait);
        let mut has_renewed_token = false;
        loop {
            let error = match attempt().await {
                Ok(value) => return Ok(value),
                Err(error) => self.redact(error).await,
            };
            let has_responded = self.has_responded.load(Ordering::Relaxed);
            match error {
                Error::TokenRejected { .. } if !has_renewed_token => has_renewed_token = true,
                error if error.is_temporary() && has_responded => {
                    tokio::time::sleep(backoff.next_wait(error, Instant::now())?).await;
                }
                Error::Unreachable { host, reason } => {
                    let reason = format!("{reason}; check the address, and that the service is running");
                    return Err(Error::Unreachable { host, reason });
                }
                error => return Err(error),
            }
        }
    }

    /// Reads a response of v2 and parses its body.
    async fn try_parse<T>(
        &self,
        url: &Url,
        expected: &str,
        parse: fn(String) -> Result<T, serde_json::Error>,
    ) -> Result<T, Error> {
        let response = self.try_get(Version::V2, url, None).await?;
        let body = read_body(response, PAGE_BYTES_MAX).await?;
        let truncated = || Error::connection_lost(url, "the JSON was truncated");
        let text = String::from_utf8(body).map_err(|error| match error.utf8_error().error_len() {
            None => truncated(),
            Some(_) => Error::unexpected_response(url, "not UTF-8 text"),
        })?;
        // A proxy may end a truncated body as if it were complete.
        parse(text).map_err(|error| match error.is_eof() {
            true => truncated(),
            false => Error::unexpected_response(url, format!("not {expected}: {error}")),
        })
    }

    async fn try_get(
        &self,
        version: Version,
        url: &Url,
        etag: Option<&HeaderValue>,
    ) -> Result<Response, Error> {
        let token = self.token(version).await?;
        let mut request = self.http.get(url.clone()).header(AUTHORIZATION, bearer(&token)?);
        if let Some(etag) = etag {
            request = request.header(IF_NONE_MATCH, etag);
        }
        let response = self.send(request, url).await?;
        match response.status() {
            StatusCode::OK => Ok(response),
            StatusCode::NOT_MODIFIED if etag.is_some() => Ok(response),
            StatusCode::UNAUTHORIZED => {
                self.discard_token(version, &token).await;
                Err(Error::TokenRejected { detail: read_detail(response).await })
            }
            _ => Err(status_error(response).await),
        }
    }

    /// Returns the current token, or requests a new one while other requests wait for it.
    async fn token(&self, version: Version) -> Result<Token, Error> {
        let current = &mut self.tokens.lock().await[version as usize];
        if let Some(token) = current.as_ref().filter(|token| token.is_fresh(Instant::now())) {
            return Ok(token.clone());
        }
        let token = self.request_token(version).await?;
        *current = Some(token.clone());
        Ok(token)
    }

    /// Marks a rejected token as expired, unless another request has renewed it already.
    async fn discard_token(&self, version: Version, rejected: &Token) {
        let current = &mut self.tokens.lock().await[version as usize];
        if let Some(current) = current.as_mut().filter(|current| current.text() == rejected.text()) {
            current.expire();
        }
    }

    async fn request_token(&self, version: Version) -> Result<Token, Error> {
        let (url, requested_at) = (self.url(version, "auth"), Instant::now());
        let form = form_urlencoded::Serializer::new(String::new())
            .append_pair("grant_type", "client_credentials")
            .append_pair("client_id", &self.client_id)
            .append_pair("client_secret", self.client_secret.reveal())
            .finish();
        let form_type = "application/x-www-form-urlencoded";
        let request = self.http.post(url.clone()).header(CONTENT_TYPE, form_type).body(form);
        let response = self.send(request, &url).await?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED => {
                return Err(Error::CredentialsRejected { detail: read_detail(response).await });
            }
            _ => return Err(status_error(response).await),
        }
        let body = read_body(response, SMALL_BYTES_MAX).await?;
        match serde_json::from_slice::<TokenResponse>(&body) {
            Ok(response) => {
                let token = Token::new(response, requested_at);
                // Do not store a token that cannot be sent.
                bearer(&token)?;
                Ok(token)
            }
            Err(error) if error.is_eof() && !body.is_empty() => {
                Err(Error::connection_lost(&url, "the token was truncated"))
            }
            // The parser's message could contain a part of a token.
            Err(_) => Err(Error::unexpected_response(&url, "the response has no access_token")),
        }
    }

    async fn send(&self, request: RequestBuilder, url: &Url) -> Result<Response, Error> {
        let response = request.send().await.map_err(|error| Error::from_http(&error, url))?;
        self.has_responded.store(true, Ordering::Relaxed);
        if response.status().is_redirection() && response.status() != StatusCode::NOT_MODIFIED {
            let target = response.headers().get(LOCATION).and_then(|target| target.to_str().ok());
            return Err(Error::redirected(url, target.unwrap_or("an unknown address")));
        }
        Ok(response)
    }

    /// Removes the secret and tokens from an error: some services repeat what they were sent.
    async fn redact(&self, error: Error) -> Error {
        let secret = self.client_secret.reveal();
        let encoded: String = form_urlencoded::byte_serialize(secret.as_bytes()).collect();
        let tokens = self.tokens.lock().await;
        let tokens = tokens.iter().flatten().map(Token::text);
        let secrets: Vec<&str> = [secret, &encoded].into_iter().chain(tokens).collect();
        error.redacted(|text| {
            let long = secrets.iter().filter(|secret| secret.len() >= REDACTED_BYTES_MIN);
            long.fold(text.to_owned(), |text, secret| text.replace(secret, "[redacted]"))
        })
    }

    fn url(&self, version: Version, resource: &str) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend([version.path(), resource]);
        }
        url
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Session");
        shown.field("base", &self.base.as_str()).field("client_id", &self.client_id).finish_non_exhaustive()
    }
}

fn bearer(token: &Token) -> Result<HeaderValue, Error> {
    let value = HeaderValue::try_from(format!("Bearer {}", token.text()));
    let detail = || Some("not a valid header value".into());
    let mut value = value.map_err(|_| Error::TokenRejected { detail: detail() })?;
    value.set_sensitive(true);
    Ok(value)
}
