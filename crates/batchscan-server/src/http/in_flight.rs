//! What one connection was asked, and what it still owes.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

/// The requests of one connection, and those whose answers are not sent whole yet.
#[derive(Clone, Debug, Default)]
pub struct InFlight(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    begun: AtomicUsize,
    owed: AtomicUsize,
    /// When the client last took something, in milliseconds of this process.
    taken_at: AtomicU64,
}

impl InFlight {
    /// Counts a request, and the answer it is owed until what is returned is dropped.
    pub fn begin(&self) -> OneInFlight {
        self.0.begun.fetch_add(1, Ordering::Relaxed);
        self.0.owed.fetch_add(1, Ordering::Relaxed);
        let one = OneInFlight(self.0.clone());
        one.progress();
        one
    }

    /// How many requests there were.
    pub fn begun(&self) -> usize {
        self.0.begun.load(Ordering::Relaxed)
    }

    /// Whether no answer is owed.
    pub fn is_none(&self) -> bool {
        self.0.owed.load(Ordering::Relaxed) == 0
    }

    /// How long the client has taken nothing of what it is owed.
    pub fn stalled_for(&self) -> Duration {
        Duration::from_millis(now_millis().saturating_sub(self.0.taken_at.load(Ordering::Relaxed)))
    }
}

/// One answer that is owed.
#[derive(Debug)]
pub struct OneInFlight(Arc<Counts>);

impl OneInFlight {
    /// Notes that the client took another piece of it.
    pub fn progress(&self) {
        self.0.taken_at.store(now_millis(), Ordering::Relaxed);
    }
}

impl Drop for OneInFlight {
    fn drop(&mut self) {
        self.0.owed.fetch_sub(1, Ordering::Relaxed);
    }
}

fn now_millis() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    u64::try_from(START.elapsed().as_millis()).unwrap_or(u64::MAX)
}
