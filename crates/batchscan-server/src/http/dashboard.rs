//! The dashboard: a page and its files, which use the API like any other client (decision 048).

use std::sync::LazyLock;

use axum::http::{HeaderMap, HeaderValue, Uri};
use axum::response::Response;

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

/// Every view is the same page; its script reads the URL.
pub(super) async fn page(headers: HeaderMap) -> Result<Response, ApiError> {
    respond(batchscan_web::DASHBOARD_PAGE, &headers)
}

/// A script, a style sheet or the icon.
pub(super) async fn file(uri: Uri, headers: HeaderMap) -> Result<Response, ApiError> {
    respond(uri.path(), &headers)
}

fn respond(path: &str, headers: &HeaderMap) -> Result<Response, ApiError> {
    let (_, file) = FILES.iter().find(|(known, _)| *known == path).ok_or(ApiError::NotFound)?;
    Ok(file.respond_with_policy(headers, POLICY))
}
