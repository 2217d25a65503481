//! The `Authorization` header: bearer tokens and HTTP Basic.

use axum::http::{HeaderMap, header};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use percent_encoding::percent_decode_str;

/// The token of `Authorization: Bearer`.
pub(crate) fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let token = after_scheme(headers.get(header::AUTHORIZATION)?.as_bytes(), "bearer")?;
    // Bytes that are not UTF-8 are an invalid token, not a missing one.
    Some(std::str::from_utf8(token).unwrap_or_default())
}

/// The client id and secret of `Authorization: Basic`. A malformed header is a pair that no client has.
///
/// Our ids and secrets contain no `%`, so raw and percent-encoded credentials cannot be confused.
pub(super) fn basic_credentials(headers: &HeaderMap) -> Option<(String, String)> {
    let encoded = after_scheme(headers.get(header::AUTHORIZATION)?.as_bytes(), "basic")?;
    let bytes = STANDARD.decode(encoded).or_else(|_| STANDARD_NO_PAD.decode(encoded)).unwrap_or_default();
    let text = String::from_utf8(bytes).unwrap_or_default();
    let (id, secret) = text.split_once(':').unwrap_or((" ", " "));
    let decode = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    Some((decode(id), decode(secret)))
}

/// The value after an authentication scheme, whose name is case-insensitive (RFC 9110 §11.1).
fn after_scheme<'a>(value: &'a [u8], scheme: &str) -> Option<&'a [u8]> {
    let (name, rest) = value.split_at_checked(scheme.len())?;
    let rest = rest.strip_prefix(b" ")?;
    name.eq_ignore_ascii_case(scheme.as_bytes()).then(|| rest.trim_ascii())
}
