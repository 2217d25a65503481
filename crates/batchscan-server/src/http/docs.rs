//! `/docs`: Swagger UI for `/openapi.json`, served from the executable (decision 047).

use std::sync::LazyLock;

use axum::http::{HeaderMap, HeaderValue, Uri};
use axum::response::Response;
use batchscan_web::{DOCS, DOCS_PAGE};

use super::error::ApiError;
use super::static_files::StaticFile;

/// The page may only run its own files and call its own service. Its icons are in the style sheet.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'",
);

/// The page. The relative path of its files depends on a trailing slash.
pub(super) async fn page(uri: Uri, headers: HeaderMap) -> Response {
    static AT_DOCS: LazyLock<StaticFile> = LazyLock::new(|| page_with_folder("docs/", "./"));
    static AT_DOCS_SLASH: LazyLock<StaticFile> = LazyLock::new(|| page_with_folder("", "../"));
    let page = if uri.path().ends_with('/') { &AT_DOCS_SLASH } else { &AT_DOCS };
    page.respond_with_policy(&headers, POLICY)
}

/// A script, the style sheet or the licence.
pub(super) async fn file(uri: Uri, headers: HeaderMap) -> Result<Response, ApiError> {
    // Decompressed on the first request: many services never get one.
    static FILES: LazyLock<Vec<(&str, StaticFile)>> =
        LazyLock::new(|| DOCS.iter().map(|file| (file.path, file.into())).collect());
    let name = uri.path().rsplit('/').next();
    let (_, file) = FILES.iter().find(|(known, _)| name == Some(known)).ok_or(ApiError::NotFound)?;
    Ok(file.respond_with_policy(&headers, POLICY))
}

fn page_with_folder(folder: &str, home: &str) -> StaticFile {
    let html = DOCS_PAGE.replace("{here}", folder).replace("{home}", home);
    // Under a kilobyte, so not compressed.
    StaticFile::new("text/html; charset=utf-8", html.into(), None)
}
