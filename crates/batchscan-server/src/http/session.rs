//! `/session`: the sign-in of the dashboard (decision 051). A cookie that only these routes get is exchanged for ordinary
//! tokens.

use axum::Extension;
use axum::body::Body;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use batchscan_model::{ClientSecret, UtcInstant};
use batchscan_store::{ActiveSession, SessionResult, SessionUse};
use serde::Serialize;

use super::app::App;
use super::caller::CallerSlot;
use super::error::{ApiError, Cause};
use super::parameters::Parameters;
use super::token::{TokenRequest, TokenResponse, grant, in_time, read_form, token_response};
use crate::auth::{IdAndSecret, Token, new_secret, new_session};

pub(super) const COOKIE: &str = "batchscan_session";
/// Lifetime of a session with "Keep me signed in on this device".
const KEPT_SECS: i64 = 90 * 24 * 3_600;
/// The same without. The cookie also ends with the browser.
const NOT_KEPT_SECS: i64 = 24 * 3_600;

/// Signs in with a client id and secret, or with a sign-in link.
pub(super) async fn create(
    State(app): State<App>,
    _: SameOrigin,
    Extension(slot): Extension<CallerSlot>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let form = read_form(&headers, body).await?;
    let parameters = Parameters::parse(&form);
    let now = app.clock.now();
    if let Ok(Some(link)) = parameters.value("link") {
        let link = IdAndSecret::parse(link).ok_or(ApiError::UsedLink)?;
        return exchange(&app, &slot, link, Some(now.plus_secs(KEPT_SECS))).await?.ok_or(ApiError::UsedLink);
    }
    let request = TokenRequest::parse(&headers, &form)?;
    let granted = grant(&app, &slot, &request).await?;
    let is_kept = parameters.value("keep") == Ok(Some("true"));
    let expires_at = now.plus_secs(if is_kept { KEPT_SECS } else { NOT_KEPT_SECS });
    let expires_at = granted.secret_retires_at.map_or(expires_at, |end| end.min(expires_at));
    let client = granted.caller.client;
    let (session, secret) = random(new_session(&app.keys().ring, client, false, expires_at, now))?;
    in_time(app.store.add_session(session)).await?.map_err(Into::<batchscan_store::StoreError>::into)?;
    exchange(&app, &slot, secret, None).await?.ok_or(ApiError::SignedOut)
}

/// Exchanges the cookie for a token, and replaces the cookie. Returns 204 if there is no cookie.
pub(super) async fn token(
    State(app): State<App>,
    _: SameOrigin,
    Extension(slot): Extension<CallerSlot>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let Some(cookie) = cookie(&headers) else { return Ok(no_content()) };
    let secret = IdAndSecret::parse(cookie).ok_or(ApiError::SignedOut)?;
    exchange(&app, &slot, secret, None).await?.ok_or(ApiError::SignedOut)
}

/// Signs out: the session ends here, not only in the browser.
pub(super) async fn end(
    State(app): State<App>,
    _: SameOrigin,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    if let Some(IdAndSecret { id, secret }) = cookie(&headers).and_then(IdAndSecret::parse) {
        let hash = app.keys().ring.hash_secret(&secret);
        in_time(app.store.sign_out(&id, hash)).await?.map_err(Into::<batchscan_store::StoreError>::into)?;
    }
    let mut response = no_content();
    response.headers_mut().insert(header::SET_COOKIE, REMOVE_COOKIE);
    Ok(response)
}

/// Tells the browser to forget the cookie.
pub(super) const REMOVE_COOKIE: HeaderValue =
    HeaderValue::from_static("batchscan_session=; Path=/session; Max-Age=0; HttpOnly; SameSite=Strict");

/// `None` if the session is unknown or has ended.
async fn exchange(
    app: &App,
    slot: &CallerSlot,
    IdAndSecret { id, secret }: IdAndSecret,
    link_until: Option<UtcInstant>,
) -> Result<Option<Response>, ApiError> {
    let (now, keys, next) = (app.clock.now(), app.keys(), random(new_secret())?);
    let request = SessionUse {
        id: id.clone(),
        hash: keys.ring.hash_secret(&secret),
        next_hash: keys.ring.hash_secret(&next),
        link_until,
        now,
    };
    let used = in_time(app.store.use_session(request)).await?;
    let session = match used.map_err(Into::<batchscan_store::StoreError>::into)? {
        SessionResult::Active(session) => session,
        SessionResult::Unknown => return Ok(None),
        SessionResult::Copied(client) => {
            tracing::warn!(%client, session = id, "a session was ended: an old copy of its cookie was used");
            return Ok(None);
        }
    };
    slot.set(&session.caller);
    app.note_use(session.caller.client.clone(), now);
    let ends = session.credential_expires_at.map_or(session.expires_at, |end| end.min(session.expires_at));
    let expires_in = app.config.token_ttl_secs.min(ends.secs() - now.secs()).max(1);
    let token = Token::sign(&keys.ring.token, &session.caller, now, expires_in);
    let mut response = token_response(&SessionResponse {
        token: TokenResponse::new(&token, expires_in),
        client_id: session.caller.client.as_str(),
        organisation: &session.org_name,
    });
    let cookie = set_cookie(&id, &next, &session, app.config.is_https, now);
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    Ok(Some(response))
}

#[derive(Serialize)]
struct SessionResponse<'a> {
    #[serde(flatten)]
    token: TokenResponse<'a>,
    client_id: &'a str,
    organisation: &'a str,
}

/// Scripts cannot read it, no other site can send it, and only `/session` gets it.
fn set_cookie(
    id: &str,
    secret: &ClientSecret,
    session: &ActiveSession,
    is_https: bool,
    now: UtcInstant,
) -> String {
    let mut cookie = format!("{COOKIE}={id}.{}; Path=/session; HttpOnly; SameSite=Strict", secret.reveal());
    if is_https {
        cookie += "; Secure";
    }
    if session.expires_at.secs() - session.created_at.secs() > NOT_KEPT_SECS {
        cookie += &format!("; Max-Age={}", session.expires_at.secs() - now.secs());
    }
    cookie
}

fn random<T>(value: Option<T>) -> Result<T, ApiError> {
    value.ok_or_else(|| ApiError::Internal(Cause::new("the system has no random numbers")))
}

fn cookie(headers: &HeaderMap) -> Option<&str> {
    let values = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    values
        .flat_map(|value| value.split(';'))
        .find_map(|pair| pair.trim().strip_prefix(COOKIE)?.strip_prefix('='))
}

fn no_content() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A request that was not sent by a page of another origin.
pub(super) struct SameOrigin;

impl FromRequestParts<App> for SameOrigin {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let header = |name: &str| parts.headers.get(name).map(|value| value.to_str().unwrap_or_default());
        let host = parts.uri.authority().map(Authority::as_str).or(header("host"));
        let public =
            app.config.public_url.as_deref().and_then(|url| url.split_once("://")).map(|(_, host)| host);
        let is_same = |origin: &str| {
            let authority = origin.split_once("://").map(|(_, authority)| authority);
            authority.is_some() && (authority == host || authority == public)
        };
        let is_allowed = header("sec-fetch-site").is_none_or(|site| site == "same-origin")
            && header("origin").is_none_or(is_same);
        if is_allowed { Ok(Self) } else { Err(ApiError::OtherOrigin) }
    }
}
