//! `POST /v1/auth` and `POST /v2/auth`: credentials for a token. One handler for both (decision 003).

use std::error::Error;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use batchscan_model::{ClientId, ClientSecret, Invalid, Part, Reason};
use batchscan_store::{Rejected, StoreError};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::app::App;
use super::authorization::basic_credentials;
use super::caller_cell::CallerCell;
use super::error::{ApiError, MALFORMED_BODY};
use super::parameters::Parameters;
use super::response;
use crate::auth::{Granted, Token, authenticate};

/// A form of three fields has about 200 bytes.
const FORM_BYTES_MAX: usize = 16 * 1024;
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// For all reads together: a standby and then the primary may be asked. The response is sent within 5 s (decision 028).
const STORE_TIMEOUT: Duration = Duration::from_millis(4_500);

/// Issues a token.
pub(super) async fn create(
    State(app): State<App>,
    Extension(cell): Extension<CallerCell>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let form = read_form(&headers, body).await?;
    let request = TokenRequest::parse(&headers, &form)?;
    let Granted { token, expires_in_secs, .. } = grant(&app, &cell, &request).await?;
    Ok(token_response(&TokenResponse::new(&token, expires_in_secs)))
}

/// Verifies the credentials of a request, within all limits.
pub(super) async fn grant(app: &App, cell: &CallerCell, request: &TokenRequest) -> Result<Granted, ApiError> {
    let (now, ttl, keys) = (app.clock.now(), app.config.token_ttl_secs, app.keys());
    let granted = authenticate(&app.store, &keys.ring, request.client.as_ref(), &request.secret, ttl, now);
    let granted = match in_time(granted).await?? {
        Ok(granted) => granted,
        Err(rejected) => {
            if let Some(client) = &request.client {
                cell.claim(client);
                if rejected != Rejected::Wrong {
                    app.note_rejection(client.clone(), now);
                }
            }
            app.count_wrong_secret(request.client.as_ref(), cell.address()).await?;
            return Err(ApiError::InvalidClient { by_basic: request.by_basic, rejected });
        }
    };
    cell.set(&granted.caller);
    app.check_rate(&granted.caller.client)?;
    app.note_use(granted.caller.client.clone(), now);
    Ok(granted)
}

/// The result of reads and writes that must end before the response is due.
pub(crate) async fn in_time<T>(work: impl Future<Output = T>) -> Result<T, StoreError> {
    in_time_since(Instant::now(), work).await
}

/// The same for the last of several.
pub(super) async fn in_time_since<T>(
    started: Instant,
    work: impl Future<Output = T>,
) -> Result<T, StoreError> {
    let timed_out = |_| StoreError::Unreachable("timed out".into());
    tokio::time::timeout_at(started + STORE_TIMEOUT, work).await.map_err(timed_out)
}

/// The body of a response with a token.
#[derive(Serialize)]
pub(super) struct TokenResponse<'a> {
    access_token: &'a str,
    token_type: &'static str,
    expires_in: i64,
}

impl<'a> TokenResponse<'a> {
    pub(super) fn new(token: &'a Token, expires_in: i64) -> Self {
        Self { access_token: token.reveal(), token_type: "bearer", expires_in }
    }
}

/// A response that contains a token is never stored (decision 002).
pub(super) fn token_response(body: &impl Serialize) -> Response {
    let mut response = response::json(StatusCode::OK, serde_json::to_vec(body).unwrap_or_default());
    response.headers_mut().insert(header::PRAGMA, HeaderValue::from_static("no-cache"));
    response
}

/// Whether the body is a form (decision 015).
fn is_form(headers: &HeaderMap) -> bool {
    let media_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = media_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/x-www-form-urlencoded")
}

/// The form in the body; empty if the body is something else.
pub(super) async fn read_form(headers: &HeaderMap, body: Body) -> Result<Vec<u8>, ApiError> {
    if !is_form(headers) {
        return Ok(Vec::new());
    }
    read_body(body, FORM_BYTES_MAX).await
}

/// A small body.
pub(crate) async fn read_body(body: Body, bytes_max: usize) -> Result<Vec<u8>, ApiError> {
    match tokio::time::timeout(BODY_TIMEOUT, collect(body, bytes_max)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(ApiError::BodyTooLarge),
        Ok(Err(_)) => Err(ApiError::BadRequest(MALFORMED_BODY)),
        Err(_) => Err(ApiError::BodyTimeout),
    }
}

/// A JSON object. Unknown members are errors, so that a typing mistake is noticed.
pub(crate) fn parse_object<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    // An absent body is an object without members.
    let text = if body.is_empty() { b"{}" } else { body };
    // Serde would accept an array of the members' values.
    if text.trim_ascii_start().starts_with(b"[") {
        return Err("found an array".into());
    }
    serde_json::from_slice(text).map_err(|error| error.to_string())
}

/// In one buffer: chunks of one byte each would take a hundred times their size.
async fn collect(body: Body, bytes_max: usize) -> Result<Vec<u8>, Box<dyn Error + Send + Sync>> {
    let (mut body, mut form) = (Limited::new(body, bytes_max), Vec::new());
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            form.extend_from_slice(&data);
        }
    }
    Ok(form)
}

/// A parsed token request.
#[derive(Debug)]
pub(super) struct TokenRequest {
    /// `None` if the text cannot be an id; it is then as wrong as an unknown one.
    client: Option<ClientId>,
    secret: ClientSecret,
    /// Whether the credentials were sent with HTTP Basic.
    pub(super) by_basic: bool,
}

impl TokenRequest {
    /// The credentials of HTTP Basic alone.
    pub(super) fn from_basic(headers: &HeaderMap) -> Option<Self> {
        let (id, secret) = basic_credentials(headers)?;
        Some(Self { client: ClientId::new(id), secret: ClientSecret::new(secret), by_basic: true })
    }

    /// Reads the credentials from the form or from HTTP Basic (decision 004).
    pub(super) fn parse(headers: &HeaderMap, form: &[u8]) -> Result<Self, ApiError> {
        let basic = basic_credentials(headers);
        let by_basic = basic.is_some();
        let (basic_id, basic_secret) = basic.unzip();
        let (form, mut errors) = (Parameters::parse(form), Invalid::default());
        let id = credential(&form, "client_id", basic_id, &mut errors);
        let secret = credential(&form, "client_secret", basic_secret, &mut errors);
        match form.value("grant_type") {
            Ok(Some("client_credentials")) => {}
            Ok(Some(grant)) if !grant.is_empty() => {
                errors.push(Part::Body, "grant_type", Reason::NotClientCredentials);
            }
            Ok(_) => errors.push(Part::Body, "grant_type", Reason::Missing),
            Err(reason) => errors.push(Part::Body, "grant_type", reason),
        }
        let secret = ClientSecret::new(secret.unwrap_or_default());
        errors
            .or_ok(Self { client: id.and_then(ClientId::new), secret, by_basic })
            .map_err(|invalid| ApiError::InvalidForm { invalid, is_form: is_form(headers) })
    }
}

fn credential(
    form: &Parameters<'_>,
    name: &'static str,
    basic: Option<String>,
    errors: &mut Invalid,
) -> Option<String> {
    let in_form = match form.value(name) {
        Ok(value) => value.filter(|text| !text.is_empty()).map(str::to_owned),
        Err(reason) => {
            errors.push(Part::Body, name, reason);
            return None;
        }
    };
    match (in_form, basic) {
        (Some(in_form), Some(basic)) if in_form != basic => {
            errors.push(Part::Body, name, Reason::DiffersFromHeader);
        }
        (Some(text), _) | (None, Some(text)) => return Some(text),
        (None, None) => errors.push(Part::Body, name, Reason::Missing),
    }
    None
}
