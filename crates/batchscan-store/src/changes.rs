//! Changes since a position: what a client needs to keep a copy of its batches current. Knows nothing about HTTP.
//!
//! A client first reads the complete state in batch order, then the changes since that began. A batch that changes
//! meanwhile has a later version, so it is among the changes, wherever it was in the order.

use std::iter::Peekable;
use std::vec::IntoIter;

use batchscan_model::{DateRange, Position, UtcInstant};

use crate::errors::StoreError;
use crate::page::{DataVersion, Encoding, Page, PageLimit, PageRequest, Resume};
use crate::page_builder::PageBuilder;

/// Whether a version with this mark is known and no removal after the version $4 was deleted. Version 0 has no batches.
pub(crate) const IS_KNOWN: &str = "
    SELECT (EXISTS (SELECT 1 FROM data_version WHERE org_id = $1 AND version = $2 AND mark = $3) OR $2 = 0)
           AND pruned_version <= $4
    FROM organisation WHERE id = $1";
/// Batches in the order of changes, after a change.
pub(crate) const CHANGED_BATCHES: &str = "
    SELECT version, created_at, batch_id, json FROM batch
    WHERE org_id = $1 AND (version, created_at, batch_id) > ($2, $3, $4)
    ORDER BY version, created_at, batch_id LIMIT $5";
/// The same for removed batches.
pub(crate) const REMOVED_BATCHES: &str = "
    SELECT version, batch_id FROM batch_tombstone m
    WHERE org_id = $1 AND (version, batch_id) > ($2, $3)
      AND NOT EXISTS (SELECT 1 FROM batch b WHERE b.org_id = m.org_id AND b.batch_id = m.batch_id)
    ORDER BY version, batch_id LIMIT $4";

/// Where a client is in the changes of its organisation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangesPosition {
    /// The data version that the client last read from. If the database does not have it, the client has data that was
    /// lost.
    pub seen: DataVersion,
    /// What the client has.
    pub progress: SyncProgress,
}

/// What a client has of its organisation's batches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SyncProgress {
    /// The batches up to `after` of the complete state, which was begun in the version `since`.
    State {
        /// The number of the version.
        since: i64,
        /// The last batch.
        after: Position,
    },
    /// The changes up to this one.
    Changes(ChangeKey),
    /// Everything in the version that it has seen.
    Complete,
}

impl ChangesPosition {
    /// Before the first change after a version.
    fn after_version(seen: DataVersion, number: i64) -> Self {
        let progress = match number == seen.number {
            true => SyncProgress::Complete,
            false => SyncProgress::Changes(ChangeKey::start(number + 1)),
        };
        Self { seen, progress }
    }

    /// The last version whose changes the client has completely.
    pub(crate) fn complete_version(&self) -> i64 {
        match &self.progress {
            SyncProgress::State { since, .. } => *since,
            SyncProgress::Changes(after) => after.version - 1,
            SyncProgress::Complete => self.seen.number,
        }
    }

    /// Whether the client has everything in this version.
    pub fn is_complete_in(&self, version: DataVersion) -> bool {
        self.seen == version && self.progress == SyncProgress::Complete
    }
}

/// A change in the order in which changes are returned: by version, in each version the batches in their order, then the
/// removals by id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChangeKey {
    /// The version that changed the batch.
    pub version: i64,
    /// The creation time of the batch in microseconds, or [`ChangeKey::REMOVED`].
    pub created: i64,
    /// The id of the batch. An empty one comes before all others.
    pub id: String,
}

impl ChangeKey {
    /// The creation time of removed batches: later than every other.
    pub const REMOVED: i64 = i64::MAX;

    fn start(version: i64) -> Self {
        Self { version, created: i64::MIN, id: String::new() }
    }

    pub(crate) fn removed(version: i64, id: String) -> Self {
        Self { version, created: Self::REMOVED, id }
    }

    /// The id after which the removals of the version follow.
    pub(crate) fn last_removed(&self) -> &str {
        if self.created == Self::REMOVED { &self.id } else { "" }
    }
}

/// Which changes to read, and how to return them.
#[derive(Clone, Debug)]
pub struct ChangesRequest {
    /// Where the client is; `None` before its first request.
    pub position: Option<ChangesPosition>,
    /// The maximum number of batches and removals.
    pub rows: usize,
    /// The start of the body, see [`PageRequest::body_prefix`].
    pub body_prefix: &'static str,
    /// The requested encoding. [`Page::encoding`] returns the one that was used.
    pub encoding: Encoding,
    /// The current time, for the credential's expiry.
    pub now: UtcInstant,
}

impl ChangesRequest {
    /// The request for the batches that begin the body.
    pub(crate) fn page(&self) -> PageRequest {
        let resume = match &self.position {
            Some(ChangesPosition { progress: SyncProgress::State { after, .. }, .. }) => Some(Resume {
                after: after.clone(),
                // Batches that moved need not be left out: they are returned again among the changes.
                first_version: i64::MAX,
                last_version: i64::MAX,
            }),
            _ => None,
        };
        PageRequest {
            range: DateRange::default(),
            resume,
            limit: PageLimit { rows: self.rows, bytes: usize::MAX },
            body_prefix: self.body_prefix,
            encoding: self.encoding,
            min_version: self.position.as_ref().map_or(0, |position| position.seen.number),
            now: self.now,
        }
    }

    /// The change after which to read, if the client has the complete state.
    pub(crate) fn after(&self) -> Option<ChangeKey> {
        let ChangesPosition { seen, progress } = self.position.as_ref()?;
        match progress {
            SyncProgress::State { .. } => None,
            SyncProgress::Changes(after) => Some(after.clone()),
            SyncProgress::Complete => Some(ChangeKey::start(seen.number + 1)),
        }
    }

    /// A part of the complete state.
    pub(crate) fn finish_state(&self, page: Page) -> Changes {
        let seen = page.version;
        let since = self.position.as_ref().map_or(seen.number, ChangesPosition::complete_version);
        let position = match &page.next {
            Some(Resume { after, .. }) => {
                let progress = SyncProgress::State { since, after: after.clone() };
                ChangesPosition { seen, progress }
            }
            None => ChangesPosition::after_version(seen, since),
        };
        Changes { page, removed: Vec::new(), position }
    }
}

/// Changes, as the start of a response body.
#[derive(Debug)]
pub struct Changes {
    /// The batches that are new or changed.
    pub page: Page,
    /// The ids of batches that were removed.
    pub removed: Vec<String>,
    /// Where the client is when it has applied them.
    pub position: ChangesPosition,
}

/// Changes that are being read.
pub(crate) struct ChangesBuilder {
    page: PageBuilder,
    removals: Peekable<IntoIter<ChangeKey>>,
    removed: Vec<String>,
    rows_left: usize,
    last: Option<ChangeKey>,
    has_more: bool,
}

impl ChangesBuilder {
    /// The removals in order.
    pub(crate) fn new(request: &ChangesRequest, removals: Vec<ChangeKey>) -> Self {
        let page = request.page();
        // One more than fits, so that the page is never full: this type counts.
        Self {
            page: PageBuilder::new(&page, PageLimit { rows: request.rows + 1, ..page.limit }),
            removals: removals.into_iter().peekable(),
            removed: Vec::new(),
            rows_left: request.rows,
            last: None,
            has_more: false,
        }
    }

    /// Appends the next batch, unless the page is full.
    pub(crate) fn add_batch(&mut self, key: ChangeKey, json: &[u8]) -> Result<(), StoreError> {
        self.add_removals(Some(&key));
        if self.has_room() {
            self.last = Some(key);
            self.page.append(json)?;
        }
        Ok(())
    }

    /// The removals before a change, or all that remain.
    fn add_removals(&mut self, before: Option<&ChangeKey>) {
        while let Some(removal) = self.removals.next_if(|key| before.is_none_or(|before| key < before)) {
            if self.has_room() {
                self.removed.push(removal.id.clone());
                self.last = Some(removal);
            }
        }
    }

    fn has_room(&mut self) -> bool {
        self.has_more |= self.rows_left == 0;
        self.rows_left = self.rows_left.saturating_sub(1);
        !self.has_more
    }

    pub(crate) fn finish(mut self, seen: DataVersion) -> Changes {
        self.add_removals(None);
        let progress = match self.last.filter(|_| self.has_more) {
            Some(last) => SyncProgress::Changes(last),
            None => SyncProgress::Complete,
        };
        let position = ChangesPosition { seen, progress };
        Changes { page: self.page.finish(seen), removed: self.removed, position }
    }
}
