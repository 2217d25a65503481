//! Counts the requests of one connection whose answers are not sent whole yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many answers a connection still owes.
#[derive(Clone, Debug, Default)]
pub struct InFlight(Arc<AtomicUsize>);

impl InFlight {
    /// Counts one until what is returned is dropped.
    pub fn begin(&self) -> OneInFlight {
        self.0.fetch_add(1, Ordering::Relaxed);
        OneInFlight(self.0.clone())
    }

    /// Whether no answer is owed.
    pub fn is_none(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

/// One answer that is owed.
#[derive(Debug)]
pub struct OneInFlight(Arc<AtomicUsize>);

impl Drop for OneInFlight {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
