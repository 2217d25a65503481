//! Applied to every request: size limits, CORS, request id, deprecation of v1, panics, access log.

use std::panic::AssertUnwindSafe;
use std::time::{Duration, UNIX_EPOCH};

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use batchscan_model::UtcInstant;
use futures_util::FutureExt;

use super::access_log::AccessLog;
use super::app::App;
use super::cors;
use super::error::{ApiError, Cause};
use crate::request_id::REQUEST_ID;

/// Our queries have less than 700 bytes with the longest cursor.
const URI_BYTES_MAX: usize = 8 * 1024;
/// Names and values of all header fields. Browsers and proxies send far less.
const HEADER_BYTES_MAX: usize = 32 * 1024;

/// Handles a request. Errors become responses.
pub(super) async fn handle(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let log = AccessLog::start(&mut request);
    let origin = cors::allowed_origin(&app.config.cors_origins, request.headers());
    let v1_sunset = app.config.v1_sunset.filter(|_| request.uri().path().starts_with("/v1/"));
    let mut response = respond(request, next, origin.is_some()).await;
    if let Some(origin) = origin {
        cors::allow(origin, response.headers_mut());
    }
    if let Some(sunset) = v1_sunset {
        add_deprecation(sunset, response.headers_mut());
    }
    if let Ok(id) = HeaderValue::from_str(log.id()) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    log.wrap(app, response)
}

async fn respond(request: Request, next: Next, is_allowed_origin: bool) -> Response {
    if let Err(error) = check_limits(&request) {
        return error.into_response();
    }
    if is_allowed_origin && let Some(response) = cors::preflight(request.method(), request.headers()) {
        return response;
    }
    // A panic must not affect the other requests of the connection.
    let panicked = |_| ApiError::Internal(Cause::new("a handler panicked")).into_response();
    AssertUnwindSafe(next.run(request)).catch_unwind().await.unwrap_or_else(panicked)
}

fn check_limits(request: &Request) -> Result<(), ApiError> {
    let uri = request.uri();
    if uri.path().len() + uri.query().map_or(0, str::len) > URI_BYTES_MAX {
        return Err(ApiError::UriTooLong);
    }
    let bytes: usize = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if bytes > HEADER_BYTES_MAX { Err(ApiError::HeadersTooLarge) } else { Ok(()) }
}

/// Announces the end of v1 (decision 038).
fn add_deprecation(sunset: UtcInstant, headers: &mut HeaderMap) {
    let since_epoch = Duration::from_secs(u64::try_from(sunset.secs()).unwrap_or(0));
    let date = httpdate::fmt_http_date(UNIX_EPOCH + since_epoch);
    for (name, value) in [("deprecation", format!("@{}", sunset.secs())), ("sunset", date)] {
        let value = HeaderValue::from_str(&value).ok();
        headers.extend(value.map(|value| (HeaderName::from_static(name), value)));
    }
}
