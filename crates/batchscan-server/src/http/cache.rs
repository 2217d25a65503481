//! The page cache: pages as bytes, by data version, so that nothing stale can be found. Bounded in bytes.

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::budget::HeldPage;
use super::conditional::QueryMark;
use super::encoding::Encoding;
use crate::store::DataVersion;

/// What a page of a thousand weighs, for the cache's first guess at how many it holds.
const PAGE_BYTES_USUAL: u64 = 700_000;
/// What an entry costs besides its bytes.
const ENTRY_BYTES: u64 = 128;

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
pub(super) struct PageCache(Cache<PageKey, HeldPage, ByBytes>);

impl PageCache {
    /// A cache of at most so many bytes; 0 keeps nothing.
    pub(super) fn new(bytes: u64) -> Self {
        let entries = usize::try_from(bytes / PAGE_BYTES_USUAL + 16).unwrap_or(16);
        Self(Cache::with_weighter(entries, bytes, ByBytes))
    }

    pub(super) fn get(&self, key: &PageKey) -> Option<HeldPage> {
        self.0.get(key)
    }

    pub(super) fn put(&self, key: PageKey, page: HeldPage) {
        self.0.insert(key, page);
    }
}

impl std::fmt::Debug for PageCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PageCache").field("bytes", &self.0.weight()).finish_non_exhaustive()
    }
}
