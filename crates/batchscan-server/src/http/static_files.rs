//! Responses that are the same for every client: sent compressed and with an ETag.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use batchscan_store::Encoding;
use bytes::Bytes;

use super::conditional::{IfNoneMatch, short_hash};
use super::encoding::{accepted_encoding, content_encoding};
use crate::hex;

/// For files whose name contains a hash of the content.
const IMMUTABLE: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
const REVALIDATE: HeaderValue = HeaderValue::from_static("no-cache");

/// A file that can be sent.
#[derive(Debug)]
pub(crate) struct StaticFile {
    content_type: &'static str,
    etag: HeaderValue,
    cache_control: HeaderValue,
    plain: Bytes,
    gzip: Option<Bytes>,
}

impl StaticFile {
    /// A file that clients must revalidate.
    pub(crate) fn new(content_type: &'static str, plain: Bytes, gzip: Option<Bytes>) -> Self {
        let mut hash = String::new();
        hex::push_bytes(&mut hash, &short_hash(&plain));
        Self::with_hash(content_type, &hash, plain, gzip)
    }

    fn with_hash(content_type: &'static str, hash: &str, plain: Bytes, gzip: Option<Bytes>) -> Self {
        // Weak, since it is the same for both encodings.
        let etag = HeaderValue::from_str(&format!("W/\"{hash}\""));
        let etag = etag.unwrap_or_else(|_| HeaderValue::from_static("W/\"\""));
        Self { content_type, etag, cache_control: REVALIDATE, plain, gzip }
    }

    /// The file, or 304 if the client has it (decisions 031, 032).
    pub(crate) fn respond(&self, headers: &HeaderMap) -> Response {
        let is_known = self.etag.to_str().is_ok_and(|etag| IfNoneMatch::new(headers).matches(etag));
        let mut response = if is_known { Response::default() } else { self.whole(headers) };
        if is_known {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        }
        let headers = response.headers_mut();
        headers.insert(header::ETAG, self.etag.clone());
        headers.insert(header::CACHE_CONTROL, self.cache_control.clone());
        headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
        response
    }

    /// [`StaticFile::respond`], with a content security policy for a page. Browsers ignore that of a script or style.
    pub(super) fn respond_with_policy(&self, headers: &HeaderMap, policy: HeaderValue) -> Response {
        let mut response = self.respond(headers);
        if !["text/html", "image/svg"].iter().any(|page| self.content_type.starts_with(page)) {
            return response;
        }
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
        // Linked analysis reports need not know which batch their reader came from.
        headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        let opener = HeaderName::from_static("cross-origin-opener-policy");
        headers.insert(opener, HeaderValue::from_static("same-origin"));
        response
    }

    fn whole(&self, headers: &HeaderMap) -> Response {
        let (bytes, encoding) = match &self.gzip {
            Some(gzip) if accepted_encoding(headers) == Encoding::Gzip => (gzip, Encoding::Gzip),
            _ => (&self.plain, Encoding::Identity),
        };
        let mut response = Response::new(Body::from(bytes.clone()));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        headers.extend(content_encoding(encoding).map(|value| (header::CONTENT_ENCODING, value)));
        response
    }
}

impl From<&'static batchscan_web::File> for StaticFile {
    fn from(file: &'static batchscan_web::File) -> Self {
        let gzip = Some(Bytes::from_static(file.gzip));
        let cache_control = if file.is_immutable() { IMMUTABLE } else { REVALIDATE };
        let static_file = Self::with_hash(file.content_type, file.hash, file.plain().into(), gzip);
        Self { cache_control, ..static_file }
    }
}
