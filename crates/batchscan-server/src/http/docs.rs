//! `/docs`: Swagger UI over `/openapi.json`, from the executable alone (decision 047).

use std::sync::LazyLock;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response, Uri};
use batchscan_web::{DOCS, DOCS_PAGE};
use bytes::Bytes;

use super::encoding::Encoding;
use super::error::ApiError;
use super::published::{Published, fenced, mark};

/// The page may run its own files and speak to its own service, and nothing else. Its few icons are inside its style sheet.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'",
);

/// The page, with and without a slash at the end of its address, from where its files are elsewhere.
pub(super) async fn page(uri: Uri, asked: HeaderMap) -> Response<Body> {
    static BESIDE: LazyLock<Published> = LazyLock::new(|| page_with("docs/"));
    static INSIDE: LazyLock<Published> = LazyLock::new(|| page_with(""));
    let page = if uri.path().ends_with('/') { &INSIDE } else { &BESIDE };
    fenced(page.answer(&asked), POLICY)
}

/// A script, the style sheet, the licence.
pub(super) async fn file(uri: Uri, asked: HeaderMap) -> Result<Response<Body>, ApiError> {
    // Unpacked when the first one is asked for: few services are ever asked for any.
    static UNPACKED: LazyLock<Vec<(&str, Published)>> = LazyLock::new(unpacked);
    let name = uri.path().rsplit('/').next();
    let file = UNPACKED.iter().find(|(known, _)| name == Some(known)).ok_or(ApiError::NotFound)?;
    Ok(fenced(file.1.answer(&asked), POLICY))
}

fn page_with(here: &str) -> Published {
    let html = Bytes::from(DOCS_PAGE.replace("{here}", here));
    // Under a kilobyte: nothing to be compressed.
    Published::new("text/html; charset=utf-8", &mark(&html), html, Vec::new())
}

fn unpacked() -> Vec<(&'static str, Published)> {
    let unpack = |file: &'static batchscan_web::File| {
        let gzip = vec![(Encoding::Gzip, Bytes::from_static(file.gzip))];
        (file.path, Published::new(file.content_type, file.hash, file.plain().into(), gzip))
    };
    DOCS.iter().map(unpack).collect()
}
