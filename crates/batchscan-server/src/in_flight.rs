//! Counts the requests of one connection and the responses that are not sent completely yet.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tokio::time::Instant;

/// The requests of one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct InFlight(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    requests: AtomicUsize,
    unfinished: AtomicUsize,
    /// When the client last read something, in milliseconds since the process started.
    progress_at: AtomicU64,
}

impl InFlight {
    /// Counts a request. Its response counts as unfinished until the returned value is dropped.
    pub(crate) fn begin(&self) -> ResponseInFlight {
        self.0.requests.fetch_add(1, Ordering::Relaxed);
        self.0.unfinished.fetch_add(1, Ordering::Relaxed);
        let response = ResponseInFlight(self.0.clone());
        response.note_progress();
        response
    }

    pub(crate) fn requests(&self) -> usize {
        self.0.requests.load(Ordering::Relaxed)
    }

    /// Whether every response is finished.
    pub(crate) fn is_idle(&self) -> bool {
        self.0.unfinished.load(Ordering::Relaxed) == 0
    }

    /// How long the client has not read anything.
    pub(crate) fn stalled_for(&self) -> Duration {
        Duration::from_millis(now_millis().saturating_sub(self.0.progress_at.load(Ordering::Relaxed)))
    }
}

/// A response that is not finished.
#[derive(Debug)]
pub(crate) struct ResponseInFlight(Arc<Counts>);

impl ResponseInFlight {
    /// Notes that the client read a part of it.
    pub(crate) fn note_progress(&self) {
        self.0.progress_at.store(now_millis(), Ordering::Relaxed);
    }
}

impl Drop for ResponseInFlight {
    fn drop(&mut self) {
        self.0.unfinished.fetch_sub(1, Ordering::Relaxed);
    }
}

fn now_millis() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    u64::try_from(START.elapsed().as_millis()).unwrap_or(u64::MAX)
}
