//! `POST /v1/auth` and `POST /v2/auth`: credentials for a token. One handler for both (decision 003).

use std::time::Duration;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use batchscan_model::{ClientId, ClientSecret, Invalid, Part, Reason};
use batchscan_store::StoreError;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::Serialize;

use super::app::App;
use super::authorization::basic_credentials;
use super::caller::CallerSlot;
use super::error::ApiError;
use super::parameters::Parameters;
use crate::auth::authenticate;

/// A form of three fields has about 200 bytes.
const FORM_BYTES_MAX: usize = 16 * 1024;
const FORM_TIMEOUT: Duration = Duration::from_secs(10);
/// For all reads together: a standby and then the primary may be asked. The response is sent within 5 s (decision 028).
const STORE_TIMEOUT: Duration = Duration::from_millis(4_500);

/// Issues a token.
pub(super) async fn create(
    State(app): State<App>,
    Extension(slot): Extension<CallerSlot>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let form = if is_form(&headers) { read_form(body).await? } else { Bytes::new() };
    let request = TokenRequest::parse(&headers, &form).map_err(ApiError::InvalidForm)?;
    let (now, ttl, keys) = (app.clock.now(), app.config.token_ttl_secs, app.keys());
    let granted = authenticate(&app.store, &keys.ring, request.client.as_ref(), &request.secret, ttl, now);
    let timed_out = |_| StoreError::Unreachable("timed out".into());
    let granted = tokio::time::timeout(STORE_TIMEOUT, granted).await.map_err(timed_out)??;
    let granted = granted.ok_or(ApiError::InvalidClient { by_basic: request.by_basic })?;
    slot.set(&granted.caller);
    if let Some(limit) = &app.rate_limit {
        limit.check(&granted.caller.client, now).map_err(ApiError::TooManyRequests)?;
    }
    app.note_use(granted.caller.client, now);
    let body = TokenResponse {
        access_token: granted.token.reveal(),
        token_type: "bearer",
        expires_in: granted.expires_in_secs,
    };
    let mut response = Response::new(Body::from(serde_json::to_vec(&body).unwrap_or_default()));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::PRAGMA, HeaderValue::from_static("no-cache"));
    Ok(response)
}

#[derive(Serialize)]
struct TokenResponse<'a> {
    access_token: &'a str,
    token_type: &'static str,
    expires_in: i64,
}

/// Whether the body is a form (decision 015).
fn is_form(headers: &HeaderMap) -> bool {
    let media_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = media_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/x-www-form-urlencoded")
}

async fn read_form(body: Body) -> Result<Bytes, ApiError> {
    match tokio::time::timeout(FORM_TIMEOUT, Limited::new(body, FORM_BYTES_MAX).collect()).await {
        Ok(Ok(form)) => Ok(form.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(ApiError::BodyTooLarge),
        Ok(Err(_)) => Err(ApiError::MalformedBody),
        Err(_) => Err(ApiError::BodyTimeout),
    }
}

/// A parsed token request.
#[derive(Debug)]
struct TokenRequest {
    /// `None` if the text cannot be an id; it is then as wrong as an unknown one.
    client: Option<ClientId>,
    secret: ClientSecret,
    /// Whether the credentials were sent with HTTP Basic.
    by_basic: bool,
}

impl TokenRequest {
    /// Reads the credentials from the form or from HTTP Basic (decision 004).
    fn parse(headers: &HeaderMap, form: &[u8]) -> Result<Self, Invalid> {
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
        errors.or_ok(Self { client: id.and_then(ClientId::new), secret, by_basic })
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
