//! Turns a panic of a library into an error: the Parquet library panics on about two in a thousand damaged files.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    /// Whether a panic of this thread is caught and reported as an error.
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Calls a library, and returns `damaged` after a panic. The library's objects must not be used after it.
pub(super) fn catch_panic<T, E>(
    damaged: impl FnOnce() -> E,
    call: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    silence_caught_panics();
    IS_CAUGHT.set(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(call));
    IS_CAUGHT.set(false);
    outcome.unwrap_or_else(|_| Err(damaged()))
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
        let outcome: Result<(), &str> = catch_panic(|| "damaged", || panic!("a damaged file"));
        assert_eq!(outcome, Err("damaged"));
        assert!(!IS_CAUGHT.get());
        assert_eq!(catch_panic(|| "damaged", || Ok(7)), Ok(7));
    }
}
