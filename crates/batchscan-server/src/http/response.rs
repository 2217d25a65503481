//! Responses, most of which must not be stored.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;

const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// Room for the fields of most responses, so that they are not moved while some are added.
const HEADER_FIELDS: usize = 8;

pub(super) fn new(body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    response.headers_mut().reserve(HEADER_FIELDS);
    response
}

pub(crate) fn json(status: StatusCode, body: impl Into<Body>) -> Response {
    let mut response = text("application/json", body);
    *response.status_mut() = status;
    response
}

pub(super) fn text(content_type: &'static str, body: impl Into<Body>) -> Response {
    let mut response = new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response.headers_mut().insert(header::CACHE_CONTROL, NO_STORE);
    response
}

pub(crate) fn no_content() -> Response {
    let mut response = Response::default();
    *response.status_mut() = StatusCode::NO_CONTENT;
    response.headers_mut().insert(header::CACHE_CONTROL, NO_STORE);
    response
}
