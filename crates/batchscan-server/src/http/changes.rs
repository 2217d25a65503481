//! `GET /v2/changes`: what a client needs to keep a copy of its batches current (decision 052).

use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use batchscan_model::{Invalid, OrgId, Part, Reason};
use batchscan_store::{
    Caller, Changes, ChangesPosition, ChangesRequest, CredentialStatus, Encoding, Freshness, PageResult,
    SyncProgress,
};
use tokio::time::Instant;

use super::access_log::Waited;
use super::app::App;
use super::batches::reserved;
use super::encoding::content_encoding;
use super::error::ApiError;
use super::parameters::Parameters;
use super::query::reject_invalid;
use super::response;
use crate::auth::TokenError;
use crate::cipher::Cipher;

/// The maximum of `wait`.
const WAIT_SECS_MAX: u64 = 60;
/// A response is sent after this time, even if `wait` is longer: many proxies end a request after 50 or 60 s.
const RESPONSE_SECS_MAX: u64 = 45;

/// The query of `GET /v2/changes`.
#[derive(Debug)]
pub(super) struct ChangesQuery {
    since: Option<Since>,
    wait: Duration,
}

/// A position, as the client sent it.
#[derive(Debug)]
struct Since {
    text: String,
    position: ChangesPosition,
}

/// `GET /v2/changes`: the complete state, then changes.
pub(super) async fn list(
    State(app): State<App>,
    caller: Caller,
    ChangesQuery { since, wait }: ChangesQuery,
    encoding: Encoding,
) -> Result<Response, ApiError> {
    let started = Instant::now();
    let position = since.as_ref().map(|since| &since.position);
    let mut waited = Duration::ZERO;
    loop {
        let request = ChangesRequest {
            position: position.cloned(),
            rows: app.config.page_rows,
            body_prefix: "{\"data\":[",
            encoding,
            now: app.clock.now(),
        };
        let (known, state) = (position.cloned(), app.waiting.last_state(caller.org));
        let is_unchanged =
            move |version| known.as_ref().is_some_and(|known| known.is_complete_in(version)).then_some(());
        let mut response = match app.store.changes(&caller, request, is_unchanged).await? {
            PageResult::InvalidCredential => return Err(ApiError::InvalidToken(TokenError::Invalid)),
            PageResult::Read(None) => return Err(ApiError::Gone),
            PageResult::Read(Some(changes)) => send(&app, &caller, changes)?,
            PageResult::Skipped(()) => {
                if let Some(Since { position, .. }) = &since
                    && waited < wait
                    && !app.is_draining()
                {
                    // A standby may lack a revocation that `state` already counts, which no wait would notice.
                    if waited.is_zero() && app.store.has_standbys() {
                        require_active(&app, &caller).await?;
                    }
                    let waiting = app.waiting.wait(caller.org, position.seen, state, started + wait).await;
                    waiting.ok_or_else(|| ApiError::unavailable("too many requests wait"))?;
                    waited = started.elapsed();
                    // A standby may not have the revocation yet, and the next wait would not notice it.
                    if app.waiting.last_state(caller.org).may_have_revocation(state) {
                        require_active(&app, &caller).await?;
                    }
                    continue;
                }
                let text = since.as_ref().map_or("", |since| &since.text);
                unchanged(text)
            }
        };
        response.extensions_mut().insert(Waited(waited));
        return Ok(response);
    }
}

/// Fails if the primary knows that the credential was revoked or removed. Without a primary, the next read decides.
async fn require_active(app: &App, caller: &Caller) -> Result<(), ApiError> {
    let Ok(credential) = app.store.credential(&caller.client, Freshness::Latest).await else { return Ok(()) };
    match credential.map(|credential| credential.status(app.clock.now())) {
        Some(CredentialStatus::Active) => Ok(()),
        _ => Err(ApiError::InvalidToken(TokenError::Invalid)),
    }
}

fn unchanged(since: &str) -> Response {
    let body = format!("{{\"data\":[],\"removed\":[],\"since\":\"{since}\",\"more\":false}}");
    ok(Body::from(body), Encoding::Identity)
}

/// Appends the removals and the position, and reserves the memory of the response.
fn send(app: &App, caller: &Caller, changes: Changes) -> Result<Response, ApiError> {
    let Changes { page, removed, position } = changes;
    let since = app.keys().changes.encrypt(caller.org, &position);
    let since = since.ok_or_else(|| ApiError::internal("cannot encrypt a position"))?;
    let removed = serde_json::Value::from(removed);
    let has_more = position.progress != SyncProgress::Complete;
    let encoding = page.encoding();
    let body = page.finish(&format!("],\"removed\":{removed},\"since\":\"{since}\",\"more\":{has_more}}}"));
    Ok(ok(Body::from(reserved(app, caller, body)?), encoding))
}

fn ok(body: Body, encoding: Encoding) -> Response {
    let mut response = response::json(StatusCode::OK, body);
    let headers = response.headers_mut();
    headers.insert(header::VARY, HeaderValue::from_static("Authorization, Accept-Encoding"));
    headers.extend(content_encoding(encoding).map(|value| (header::CONTENT_ENCODING, value)));
    response
}

impl FromRequestParts<App> for ChangesQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, app).await?;
        let query = Self::parse(parts.uri.query().unwrap_or_default(), &app.keys().changes, caller.org);
        reject_invalid(app, &caller, query).await
    }
}

impl ChangesQuery {
    fn parse(query: &str, positions: &Cipher<ChangesPosition>, org: OrgId) -> Result<Self, Invalid> {
        let (query, mut errors) = (Parameters::parse(query.as_bytes()), Invalid::default());
        let since = query.value("since").and_then(|text| {
            let parse = |text: &str| {
                let position = positions.decrypt(org, text).ok_or(Reason::BadPosition)?;
                Ok(Since { text: text.to_owned(), position })
            };
            text.map(parse).transpose()
        });
        let since = since.map_err(|reason| errors.push(Part::Query, "since", reason)).ok().flatten();
        let wait = query.value("wait").and_then(|text| text.map_or(Ok(Duration::ZERO), parse_wait));
        let wait = wait.map_err(|reason| errors.push(Part::Query, "wait", reason)).unwrap_or_default();
        errors.or_ok(Self { since, wait })
    }
}

/// How long a request waits for changes.
fn parse_wait(text: &str) -> Result<Duration, Reason> {
    let secs: u64 = text.parse().map_err(|_| Reason::BadWait)?;
    if secs > WAIT_SECS_MAX {
        return Err(Reason::BadWait);
    }
    Ok(Duration::from_secs(secs.min(RESPONSE_SECS_MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decision 052.
    #[test]
    fn a_long_wait_is_valid_and_shortened() {
        for (text, secs) in [("0", 0), ("44", 44), ("45", 45), ("60", 45)] {
            assert_eq!(parse_wait(text), Ok(Duration::from_secs(secs)));
        }
        assert_eq!(parse_wait("61"), Err(Reason::BadWait));
    }
}
