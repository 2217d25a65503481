//! Turns a panic of the Parquet library into an error: it panics on about two in a thousand damaged files.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use parquet::errors::ParquetError;

thread_local! {
    /// Whether a panic of this thread is caught and reported as an error.
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Calls the library, and returns a panic as an error. The library's objects must not be used after a panic.
pub(super) fn catch_panic<T>(call: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    silence_caught_panics();
    IS_CAUGHT.set(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(call));
    IS_CAUGHT.set(false);
    outcome.unwrap_or_else(|_| Err(ParquetError::General("inconsistent data".into())))
}

/// A hook prints each panic before it is caught. Keeps it for all other panics.
fn silence_caught_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !IS_CAUGHT.get() {
                print(info);
            }
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_and_later_panics_are_printed() {
        let outcome: Result<(), ParquetError> = catch_panic(|| panic!("a damaged file"));
        assert!(outcome.is_err());
        assert!(!IS_CAUGHT.get());
        assert!(catch_panic(|| Ok(7)).is_ok());
    }
}
