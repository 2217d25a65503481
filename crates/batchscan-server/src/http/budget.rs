//! Limits the memory of all responses, so that clients that stop reading cannot exhaust it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The memory for responses that are cached or being sent.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    used: Arc<AtomicUsize>,
    max: usize,
}

impl Budget {
    pub(super) fn new(max: usize) -> Self {
        Self { used: Arc::default(), max }
    }

    /// Reserves memory until the last clone of the reservation is dropped; `None` if there is not enough left.
    pub(super) fn reserve(&self, bytes: usize) -> Option<Reservation> {
        let before = self.used.fetch_add(bytes, Ordering::Relaxed);
        let reservation = Reservation(Arc::new(Reserved { used: self.used.clone(), bytes }));
        (before + bytes <= self.max).then_some(reservation)
    }
}

/// Reserved memory.
#[derive(Clone, Debug)]
pub(super) struct Reservation(#[expect(dead_code, reason = "only dropped")] Arc<Reserved>);

#[derive(Debug)]
struct Reserved {
    used: Arc<AtomicUsize>,
    bytes: usize,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_reserved_once_and_until_the_last_clone_is_dropped() {
        let budget = Budget::new(1_000);
        let reservation = budget.reserve(990).unwrap();
        let clone = reservation.clone();
        assert!(budget.reserve(11).is_none());
        assert!(budget.reserve(10).is_some());
        drop(reservation);
        assert!(budget.reserve(11).is_none());
        drop(clone);
        assert!(budget.reserve(1_000).is_some());
    }
}
