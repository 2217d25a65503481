//! Request ids: in the response as `x-request-id` and in the access log.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::{HeaderMap, HeaderName};
use ring::rand::{SecureRandom, SystemRandom};

use crate::hex;

/// The header that carries it.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The longest id accepted from a proxy. A UUID fits; a client secret (43 bytes) sent here by mistake does not, so it
/// stays out of the log.
const PROXY_ID_BYTES_MAX: usize = 40;

/// The id that a proxy set, if it is safe to log, otherwise a new one.
pub(crate) fn from_headers(headers: &HeaderMap) -> String {
    let sent = headers.get(REQUEST_ID).and_then(|value| value.to_str().ok());
    sent.filter(|id| is_safe_to_log(id)).map_or_else(generate, str::to_owned)
}

/// A new id: a random number for the process, then a counter.
pub(crate) fn generate() -> String {
    static PROCESS: LazyLock<String> = LazyLock::new(|| {
        let mut bytes = [0u8; 4];
        let _ = SystemRandom::new().fill(&mut bytes);
        format!("{:08x}-", u32::from_ne_bytes(bytes))
    });
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let mut id = PROCESS.clone();
    hex::push_number(&mut id, NEXT.fetch_add(1, Ordering::Relaxed));
    id
}

fn is_safe_to_log(id: &str) -> bool {
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=PROXY_ID_BYTES_MAX).contains(&id.len()) && id.bytes().all(is_safe)
}
