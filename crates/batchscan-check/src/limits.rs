//! The limits of a run: every wait, walk and body ends.

use std::time::Duration;

/// How much a run may send and how long it waits. [`Limits::default`] suits any deployment.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Requests of the whole run, retries included: a conformance run must not look like an attack.
    pub requests: u64,
    /// Pages of one walk. A longer walk is cut, and rules that need its end stay undecided.
    pub pages: usize,
    /// Batches of one walk, since pages may be large.
    pub batches: usize,
    /// Bytes of one body, decompressed. A v1 response has no other limit.
    pub body_bytes: usize,
    /// Time to connect.
    pub connect_timeout: Duration,
    /// Time from sending a request to the head of its response.
    pub response_timeout: Duration,
    /// Time to read a body.
    pub body_timeout: Duration,
    /// Retries of one request after a 503 or a 429.
    pub retries: u32,
    /// The pause before a retry without `Retry-After`. The API suggests 3 to 5 seconds.
    pub retry_pause: Duration,
    /// All pauses of the run together, so that an unavailable service does not block the run for an hour.
    pub total_pause: Duration,
    /// Requests in a row without a response, after which the run sends no more.
    pub unanswered: u32,
    /// The whole run. After this nothing more is sent.
    pub run_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            requests: 300,
            pages: 12,
            batches: 30_000,
            body_bytes: 64 << 20,
            connect_timeout: Duration::from_secs(10),
            response_timeout: Duration::from_secs(15),
            body_timeout: Duration::from_secs(120),
            retries: 5,
            retry_pause: Duration::from_secs(3),
            total_pause: Duration::from_secs(90),
            unanswered: 3,
            run_time: Duration::from_secs(600),
        }
    }
}
