//! Counts the requests of one connection, and those whose answers are not sent whole yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a connection was asked, and what it still owes.
#[derive(Clone, Debug, Default)]
pub struct InFlight(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    begun: AtomicUsize,
    owed: AtomicUsize,
}

impl InFlight {
    /// Counts a request, and the answer it is owed until what is returned is dropped.
    pub fn begin(&self) -> OneInFlight {
        self.0.begun.fetch_add(1, Ordering::Relaxed);
        self.0.owed.fetch_add(1, Ordering::Relaxed);
        OneInFlight(self.0.clone())
    }

    /// How many requests there were.
    pub fn begun(&self) -> usize {
        self.0.begun.load(Ordering::Relaxed)
    }

    /// Whether no answer is owed.
    pub fn is_none(&self) -> bool {
        self.0.owed.load(Ordering::Relaxed) == 0
    }
}

/// One answer that is owed.
#[derive(Debug)]
pub struct OneInFlight(Arc<Counts>);

impl Drop for OneInFlight {
    fn drop(&mut self) {
        self.0.owed.fetch_sub(1, Ordering::Relaxed);
    }
}
