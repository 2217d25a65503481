//! Pages in memory, and a bound on the bytes of all of them: whoever stalls while reading cannot fill it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

/// Some hundreds of pages, cached or on their way. Streams are not counted: each holds a chunk, whatever its length.
const PAGE_BYTES_MAX: usize = 512 * 1024 * 1024;

/// What all pages in memory may hold.
#[derive(Clone, Debug, Default)]
pub(super) struct Budget(Arc<AtomicUsize>);

impl Budget {
    /// Counts a page for as long as anybody holds it, the cache or a client; `None` if there is no room for it.
    pub(super) fn hold(&self, bytes: Bytes) -> Option<HeldPage> {
        let before = self.0.fetch_add(bytes.len(), Ordering::Relaxed);
        let share = Arc::new(Share { budget: self.0.clone(), bytes: bytes.len() });
        (before + bytes.len() <= PAGE_BYTES_MAX).then_some(HeldPage { bytes, share })
    }
}

/// A page that is counted. Clones share its bytes, and its count.
#[derive(Clone, Debug)]
pub(super) struct HeldPage {
    /// The page itself.
    pub(super) bytes: Bytes,
    /// To be kept as long as the bytes are.
    pub(super) share: Arc<Share>,
}

/// The count of one page.
#[derive(Debug)]
pub(super) struct Share {
    budget: Arc<AtomicUsize>,
    bytes: usize,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_counted_once_and_until_its_last_holder_is_gone() {
        let budget = Budget::default();
        let page = budget.hold(Bytes::from(vec![0; 1_000])).unwrap();
        let shared = page.clone();
        assert_eq!(budget.0.load(Ordering::Relaxed), 1_000);
        drop(page);
        assert_eq!(budget.0.load(Ordering::Relaxed), 1_000);
        drop(shared);
        assert_eq!(budget.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_page_past_the_bound_is_not_held() {
        let budget = Budget::default();
        budget.0.store(PAGE_BYTES_MAX - 10, Ordering::Relaxed);
        assert!(budget.hold(Bytes::from(vec![0; 11])).is_none());
        assert!(budget.hold(Bytes::from(vec![0; 10])).is_some());
    }
}
