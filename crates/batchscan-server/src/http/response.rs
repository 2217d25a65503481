//! Builds answers with batches: headers that every one of them has, and the body.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};

use super::encoding::Encoding;

/// 200 with JSON.
pub(super) fn json(body: Body, encoding: Encoding, etag: &str) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(encoding) = encoding.header() {
        headers.insert(header::CONTENT_ENCODING, encoding);
    }
    revalidated(response, etag)
}

/// 304: the client has it already.
pub(super) fn not_modified(etag: &str) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    revalidated(response, etag)
}

/// Kept by the client alone, and asked for again each time (decision 031).
fn revalidated(mut response: Response<Body>, etag: &str) -> Response<Body> {
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    headers.insert(header::VARY, HeaderValue::from_static("Authorization, Accept-Encoding"));
    if let Ok(etag) = HeaderValue::from_str(etag) {
        headers.insert(header::ETAG, etag);
    }
    response
}
