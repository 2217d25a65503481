//! Applied to every request: checks of the head, CORS, HSTS, nosniff, request id, deprecation of v1, panics, access log.

use std::panic::AssertUnwindSafe;
use std::time::{Duration, UNIX_EPOCH};

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Version, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use batchscan_model::UtcInstant;
use futures_util::FutureExt;

use super::access_log::{AccessLog, PendingRequest};
use super::app::App;
use super::cors;
use super::error::{ApiError, ONE_AUTHORIZATION, ONE_HOST};
use crate::request_id::REQUEST_ID;

/// Our queries have less than 700 bytes with the longest cursor.
const URI_BYTES_MAX: usize = 8 * 1024;
/// Names and values of all header fields. Browsers and proxies send far less.
const HEADER_BYTES_MAX: usize = 32 * 1024;

/// Browsers use only HTTPS for a year after their last visit (RFC 6797).
const HSTS: &str = "max-age=31536000";

/// Handles a request. Errors become responses.
pub(super) async fn handle(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let log = AccessLog::start(&mut request, &app.config.trusted_proxies);
    let id = HeaderValue::from_str(log.id());
    let pending = PendingRequest::new(app.clone(), log);
    let origin = cors::allowed_origin(&app.config.cors_origins, request.headers());
    let v1_sunset = app.config.v1_sunset.filter(|_| request.uri().path().starts_with("/v1/"));
    let is_public_https = app.config.is_https && has_public_name(&request);
    let mut response = respond(request, next, origin.is_some()).await;
    // Browsers must not guess that JSON or a file is a page.
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if !app.config.cors_origins.is_empty() {
        cors::allow(origin, response.headers_mut());
    }
    if let Some(sunset) = v1_sunset {
        add_deprecation(sunset, response.headers_mut());
    }
    if is_public_https {
        response.headers_mut().insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static(HSTS));
    }
    response.headers_mut().extend(id.ok().map(|id| (REQUEST_ID, id)));
    pending.respond(response)
}

async fn respond(request: Request, next: Next, is_allowed_origin: bool) -> Response {
    if let Err(error) = check_head(&request) {
        return error.into_response();
    }
    if is_allowed_origin && let Some(response) = cors::preflight(request.method(), request.headers()) {
        return response;
    }
    // A panic must not affect the other requests of the connection.
    let panicked = |_| ApiError::internal("a handler panicked").into_response();
    AssertUnwindSafe(next.run(request)).catch_unwind().await.unwrap_or_else(panicked)
}

/// Rejects what is too large, and what a proxy could understand in another way than we do.
fn check_head(request: &Request) -> Result<(), ApiError> {
    let (uri, headers) = (request.uri(), request.headers());
    if uri.path().len() + uri.query().map_or(0, str::len) > URI_BYTES_MAX {
        return Err(ApiError::UriTooLong);
    }
    let (mut bytes, mut hosts, mut authorizations) = (0, 0, 0);
    for (name, value) in headers {
        bytes += name.as_str().len() + value.len();
        match *name {
            header::HOST => hosts += 1,
            header::AUTHORIZATION => authorizations += 1,
            header::TRANSFER_ENCODING if !value.as_bytes().eq_ignore_ascii_case(b"chunked") => {
                return Err(ApiError::UnsupportedTransferEncoding);
            }
            _ => {}
        }
    }
    if bytes > HEADER_BYTES_MAX {
        return Err(ApiError::HeadersTooLarge);
    }
    if hosts > 1 || (hosts == 0 && request.version() == Version::HTTP_11) {
        return Err(ApiError::BadRequest(ONE_HOST));
    }
    if authorizations > 1 {
        return Err(ApiError::BadRequest(ONE_AUTHORIZATION));
    }
    Ok(())
}

/// Whether the client addressed the service by a name that is not a loopback name.
fn has_public_name(request: &Request) -> bool {
    let host = request.uri().host().or_else(|| request.headers().get(header::HOST)?.to_str().ok());
    let host = host.unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    !(name.ends_with("localhost") || name.starts_with("127.") || matches!(name, "[::1]" | "[:"))
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
