//! The id of a request: in its answer as `x-request-id`, and in its log line.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::{HeaderMap, HeaderName};
use ring::rand::{SecureRandom, SystemRandom};

/// The header field that carries it.
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The longest id that is taken over from a proxy: a UUID fits; a client's secret (43 bytes), put here by mistake,
/// does not and stays out of the log.
const SENT_BYTES_MAX: usize = 40;

/// The id a proxy gave the request, if it is harmless in a log; else the next of ours.
pub(super) fn of(headers: &HeaderMap) -> String {
    let sent = headers.get(REQUEST_ID).and_then(|value| value.to_str().ok());
    sent.filter(|id| is_harmless(id)).map_or_else(next, str::to_owned)
}

/// Unique for the life of the process, and across processes by the random part drawn at the first request.
pub fn next() -> String {
    static PROCESS: LazyLock<u32> = LazyLock::new(|| {
        let mut bytes = [0u8; 4];
        let _ = SystemRandom::new().fill(&mut bytes);
        u32::from_ne_bytes(bytes)
    });
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("{:08x}-{:x}", *PROCESS, NEXT.fetch_add(1, Ordering::Relaxed))
}

fn is_harmless(id: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=SENT_BYTES_MAX).contains(&id.len()) && id.bytes().all(is_plain)
}
