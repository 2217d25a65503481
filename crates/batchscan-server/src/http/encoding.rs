//! `Accept`, `Accept-Encoding` and `Content-Encoding` (decision 032).

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use batchscan_store::Encoding;

/// gzip, if the client accepts it.
pub(super) fn accepted_encoding(headers: &HeaderMap) -> Encoding {
    let accepts_gzip = accepts(headers, header::ACCEPT_ENCODING, &["gzip", "x-gzip"]);
    if accepts_gzip { Encoding::Gzip } else { Encoding::Identity }
}

/// Whether a header such as `Accept` lists one of these names.
pub(super) fn accepts(headers: &HeaderMap, header: HeaderName, names: &[&str]) -> bool {
    let values = headers.get_all(header).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|item| {
        let mut parts = item.split(';');
        let name = parts.next().unwrap_or_default().trim();
        names.iter().any(|known| name.eq_ignore_ascii_case(known)) && !parts.any(is_zero)
    })
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
