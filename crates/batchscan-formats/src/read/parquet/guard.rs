//! Keeps a panic of the Parquet library inside: it takes for granted what a damaged file need not keep, and of every
//! thousand files with a few bytes changed it panics at two.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use parquet::errors::ParquetError;

thread_local! {
    /// Whether a panic of this thread is expected, and told as a fault of the file.
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs a call into the library, and returns its panic as an error.
///
/// Nothing of the library's is used again after a panic, so nothing half-changed can be seen.
pub(super) fn guarded<T>(call: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    silence_guarded_threads();
    IS_GUARDED.set(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(call));
    IS_GUARDED.set(false);
    outcome.unwrap_or_else(|_| Err(ParquetError::General("its parts contradict each other".into())))
}

/// A panic is printed by a hook before it is caught. The hook stays for all others.
fn silence_guarded_threads() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !IS_GUARDED.get() {
                print(info);
            }
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_and_the_next_one_is_not_hidden() {
        let outcome: Result<(), ParquetError> = guarded(|| panic!("a damaged file"));
        assert!(outcome.is_err());
        assert!(!IS_GUARDED.get());
        assert!(guarded(|| Ok(7)).is_ok());
    }
}
