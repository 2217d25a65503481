//! The dashboard's page and its files, as the executable carries them. They speak to the interface like any client.

use std::sync::LazyLock;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response, Uri};
use bytes::Bytes;

use super::encoding::Encoding;
use super::error::ApiError;
use super::published::{Published, fenced};

/// The page may run its own files and speak to its own service, and nothing else (decision 048).
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; \
     connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

/// Every file, by its path.
static FILES: LazyLock<Vec<(&str, Published)>> =
    LazyLock::new(|| batchscan_web::DASHBOARD.iter().map(|file| (file.path, published(file))).collect());

/// Every view of the dashboard is the same page; its script reads the address.
pub(super) async fn dashboard(asked: HeaderMap) -> Result<Response<Body>, ApiError> {
    answer(batchscan_web::DASHBOARD_PAGE, &asked)
}

/// A script, a style sheet, the icon.
pub(super) async fn asset(uri: Uri, asked: HeaderMap) -> Result<Response<Body>, ApiError> {
    answer(uri.path(), &asked)
}

fn answer(path: &str, asked: &HeaderMap) -> Result<Response<Body>, ApiError> {
    let file = FILES.iter().find(|(known, _)| *known == path).ok_or(ApiError::NotFound)?;
    Ok(fenced(file.1.answer(asked), POLICY))
}

fn published(file: &'static batchscan_web::File) -> Published {
    let gzip = vec![(Encoding::Gzip, Bytes::from_static(file.gzip))];
    let published = Published::new(file.content_type, file.hash, file.plain().into(), gzip);
    if file.is_immutable() { published.kept_for_ever() } else { published }
}
