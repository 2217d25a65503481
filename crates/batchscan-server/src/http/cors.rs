//! CORS for the origins the operator names, and for no other (decision 030).

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};

/// What a page of a named origin may see of an answer besides its body.
const EXPOSED: HeaderValue = HeaderValue::from_static("ETag, Retry-After, WWW-Authenticate, x-request-id");
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, OPTIONS");
const HEADERS: HeaderValue = HeaderValue::from_static("authorization, content-type, if-none-match");
/// How long a browser may remember a preflight: ten minutes, in seconds.
const PREFLIGHT_SECS: HeaderValue = HeaderValue::from_static("600");

/// The request's origin, if the operator named it.
pub(super) fn named_origin(named: &[String], headers: &HeaderMap) -> Option<HeaderValue> {
    let origin = headers.get(header::ORIGIN)?;
    let text = origin.to_str().ok()?;
    named.iter().any(|name| name == "*" || name == text).then(|| origin.clone())
}

/// The answer to a browser that asks before it sends.
pub(super) fn preflight(method: &Method, headers: &HeaderMap) -> Option<Response<Body>> {
    if method != Method::OPTIONS || !headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD) {
        return None;
    }
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HEADERS);
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, PREFLIGHT_SECS);
    Some(response)
}

/// Lets the origin read the answer.
pub(super) fn allow(origin: HeaderValue, headers: &mut HeaderMap) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
}
