//! The dashboard: a page and its files, which use the API like any other client (decision 048).

use std::sync::LazyLock;

use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};

use super::encoding::accepts;
use super::error::ApiError;
use super::static_files::StaticFile;

/// The page may only run its own files and call its own service.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; \
     connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

/// All files by path.
static FILES: LazyLock<Vec<(&str, StaticFile)>> =
    LazyLock::new(|| batchscan_web::DASHBOARD.iter().map(|file| (file.path, file.into())).collect());

/// Every view is the same page; its script reads the URL. A request with a token is for the API, and lacks `/v2`.
pub(super) async fn page(headers: HeaderMap) -> Response {
    let is_for_api =
        headers.get(header::AUTHORIZATION).is_some_and(|value| value.as_bytes().starts_with(b"Bearer "));
    let page = match is_for_api {
        true => Err(ApiError::NotFound),
        false => respond(batchscan_web::DASHBOARD_PAGE, &headers),
    };
    with_vary(page, "Authorization, Accept-Encoding")
}

/// A script, a style sheet or the icon.
pub(super) async fn file(uri: Uri, headers: HeaderMap) -> Result<Response, ApiError> {
    respond(uri.path(), &headers)
}

/// A page with a way back for people; JSON for everyone else (decision 027).
pub(super) async fn not_found(method: Method, headers: HeaderMap) -> Response {
    let page = match method == Method::GET && accepts(&headers, header::ACCEPT, &["text/html"]) {
        true => respond(batchscan_web::DASHBOARD_PAGE, &HeaderMap::new()),
        false => Err(ApiError::NotFound),
    };
    let mut response = with_vary(page, "Accept");
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}

fn with_vary(response: Result<Response, ApiError>, names: &'static str) -> Response {
    let mut response = response.into_response();
    response.headers_mut().insert(header::VARY, HeaderValue::from_static(names));
    response
}

fn respond(path: &str, headers: &HeaderMap) -> Result<Response, ApiError> {
    let (_, file) = FILES.iter().find(|(known, _)| *known == path).ok_or(ApiError::NotFound)?;
    Ok(file.respond_with_policy(headers, POLICY))
}
