//! `/session`: the sign-in of the dashboard (decision 051). A cookie that only these routes get is exchanged for ordinary
//! tokens.

use axum::Extension;
use axum::body::Body;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use batchscan_model::UtcInstant;
use batchscan_store::{
    ActiveSession, AdminError, IdAndSecret, Rejected, Session, SessionResult, SessionUse, StoreError,
    new_secret,
};
use serde::Serialize;
use tokio::time::Instant;
use url::Url;

use super::app::App;
use super::caller_cell::CallerCell;
use super::error::{ApiError, REMOVE_COOKIE};
use super::parameters::Parameters;
use super::response::no_content;
use super::token::{TokenRequest, TokenResponse, grant, in_time, in_time_since, read_form, token_response};
use crate::auth::Token;

const COOKIE: &str = "batchscan_session";
/// Lifetime of a session with "Keep me signed in on this device".
const KEPT_SECS: i64 = 90 * 24 * 3_600;
/// The same without. The cookie also ends with the browser.
const NOT_KEPT_SECS: i64 = 24 * 3_600;

/// Signs in with a client id and secret, or with a sign-in link.
pub(super) async fn create(
    State(app): State<App>,
    _: SameOrigin,
    Extension(cell): Extension<CallerCell>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let form = read_form(&headers, body).await?;
    let parameters = Parameters::parse(&form);
    let (started, now) = (Instant::now(), app.clock.now());
    if let Ok(Some(link)) = parameters.value("link") {
        let until = Some(now.plus_secs(KEPT_SECS));
        let used = exchange(&app, &cell, IdAndSecret::parse(link), until, started).await?;
        return used.map(|signed_in| signed_in.respond(&app, true)).ok_or(ApiError::UsedLink);
    }
    let request = TokenRequest::parse(&headers, &form)?;
    let granted = grant(&app, &cell, &request).await?;
    let is_kept = parameters.value("keep") == Ok(Some("true"));
    let expires_at = now.plus_secs(if is_kept { KEPT_SECS } else { NOT_KEPT_SECS });
    let client = granted.caller.client;
    let (session, secret) = random(Session::new(&app.keys().ring.secret, client, false, expires_at, now))?;
    // All reads and writes of a sign-in share one timeout: an import may hold SQLite's write lock.
    let added = in_time_since(started, app.store.add_session(session, Some(granted.secret_hash))).await?;
    added.map_err(|error| match error {
        // The secret was replaced meanwhile.
        AdminError::CredentialNotFound(_) => {
            ApiError::InvalidClient { by_basic: request.by_basic, rejected: Rejected::Wrong }
        }
        error => StoreError::from(error).into(),
    })?;
    let used = exchange(&app, &cell, Some(secret), None, started).await?;
    used.map(|signed_in| signed_in.respond(&app, true)).ok_or(ApiError::SignedOut)
}

/// Exchanges the cookie for a token, and replaces the cookie once a day. Returns 204 if there is no cookie.
pub(super) async fn token(
    State(app): State<App>,
    _: SameOrigin,
    Extension(cell): Extension<CallerCell>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let Some(cookie) = cookie(&headers)? else { return Ok(no_content()) };
    let used = exchange(&app, &cell, IdAndSecret::parse(cookie), None, Instant::now()).await?;
    let signed_in = used.ok_or(ApiError::SignedOut)?;
    app.check_rate(&signed_in.session.caller.client)?;
    Ok(signed_in.respond(&app, signed_in.session.is_renewed))
}

/// Signs out: the session ends here, not only in the browser.
pub(super) async fn end(
    State(app): State<App>,
    _: SameOrigin,
    Extension(cell): Extension<CallerCell>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    if let Some(IdAndSecret { id, secret }) = cookie(&headers)?.and_then(IdAndSecret::parse) {
        let hash = app.keys().ring.secret.hash(&secret);
        let is_ended = in_time(app.store.sign_out(&id, hash)).await?.map_err(StoreError::from)?;
        if !is_ended {
            app.count_wrong_secret(Some(&id), cell.address()).await?;
        }
    }
    let mut response = no_content();
    response.headers_mut().insert(header::SET_COOKIE, REMOVE_COOKIE);
    Ok(response)
}

/// A session that was used, and the secret of its cookie from now on.
struct SignedIn {
    session: Box<ActiveSession>,
    secret: IdAndSecret,
    now: UtcInstant,
}

/// `None` if the session or link is unknown or has ended. That counts as a wrong secret.
async fn exchange(
    app: &App,
    cell: &CallerCell,
    sent: Option<IdAndSecret>,
    link_until: Option<UtcInstant>,
    started: Instant,
) -> Result<Option<SignedIn>, ApiError> {
    let Some(sent) = sent else {
        app.count_wrong_secret(None, cell.address()).await?;
        return Ok(None);
    };
    let (now, keys) = (app.clock.now(), app.keys());
    let next = IdAndSecret { id: sent.id.clone(), secret: random(new_secret())? };
    let request = SessionUse {
        id: sent.id.clone(),
        hash: keys.ring.secret.hash(&sent.secret),
        next_hash: keys.ring.secret.hash(&next.secret),
        link_until,
        now,
    };
    let used = in_time_since(started, app.store.use_session(request)).await?;
    match used.map_err(StoreError::from)? {
        SessionResult::Active(session) => {
            cell.set(&session.caller);
            app.note_use(session.caller.client.clone(), now);
            let secret = if session.is_renewed { next } else { sent };
            return Ok(Some(SignedIn { session, secret, now }));
        }
        SessionResult::Unknown => {}
        SessionResult::Copied(client) => {
            tracing::warn!(%client, session = %sent.id, "a session was ended: an old copy of its cookie was used");
        }
    }
    app.count_wrong_secret(Some(&sent.id), cell.address()).await?;
    Ok(None)
}

impl SignedIn {
    /// A token, and the cookie if the browser does not have it yet.
    fn respond(&self, app: &App, has_new_cookie: bool) -> Response {
        let Self { session, secret, now } = self;
        let ends =
            session.credential_expires_at.map_or(session.expires_at, |end| end.min(session.expires_at));
        let expires_in = app.config.token_ttl_secs.min(ends.secs() - now.secs()).max(1);
        let token = Token::sign(&app.keys().ring.token, &session.caller, *now, expires_in);
        let mut response = token_response(&SessionResponse {
            token: TokenResponse::new(&token, expires_in),
            client_id: session.caller.client.as_str(),
            organisation: &session.org_name,
            label: &session.label,
        });
        let cookie = set_cookie(secret, session, app.config.is_https, *now);
        if has_new_cookie && let Ok(cookie) = HeaderValue::from_str(&cookie) {
            response.headers_mut().insert(header::SET_COOKIE, cookie);
        }
        response
    }
}

#[derive(Serialize)]
struct SessionResponse<'a> {
    #[serde(flatten)]
    token: TokenResponse<'a>,
    client_id: &'a str,
    organisation: &'a str,
    label: &'a str,
}

/// Scripts cannot read it, no other site can send it, and only `/session` gets it.
fn set_cookie(secret: &IdAndSecret, session: &ActiveSession, is_https: bool, now: UtcInstant) -> String {
    let mut cookie = format!("{COOKIE}={}; Path=/session; HttpOnly; SameSite=Strict", secret.reveal());
    if is_https {
        cookie += "; Secure";
    }
    if session.expires_at.secs() - session.created_at.secs() > NOT_KEPT_SECS {
        cookie += &format!("; Max-Age={}", session.expires_at.secs() - now.secs());
    }
    cookie
}

fn random<T>(value: Option<T>) -> Result<T, ApiError> {
    value.ok_or_else(|| ApiError::internal("the random number generator failed"))
}

/// The cookie of a request. Of two, one may have been set by another host of the same domain: neither is trusted.
fn cookie(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let values = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut cookies = values
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().strip_prefix(COOKIE)?.strip_prefix('='));
    let first = cookies.next();
    if cookies.next().is_some() { Err(ApiError::SignedOut) } else { Ok(first) }
}

/// A request that was not sent by a page of another origin.
pub(super) struct SameOrigin;

impl FromRequestParts<App> for SameOrigin {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let header = |name: &str| parts.headers.get(name).map(|value| value.to_str().unwrap_or_default());
        let host = parts.uri.authority().map(Authority::as_str).or(header("host"));
        let config = &app.config;
        let is_own =
            |origin: &str| is_own_origin(origin, host, config.public_url.as_deref(), config.is_https);
        let is_allowed = header("sec-fetch-site").is_none_or(|site| site == "same-origin")
            && header("origin").is_none_or(is_own);
        if is_allowed { Ok(Self) } else { Err(ApiError::OtherOrigin) }
    }
}

/// Whether scheme, host and port are those of the public URL, or of the `Host` header. Without HTTPS here, the scheme is
/// not known: a proxy may add it.
fn is_own_origin(origin: &str, host: Option<&str>, public_url: Option<&str>, is_https: bool) -> bool {
    let Ok(sent) = Url::parse(origin) else { return false };
    let is_same = |url: &str| Url::parse(url).is_ok_and(|url| url.origin() == sent.origin());
    let is_scheme_possible = sent.scheme() == "https" || !is_https;
    sent.origin().is_tuple()
        && (public_url.is_some_and(is_same)
            || is_scheme_possible && host.is_some_and(|host| is_same(&format!("{}://{host}", sent.scheme()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_compared_by_scheme_host_and_port() {
        let public = Some("https://Scans.example:443");
        for (origin, host, public_url, is_own) in [
            ("https://scans.example", "10.0.0.1:8080", public, true),
            ("https://scans.example:443", "10.0.0.1:8080", public, true),
            ("http://scans.example", "scans.example", public, false),
            ("https://scans.example:8443", "scans.example", public, false),
            ("https://evil.example", "scans.example", public, false),
            ("null", "scans.example", public, false),
            ("", "scans.example", public, false),
            ("file://scans.example", "scans.example", None, false),
            ("http://127.0.0.1:8080", "127.0.0.1:8080", None, true),
            ("http://LOCALHOST", "localhost:80", None, true),
            ("https://scans.example", "scans.example", None, true),
            ("http://scans.example@evil.example", "scans.example", None, false),
        ] {
            let is_https = public_url.is_some();
            assert_eq!(is_own_origin(origin, Some(host), public_url, is_https), is_own, "{origin} {host}");
        }
    }
}
