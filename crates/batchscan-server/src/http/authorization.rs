//! The `Authorization` header: bearer tokens and HTTP Basic.

use std::borrow::Cow;

use axum::http::{HeaderMap, header};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use percent_encoding::percent_decode_str;

/// The token of `Authorization: Bearer`.
pub(super) fn bearer_token(headers: &HeaderMap) -> Option<Cow<'_, str>> {
    // Bytes that are not UTF-8 are an invalid token, not a missing one.
    match String::from_utf8_lossy(headers.get(header::AUTHORIZATION)?.as_bytes()) {
        Cow::Borrowed(value) => after_scheme(value, "bearer").map(Cow::Borrowed),
        Cow::Owned(value) => after_scheme(&value, "bearer").map(|token| Cow::Owned(token.to_owned())),
    }
}

/// The client id and secret of `Authorization: Basic`. A malformed header is a pair that no client has.
///
/// Our ids and secrets contain no `%`, so raw and percent-encoded credentials cannot be confused.
pub(super) fn basic_credentials(headers: &HeaderMap) -> Option<(String, String)> {
    let encoded = after_scheme(headers.get(header::AUTHORIZATION)?.to_str().ok()?, "basic")?;
    let bytes = STANDARD.decode(encoded).or_else(|_| STANDARD_NO_PAD.decode(encoded)).unwrap_or_default();
    let text = String::from_utf8(bytes).unwrap_or_default();
    let (id, secret) = text.split_once(':').unwrap_or((" ", " "));
    let decode = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    Some((decode(id), decode(secret)))
}

/// The value after an authentication scheme, whose name is case-insensitive (RFC 9110 §11.1).
fn after_scheme<'a>(value: &'a str, scheme: &str) -> Option<&'a str> {
    let (name, rest) = value.split_once(' ')?;
    name.eq_ignore_ascii_case(scheme).then(|| rest.trim())
}
