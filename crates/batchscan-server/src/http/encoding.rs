//! `Accept-Encoding` and `Content-Encoding` (decision 032).

use axum::http::{HeaderMap, HeaderValue, header};
use batchscan_store::Encoding;

/// gzip, if the client accepts it.
pub(super) fn accepted_encoding(headers: &HeaderMap) -> Encoding {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let accepts_gzip = values.flat_map(|value| value.split(',')).any(|item| {
        let (name, quality) = item.split_once(';').unwrap_or((item, ""));
        let is_gzip = ["gzip", "x-gzip"].iter().any(|gzip| name.trim().eq_ignore_ascii_case(gzip));
        is_gzip && !is_zero(quality)
    });
    if accepts_gzip { Encoding::Gzip } else { Encoding::Identity }
}

/// The value of `Content-Encoding`.
pub(super) fn content_encoding(encoding: Encoding) -> Option<HeaderValue> {
    (encoding == Encoding::Gzip).then(|| HeaderValue::from_static("gzip"))
}

/// Whether a quality value such as `q=0.8` is zero. An invalid value counts as 1, as in most servers.
fn is_zero(parameter: &str) -> bool {
    let value = parameter.trim().strip_prefix(['q', 'Q']).and_then(|rest| rest.strip_prefix('='));
    value.and_then(|text| text.trim().parse::<f32>().ok()).is_some_and(|quality| quality <= 0.0)
}
