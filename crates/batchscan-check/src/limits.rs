//! The limits of a run: every wait, walk and body ends somewhere.

use std::time::Duration;

/// How much a run may ask of a service and how long it waits for it. [`Limits::default`] suits any deployment.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Requests of the whole run, retries included: a conformance run must not look like an attack.
    pub requests: u64,
    /// Pages of one walk; a longer walk is cut, and what hangs on its end is left undecided.
    pub pages: usize,
    /// Batches of one walk, after which it is cut as well: pages may be large.
    pub batches: usize,
    /// Bytes of one body, decoded. A v1 answer has no other end.
    pub body_bytes: u64,
    /// How long a connection may take to stand.
    pub connect: Duration,
    /// How long an answer may take to begin.
    pub answer: Duration,
    /// How long one request may take with the whole of its body.
    pub exchange: Duration,
    /// How often one request is sent again after a 503 or a 429.
    pub retries: u32,
    /// The pause before such a retry where the service names none; the interface suggests 3 to 5 seconds.
    pub pause: Duration,
    /// Pauses of the whole run together: a service that is down all along must not hold the run for an hour.
    pub pauses: Duration,
    /// Requests in a row that may stay without an answer before the run sends no more.
    pub silent: u32,
    /// The whole run; after it nothing more is sent.
    pub run: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            requests: 300,
            pages: 12,
            batches: 30_000,
            body_bytes: 64 << 20,
            connect: Duration::from_secs(10),
            answer: Duration::from_secs(15),
            exchange: Duration::from_secs(120),
            retries: 5,
            pause: Duration::from_secs(3),
            pauses: Duration::from_secs(90),
            silent: 3,
            run: Duration::from_secs(600),
        }
    }
}
