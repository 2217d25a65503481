//! Locks of the threads of a run.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a thread that panicked left behind is still counted.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
