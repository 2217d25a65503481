//! The page cache: response bodies by data version, so that no cached page is stale. Limited in bytes.
//!
//! A page is cached on its second request. An export of a year reads each page once; caching those would evict the pages
//! that other clients poll.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};

use batchscan_store::{DataVersion, Encoding};
use bytes::Bytes;
use foldhash::fast::RandomState;
use quick_cache::Weighter;
use quick_cache::sync::{Cache, DefaultLifecycle};

use super::conditional::QueryHash;

/// Size of a page of 1000 batches, for the initial estimate of the number of entries.
const PAGE_BYTES_TYPICAL: u64 = 700_000;
/// Overhead of an entry.
const ENTRY_BYTES: u64 = 128;
/// Remembered requests: 64 KiB of hashes.
const REQUESTED_MAX: usize = 8_192;

/// Identifies a page. The hash of the query includes the organisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PageKey {
    pub(super) version: DataVersion,
    pub(super) query: QueryHash,
    /// The requested encoding. A small page is not compressed, whatever was requested.
    pub(super) encoding: Encoding,
}

/// A page that can be sent. Clones share its body.
#[derive(Clone, Debug)]
pub(super) struct CachedPage {
    /// Holds its reservation of memory until the last clone is dropped.
    pub(super) body: Bytes,
    /// The encoding of the body.
    pub(super) encoding: Encoding,
}

#[derive(Clone)]
struct ByBytes;

impl Weighter<PageKey, CachedPage> for ByBytes {
    fn weight(&self, _: &PageKey, page: &CachedPage) -> u64 {
        page.body.len() as u64 + ENTRY_BYTES
    }
}

/// Pages of v2.
pub(super) struct PageCache {
    pages: Cache<PageKey, CachedPage, ByBytes, RandomState>,
    /// Hashes of requested keys, each at the index given by the hash itself.
    requested: Box<[AtomicU64]>,
    hasher: RandomState,
}

impl PageCache {
    /// A cache of at most this size; 0 disables it.
    pub(super) fn new(bytes: u64) -> Self {
        let entries = usize::try_from(bytes / PAGE_BYTES_TYPICAL + 16).unwrap_or(16);
        let hasher = RandomState::default();
        Self {
            pages: Cache::with(entries, bytes, ByBytes, hasher.clone(), DefaultLifecycle::default()),
            requested: (0..REQUESTED_MAX).map(|_| AtomicU64::new(0)).collect(),
            hasher,
        }
    }

    pub(super) fn get(&self, key: &PageKey) -> Option<CachedPage> {
        self.pages.get(key)
    }

    /// Caches a page if it was requested before.
    pub(super) fn put(&self, key: PageKey, page: CachedPage) {
        let hash = self.hasher.hash_one(key);
        let slot = usize::try_from(hash % REQUESTED_MAX as u64).ok().and_then(|at| self.requested.get(at));
        if slot.is_some_and(|slot| slot.swap(hash, Ordering::Relaxed) == hash) {
            self.pages.insert(key, page);
        }
    }
}

impl std::fmt::Debug for PageCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PageCache").field("bytes", &self.pages.weight()).finish_non_exhaustive()
    }
}
