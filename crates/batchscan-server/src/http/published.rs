//! Documents that are the same for everybody: compressed once, sent with an ETag, and fenced in where a browser runs them.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use bytes::Bytes;
use ring::digest::{SHA256, digest};

use super::conditional::Held;
use super::encoding::Encoding;

/// A name that holds a mark of the content never means anything else.
const FOR_EVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
const ASKED_AGAIN: HeaderValue = HeaderValue::from_static("no-cache");

/// A document, ready to be sent.
#[derive(Debug)]
pub(super) struct Published {
    content_type: &'static str,
    etag: HeaderValue,
    kept: HeaderValue,
    plain: Bytes,
    compressed: Vec<(Encoding, Bytes)>,
}

impl Published {
    /// A document that is asked for again each time. `mark` is of the content, in hexadecimal digits.
    pub(super) fn new(
        content_type: &'static str,
        mark: &str,
        plain: Bytes,
        compressed: Vec<(Encoding, Bytes)>,
    ) -> Self {
        // Weak: it is the same for every encoding.
        let etag = HeaderValue::from_str(&format!("W/\"{mark}\""));
        let etag = etag.unwrap_or_else(|_| HeaderValue::from_static("W/\"\""));
        Self { content_type, etag, kept: ASKED_AGAIN, plain, compressed }
    }

    /// The same, for a document that is named by its content.
    pub(super) fn kept_for_ever(self) -> Self {
        Self { kept: FOR_EVER, ..self }
    }

    /// The document in the encoding that was asked for, or 304 to whoever has it already (decisions 031, 032).
    pub(super) fn answer(&self, asked: &HeaderMap) -> Response<Body> {
        let is_held = self.etag.to_str().is_ok_and(|etag| Held::new(asked).matches(etag));
        let mut response = if is_held { not_modified() } else { self.whole(asked) };
        let headers = response.headers_mut();
        headers.insert(header::ETAG, self.etag.clone());
        headers.insert(header::CACHE_CONTROL, self.kept.clone());
        headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        response
    }

    fn whole(&self, asked: &HeaderMap) -> Response<Body> {
        let offered: Vec<Encoding> = self.compressed.iter().map(|(encoding, _)| *encoding).collect();
        let encoding = Encoding::accepted_among(&offered, asked);
        let form = self.compressed.iter().find(|(offered, _)| *offered == encoding);
        let bytes = form.map_or(&self.plain, |(_, bytes)| bytes);
        let mut response = Response::new(Body::from(bytes.clone()));
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        if let Some(encoding) = encoding.header() {
            response.headers_mut().insert(header::CONTENT_ENCODING, encoding);
        }
        response
    }
}

fn not_modified() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    response
}

/// An answer for a browser, which runs it within a policy.
pub(super) fn fenced(mut response: Response<Body>, policy: HeaderValue) -> Response<Body> {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    // An analysis report elsewhere need not learn which batch its reader came from.
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    let opener = HeaderName::from_static("cross-origin-opener-policy");
    headers.insert(opener, HeaderValue::from_static("same-origin"));
    response
}

/// A mark of a content: what its ETag is made of.
pub(super) fn mark(content: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut mark = String::new();
    for byte in &digest(&SHA256, content).as_ref()[..12] {
        // Writing to a String cannot fail.
        let _ = write!(mark, "{byte:02x}");
    }
    mark
}
