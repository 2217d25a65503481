//! Requests: the token in them, the answer's status judged, and another try where that can help.

use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use batchscan_model::{ClientSecret, DateRange};
use bytes::Bytes;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, IF_NONE_MATCH, LOCATION, RETRY_AFTER};
use reqwest::{Response, StatusCode};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;
use url::Url;

use crate::failure::{host_of, meaning, plain};
use crate::patience::{Patience, Rules};
use crate::token::{Token, TokenAnswer};
use crate::{Error, Page, Version};

/// A page of 10,000 batches of 20 KiB each: more is no page, and would not fit small machines.
const PAGE_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Tokens and error bodies are some hundred bytes.
const SMALL_BYTES_MAX: usize = 256 * 1024;
/// The shortest text that is worth hiding.
const HIDDEN_BYTES_MIN: usize = 8;

/// Asks one service in the name of one client.
pub(crate) struct Asker {
    http: reqwest::Client,
    base: Url,
    client_id: String,
    client_secret: ClientSecret,
    pub(crate) version: Version,
    rules: Rules,
    /// One for each version: whether a token of one serves on the other is left open by the interface.
    tokens: Mutex<[Option<Token>; 2]>,
    /// Whether anybody ever answered: before that, an address where nobody does counts as a wrong one.
    was_answered: AtomicBool,
}

/// What went wrong with one try, and how long the service asked to wait.
#[derive(Debug)]
pub(crate) struct Trouble {
    error: Error,
    wait: Option<Duration>,
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self { error, wait: None }
    }
}

impl Asker {
    pub(crate) fn new(
        http: reqwest::Client,
        base: Url,
        client_id: String,
        client_secret: ClientSecret,
        version: Version,
        rules: Rules,
    ) -> Self {
        let (tokens, was_answered) = (Mutex::new([None, None]), AtomicBool::new(false));
        Self { http, base, client_id, client_secret, version, rules, tokens, was_answered }
    }

    /// The address of the batches of a window. The window is repeated beside a cursor: every service takes that.
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

    /// One page of v2, tried again as long as patience lasts.
    pub(crate) async fn page(&self, url: &Url) -> Result<Page, Error> {
        self.persist(|| self.page_once(url)).await
    }

    /// The beginning of an answer: 200, or 304 where `held` is the ETag of what the caller has.
    pub(crate) async fn begin(
        &self,
        version: Version,
        url: &Url,
        held: Option<&str>,
    ) -> Result<Response, Error> {
        let held = held.map(HeaderValue::try_from).transpose();
        let held = held.map_err(|_| Error::Settings("the ETag cannot be sent in a header".into()))?;
        self.persist(|| self.begin_once(version, url, held.as_ref())).await
    }

    /// Makes sure that the credentials are good.
    pub(crate) async fn sign_in(&self) -> Result<(), Error> {
        self.persist(|| async { self.token(self.version).await.map(drop) }).await
    }

    /// Tries until it succeeds, fails for good, or patience ends. A refused token is renewed once.
    async fn persist<T, F: Future<Output = Result<T, Trouble>>>(
        &self,
        mut attempt: impl FnMut() -> F,
    ) -> Result<T, Error> {
        let mut patience = Patience::new(&self.rules);
        let mut was_renewed = false;
        loop {
            let Trouble { error, wait } = match attempt().await {
                Ok(done) => return Ok(done),
                Err(trouble) => trouble,
            };
            let error = self.concealed(error).await;
            let is_known_address = self.was_answered.load(Ordering::Relaxed);
            match error {
                Error::TokenRefused { .. } if !was_renewed => was_renewed = true,
                error if error.is_passing() && is_known_address => patience.wait(error, wait).await?,
                Error::Unreachable { host, why } if !is_known_address => {
                    let why = format!("{why}; check the address, and that the service runs");
                    return Err(Error::Unreachable { host, why });
                }
                error => return Err(error),
            }
        }
    }

    async fn page_once(&self, url: &Url) -> Result<Page, Trouble> {
        let response = self.begin_once(Version::V2, url, None).await?;
        let body = self.whole(response, PAGE_BYTES_MAX).await?;
        let text = String::from_utf8(body).map_err(|error| match error.utf8_error().error_len() {
            None => self.broken("the page ends in the middle"),
            Some(_) => self.not_batchscan(url, "not UTF-8 text"),
        })?;
        Page::from_envelope(text).map_err(|error| {
            // A proxy may end a body early and cleanly: what stops in mid-sentence was cut.
            if error.is_eof() {
                return self.broken("the page ends in the middle").into();
            }
            let what = format!("not a page of batches: {error}");
            self.not_batchscan(url, &what).into()
        })
    }

    async fn begin_once(
        &self,
        version: Version,
        url: &Url,
        held: Option<&HeaderValue>,
    ) -> Result<Response, Trouble> {
        let token = self.token(version).await?;
        let mut request = self.http.get(url.clone()).header(AUTHORIZATION, bearer(&token)?);
        if let Some(held) = held {
            request = request.header(IF_NONE_MATCH, held);
        }
        let response = self.send(request, url).await?;
        match response.status() {
            StatusCode::OK => Ok(response),
            StatusCode::NOT_MODIFIED if held.is_some() => Ok(response),
            StatusCode::UNAUTHORIZED => {
                self.give_up(version, &token).await;
                Err(Error::TokenRefused { detail: detail(self.whole(response, SMALL_BYTES_MAX).await) }
                    .into())
            }
            _ => Err(self.judge(response, url).await),
        }
    }

    /// The token of before if it is still good, else a new one. Others wait meanwhile instead of asking for more.
    async fn token(&self, version: Version) -> Result<Token, Trouble> {
        let kept = &mut self.tokens.lock().await[version as usize];
        if let Some(token) = kept.as_ref().filter(|token| token.is_fresh(Instant::now())) {
            return Ok(token.clone());
        }
        let token = self.new_token(version).await?;
        *kept = Some(token.clone());
        Ok(token)
    }

    /// Marks a token that was refused, unless another walk has renewed it meanwhile.
    async fn give_up(&self, version: Version, refused: &Token) {
        let kept = &mut self.tokens.lock().await[version as usize];
        if let Some(kept) = kept.as_mut().filter(|kept| kept.text() == refused.text()) {
            kept.refuse();
        }
    }

    async fn new_token(&self, version: Version) -> Result<Token, Trouble> {
        let (url, asked_at) = (self.url(version, "auth"), Instant::now());
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
                return Err(Error::CredentialsRefused {
                    detail: detail(self.whole(response, SMALL_BYTES_MAX).await),
                }
                .into());
            }
            _ => return Err(self.judge(response, &url).await),
        }
        let body = self.whole(response, SMALL_BYTES_MAX).await?;
        match serde_json::from_slice::<TokenAnswer>(&body) {
            Ok(answer) => {
                let token = Token::new(answer, asked_at);
                // Kept, one that cannot be sent would be in the way of a better one.
                bearer(&token)?;
                Ok(token)
            }
            Err(error) if error.is_eof() && !body.is_empty() => {
                Err(self.broken("the token ends in the middle").into())
            }
            // The parser's own words could repeat a part of a token.
            Err(_) => Err(self.not_batchscan(&url, "its answer holds no access_token").into()),
        }
    }

    async fn send(&self, request: reqwest::RequestBuilder, url: &Url) -> Result<Response, Trouble> {
        let response = request.send().await.map_err(|error| meaning(&error, url))?;
        self.was_answered.store(true, Ordering::Relaxed);
        if response.status().is_redirection() && response.status() != StatusCode::NOT_MODIFIED {
            let to = response.headers().get(LOCATION).and_then(|to| to.to_str().ok()).unwrap_or("nowhere");
            return Err(Error::Redirected { url: plain(url), to: to.to_owned() }.into());
        }
        Ok(response)
    }

    /// A body to its end, in one piece.
    async fn whole(&self, mut response: Response, bytes_max: usize) -> Result<Vec<u8>, Trouble> {
        let url = response.url().clone();
        let length = response.content_length().and_then(|length| usize::try_from(length).ok());
        let mut body = Vec::with_capacity(length.unwrap_or(0).min(bytes_max));
        while let Some(chunk) = response.chunk().await.map_err(|error| meaning(&error, &url))? {
            if body.len() + chunk.len() > bytes_max {
                let what = format!("an answer of more than {} KiB", bytes_max >> 10);
                return Err(self.not_batchscan(&url, &what).into());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// The next piece of a body, nothing at its end.
    pub(crate) async fn piece(&self, response: &mut Response) -> Result<Option<Bytes>, Error> {
        let url = response.url().clone();
        response.chunk().await.map_err(|error| meaning(&error, &url))
    }

    /// What a status that is no success means.
    async fn judge(&self, response: Response, url: &Url) -> Trouble {
        let status = response.status();
        let wait = response.headers().get(RETRY_AFTER).and_then(seconds);
        let detail = detail(self.whole(response, SMALL_BYTES_MAX).await);
        let error = match status.as_u16() {
            429 | 502 | 503 | 504 => Error::Unavailable { status, detail },
            500.. => Error::Refused { status, detail },
            400.. if detail.is_some() && status != StatusCode::NOT_FOUND => Error::Refused { status, detail },
            _ => self.not_batchscan(url, &format!("it answered {status}")),
        };
        Trouble { error, wait }
    }

    /// An error without what must not come into anybody's log: some services repeat what they were sent.
    async fn concealed(&self, error: Error) -> Error {
        let secret = self.client_secret.reveal();
        let encoded: String = form_urlencoded::byte_serialize(secret.as_bytes()).collect();
        let tokens = self.tokens.lock().await;
        let tokens = tokens.iter().flatten().map(Token::text);
        // What is shorter is no secret, but a word that somebody tries: hiding it would garble what the service says.
        let hidden =
            [secret, &encoded].into_iter().chain(tokens).filter(|text| text.len() >= HIDDEN_BYTES_MIN);
        let hidden: Vec<&str> = hidden.collect();
        error.in_words(&|words| {
            hidden.iter().fold(words.to_owned(), |words, hidden| words.replace(hidden, "[redacted]"))
        })
    }

    pub(crate) fn broken(&self, why: &str) -> Error {
        Error::Broken { host: host_of(&self.base), why: why.to_owned() }
    }

    pub(crate) fn not_batchscan(&self, url: &Url, why: &str) -> Error {
        Error::NotBatchscan { url: plain(url), why: why.to_owned() }
    }

    fn url(&self, version: Version, resource: &str) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend([version.prefix(), resource]);
        }
        url
    }
}

impl fmt::Debug for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asker")
            .field("base", &self.base.as_str())
            .field("client_id", &self.client_id)
            .finish()
    }
}

fn bearer(token: &Token) -> Result<HeaderValue, Error> {
    let value = HeaderValue::try_from(format!("Bearer {}", token.text()));
    let mut value =
        value.map_err(|_| Error::TokenRefused { detail: Some("no header can hold it".into()) })?;
    value.set_sensitive(true);
    Ok(value)
}

/// `Retry-After` in seconds. Its other form, a date, is as if it were not there: clocks differ.
fn seconds(value: &HeaderValue) -> Option<Duration> {
    value.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

/// What the service says of an error, if it says it as the interface has it.
fn detail(body: Result<Vec<u8>, Trouble>) -> Option<String> {
    let body: Value = serde_json::from_slice(&body.ok()?).ok()?;
    Some(match body.get("detail")? {
        Value::String(text) => text.clone(),
        Value::Array(faults) => faults.iter().map(fault).collect::<Vec<_>>().join("; "),
        other => other.to_string(),
    })
}

/// One entry of a 422: `query.start_date: Input should have timezone info`.
fn fault(entry: &Value) -> String {
    let parts = entry["loc"].as_array().map(Vec::as_slice).unwrap_or_default();
    let place: Vec<&str> = parts.iter().filter_map(Value::as_str).collect();
    format!("{}: {}", place.join("."), entry["msg"].as_str().unwrap_or("not valid"))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// A server that sends without end, until nobody takes it any more.
    async fn endless() -> (Url, tokio::task::JoinHandle<usize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = Url::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let sending = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 4_096]).await.unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
            let mut sent = 0;
            while stream.write_all(&[b' '; 16_384]).await.is_ok() {
                sent += 16_384;
            }
            sent
        });
        (url, sending)
    }

    #[tokio::test]
    async fn an_answer_above_its_limit_is_refused_and_its_connection_closed() {
        let (url, sending) = endless().await;
        let tls = crate::tls::config(&[], false).unwrap();
        let http = reqwest::Client::builder().no_proxy().tls_backend_preconfigured(tls).build().unwrap();
        let secret = ClientSecret::new("hush-5f");
        let asker = Asker::new(http, url.clone(), "id".into(), secret, Version::V2, Rules::default());
        let response = asker.http.get(url.clone()).send().await.unwrap();
        let Trouble { error, .. } = asker.whole(response, 1 << 20).await.unwrap_err();
        assert_eq!(error, asker.not_batchscan(&url, "an answer of more than 1024 KiB"));
        assert!(sending.await.unwrap() < 64 << 20);
    }
}
