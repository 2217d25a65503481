//! CORS for the origins that the operator allows (decision 030).

use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;

/// Response headers that scripts may read.
const EXPOSED: HeaderValue = HeaderValue::from_static("ETag, Retry-After, WWW-Authenticate, x-request-id");
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, OPTIONS");
const HEADERS: HeaderValue = HeaderValue::from_static("authorization, content-type, if-none-match");
/// How long a browser may cache a preflight.
const PREFLIGHT_SECS: HeaderValue = HeaderValue::from_static("600");

/// The origin of the request, if it is allowed.
pub(super) fn allowed_origin(allowed: &[String], headers: &HeaderMap) -> Option<HeaderValue> {
    let origin = headers.get(header::ORIGIN)?;
    let text = origin.to_str().ok()?;
    allowed.iter().any(|allowed| allowed == "*" || allowed == text).then(|| origin.clone())
}

/// The response to a preflight request.
pub(super) fn preflight(method: &Method, headers: &HeaderMap) -> Option<Response> {
    if method != Method::OPTIONS || !headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD) {
        return None;
    }
    let mut response = Response::default();
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HEADERS);
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, PREFLIGHT_SECS);
    Some(response)
}

/// Allows the origin to read the response. Without an origin the response is another one, which a cache must not use
/// for it.
pub(super) fn allow(origin: Option<HeaderValue>, headers: &mut HeaderMap) {
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
    if let Some(origin) = origin {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    }
}
