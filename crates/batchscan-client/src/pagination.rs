//! Reads the pages of v2 one after the other, and detects loops.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use batchscan_model::DateRange;

use crate::session::Session;
use crate::{Error, Page, Version};

/// Limit of consecutive empty pages. A service may send some, but not endlessly.
const EMPTY_PAGES_MAX: u32 = 1_000;

pub(crate) struct Pagination {
    session: Arc<Session>,
    range: DateRange,
    next_token: Option<String>,
    hasher: RandomState,
    /// Hashes of the cursors so far: a few megabytes for a million pages.
    seen_cursors: HashSet<u64>,
    empty_pages: u32,
}

impl Pagination {
    pub(crate) fn new(session: Arc<Session>, range: DateRange, next_token: Option<String>) -> Self {
        let (hasher, seen_cursors) = (RandomState::new(), HashSet::new());
        Self { session, range, next_token, hasher, seen_cursors, empty_pages: 0 }
    }

    /// Reads the next page. Returns the rest of the pagination with it, or `None` after the last page.
    pub(crate) async fn next_page(mut self) -> Result<(Page, Option<Self>), Error> {
        let url = self.session.batches_url(Version::V2, self.range, self.next_token.as_deref());
        let page = self.session.page(&url).await?;
        let Some(next_token) = page.next_token() else { return Ok((page, None)) };
        self.detect_loop(next_token, page.is_empty())?;
        self.next_token = Some(next_token.to_owned());
        Ok((page, Some(self)))
    }

    fn detect_loop(&mut self, cursor: &str, is_empty: bool) -> Result<(), Error> {
        self.empty_pages = if is_empty { self.empty_pages + 1 } else { 0 };
        if !self.seen_cursors.insert(self.hasher.hash_one(cursor)) {
            return Err(Error::PaginationLoop("a cursor was repeated"));
        }
        if self.empty_pages > EMPTY_PAGES_MAX {
            return Err(Error::PaginationLoop("too many empty pages in a row"));
        }
        Ok(())
    }
}
