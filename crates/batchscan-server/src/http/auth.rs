//! `POST /v1/auth` and `POST /v2/auth`: credentials for a token. One handler for both (decision 003).

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Response, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::json;

use super::App;
use super::error::ApiError;
use super::request::{TokenRequest, is_form};
use crate::auth::authenticate;
use batchscan_store::StoreError;

/// A form of three fields is some 200 bytes.
const FORM_BYTES_MAX: usize = 16 * 1024;
/// How long a form may take to arrive.
const FORM_WAIT: Duration = Duration::from_secs(10);
/// How long the store may take in all (decision 028: answered within 5 s). A standby and the primary may both be asked.
const STORE_WAIT: Duration = Duration::from_millis(4_500);

pub(super) async fn token(State(app): State<Arc<App>>, request: Request) -> Result<Response<Body>, ApiError> {
    let (parts, body) = request.into_parts();
    let form = if is_form(&parts.headers) { read_form(body).await? } else { Bytes::new() };
    let asked = TokenRequest::parse(&parts.headers, &String::from_utf8_lossy(&form))
        .map_err(ApiError::InvalidForm)?;
    let (now, ttl) = (app.clock.now(), app.config.token_ttl_secs);
    let keys = app.keys();
    let granted = authenticate(&app.store, &keys.ring, asked.client.as_ref(), &asked.secret, ttl, now);
    let late = |_| StoreError::Unreachable("no answer in time".into());
    let granted = tokio::time::timeout(STORE_WAIT, granted).await.map_err(late)??;
    let granted = granted.ok_or(ApiError::WrongCredentials { by_basic: asked.by_basic })?;
    if let Some(limit) = &app.rate_limit {
        limit.admit(&granted.tenant.client, now).map_err(ApiError::TooManyRequests)?;
    }
    app.note_use(granted.tenant.client.clone(), now);
    let body = json!({
        "access_token": granted.token.reveal(),
        "token_type": "bearer",
        "expires_in": granted.expires_in_secs,
    });
    let mut response = Response::new(Body::from(body.to_string()));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::PRAGMA, HeaderValue::from_static("no-cache"));
    response.extensions_mut().insert(granted.tenant);
    Ok(response)
}

async fn read_form(body: Body) -> Result<Bytes, ApiError> {
    match tokio::time::timeout(FORM_WAIT, Limited::new(body, FORM_BYTES_MAX).collect()).await {
        Ok(Ok(form)) => Ok(form.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(ApiError::BodyTooLarge),
        // Broken chunks, or a broken connection that nobody reads the answer of.
        Ok(Err(_)) => Err(ApiError::BrokenBody),
        Err(_) => Err(ApiError::BodyTooSlow),
    }
}
