//! The page cache: pages as bytes, by data version, so that nothing stale can be found. Bounded in bytes.
//!
//! A page is kept when it is asked for again. A walk over a year asks for each page once; kept, they would push out what
//! others poll, and each would be written to memory that no processor's cache holds.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::budget::HeldPage;
use super::conditional::QueryMark;
use super::encoding::Encoding;
use batchscan_store::DataVersion;

/// What a page of a thousand weighs, for the cache's first guess at how many it holds.
const PAGE_BYTES_USUAL: u64 = 700_000;
/// What an entry costs besides its bytes.
const ENTRY_BYTES: u64 = 128;
/// How many pages that were asked for are remembered: 64 KiB of marks.
const ASKED_MAX: usize = 8_192;

/// Which page. The query's mark names the organisation too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PageKey {
    pub(super) version: DataVersion,
    pub(super) query: QueryMark,
    pub(super) encoding: Encoding,
}

#[derive(Clone)]
struct ByBytes;

impl Weighter<PageKey, HeldPage> for ByBytes {
    fn weight(&self, _: &PageKey, page: &HeldPage) -> u64 {
        page.bytes.len() as u64 + ENTRY_BYTES
    }
}

/// Pages that were sent before.
pub(super) struct PageCache {
    pages: Cache<PageKey, HeldPage, ByBytes>,
    /// Marks of what was asked for, each in the one place where it can be.
    asked: Box<[AtomicU64]>,
    marks: RandomState,
}

impl PageCache {
    /// A cache of at most so many bytes; 0 keeps nothing.
    pub(super) fn new(bytes: u64) -> Self {
        let entries = usize::try_from(bytes / PAGE_BYTES_USUAL + 16).unwrap_or(16);
        Self {
            pages: Cache::with_weighter(entries, bytes, ByBytes),
            asked: (0..ASKED_MAX).map(|_| AtomicU64::new(0)).collect(),
            marks: RandomState::new(),
        }
    }

    pub(super) fn get(&self, key: &PageKey) -> Option<HeldPage> {
        self.pages.get(key)
    }

    /// Keeps a page, if it was asked for before.
    pub(super) fn put(&self, key: PageKey, page: HeldPage) {
        let mark = self.marks.hash_one(key);
        let place = usize::try_from(mark % ASKED_MAX as u64).ok().and_then(|place| self.asked.get(place));
        if place.is_some_and(|place| place.swap(mark, Ordering::Relaxed) == mark) {
            self.pages.insert(key, page);
        }
    }
}

impl std::fmt::Debug for PageCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PageCache").field("bytes", &self.pages.weight()).finish_non_exhaustive()
    }
}
