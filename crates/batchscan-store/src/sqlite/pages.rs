//! Reads one page from one snapshot into one buffer. A gzip page is assembled from blocks (decision 049) and from the
//! batches before and after them.

use batchscan_model::{BatchId, OrgId, Position, UtcInstant};
use rusqlite::{Connection, OptionalExtension, Row, Rows, Statement, params};

use super::store::SqliteStore;
use crate::access::CredentialStatus;
use crate::blocks::{key, piece};
use crate::errors::StoreError;
use crate::page::{Caller, DataVersion, Encoding, Key, OneBatch, Page, PageRequest, PageResult};
use crate::page_builder::PageBuilder;

const CREDENTIAL: &str = "
    SELECT o.version, o.version_mark, o.moved_version, c.revoked_at, c.expires_at
    FROM credential c JOIN organisation o ON o.id = c.org_id
    WHERE c.client_id = ?1 AND c.org_id = ?2";

/// Selects batches in order.
macro_rules! select_batches {
    ($range:literal) => {
        concat!("SELECT json FROM batch WHERE org_id = ?1 AND ", $range, " ORDER BY created_at, batch_id")
    };
}

/// Batches at the creation time of the lower bound.
const SAME_TIME: &str = select_batches!("created_at = ?2 AND batch_id > ?3");
/// Later batches. One statement that compares time and id would compare every row twice.
const LATER: &str = select_batches!("created_at >= ?2 AND created_at <= ?3");
/// Both without batches that may have been returned before they moved in the order.
const WITHOUT_MOVED: &str = select_batches!(
    "(created_at, batch_id) > (?2, ?3) AND created_at <= ?4
     AND NOT EXISTS (SELECT 1 FROM batch_tombstone m
                     WHERE m.org_id = ?1 AND m.batch_id = batch.batch_id AND m.version > ?5)"
);

/// Blocks that end after a key, in order.
const BLOCKS: &str = "
    SELECT after_created_at, after_id, last_created_at, last_id, batches, text_bytes, text_crc, deflated
    FROM block WHERE org_id = ?1 AND (last_created_at, last_id) > (?2, ?3) ORDER BY last_created_at, last_id";
/// Batches between two blocks.
const BETWEEN: &str =
    select_batches!("(created_at, batch_id) > (?2, ?3) AND (created_at, batch_id) <= (?4, ?5)");
/// Batches after the last block.
const REST: &str = select_batches!("(created_at, batch_id) > (?2, ?3) AND created_at <= ?4");

/// The data version, and the number of batches in a structure that pages are not read from.
const INDEXED_BATCHES: &str = "
    SELECT version, (SELECT count(*) FROM batch INDEXED BY batch_by_id WHERE org_id = organisation.id)
    FROM organisation WHERE id = ?1";

impl SqliteStore {
    /// The number of a data version, and how many batches the index by id has in it.
    pub(crate) async fn indexed_batches(&self, org: OrgId) -> Result<Option<(i64, u64)>, StoreError> {
        self.read_for(org, move |connection| {
            let mut count = connection.prepare_cached(INDEXED_BATCHES)?;
            let counts =
                count.query_row([org.0], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.cast_unsigned())));
            Ok(counts.optional()?)
        })
        .await
    }

    pub(crate) async fn batch(
        &self,
        caller: &Caller,
        id: &BatchId,
        request: PageRequest,
    ) -> Result<Option<OneBatch>, StoreError> {
        let (caller, id) = (caller.clone(), id.clone());
        self.read_for(caller.org, move |connection| {
            let mut credential = connection.prepare_cached(CREDENTIAL)?;
            let Some(snapshot) = Snapshot::open(&mut credential, &caller, request.now)? else {
                return Ok(None);
            };
            let find = "SELECT json FROM batch WHERE org_id = ?1 AND batch_id = ?2";
            let mut find = connection.prepare_cached(find)?;
            let json = find.query_row(params![caller.org.0, id.as_str()], |row| row.get(0)).optional()?;
            Ok(Some(OneBatch { version: snapshot.version, json }))
        })
        .await
    }

    pub(crate) async fn page<S: Send + 'static>(
        &self,
        caller: &Caller,
        request: PageRequest,
        skip: impl Fn(DataVersion) -> Option<S> + Send + 'static,
    ) -> Result<PageResult<S>, StoreError> {
        let (org, now) = (caller.org, request.now);
        self.read_unless(caller, now, skip, move |connection, snapshot| {
            snapshot.read_page(connection, org, &request)
        })
        .await
    }

    /// Reads for a caller with a valid credential in one snapshot, unless `skip` has a result for its version.
    pub(super) async fn read_unless<S: Send + 'static, T: Send + 'static>(
        &self,
        caller: &Caller,
        now: UtcInstant,
        skip: impl Fn(DataVersion) -> Option<S> + Send + 'static,
        read: impl FnOnce(&Connection, &Snapshot<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<PageResult<S, T>, StoreError> {
        self.identity.check()?;
        let learning = match self.known.find(caller, now, &skip) {
            Ok(skipped) => return Ok(PageResult::Skipped(skipped)),
            Err(learning) => learning,
        };
        let caller = caller.clone();
        self.read_for(caller.org, move |connection| {
            let mut credential = connection.prepare_cached(CREDENTIAL)?;
            let Some(snapshot) = Snapshot::open(&mut credential, &caller, now)? else {
                return Ok(PageResult::InvalidCredential);
            };
            if let Some(learning) = learning {
                learning.learn(snapshot.version, snapshot.expires_at);
            }
            if let Some(skipped) = skip(snapshot.version) {
                return Ok(PageResult::Skipped(skipped));
            }
            read(connection, &snapshot).map(PageResult::Read)
        })
        .await
    }
}

/// A snapshot, opened by reading a valid credential. The row stays open, and with it the snapshot for the batches. That is
/// cheaper than BEGIN and COMMIT.
pub(super) struct Snapshot<'s> {
    _credential: Rows<'s>,
    pub(super) version: DataVersion,
    expires_at: Option<i64>,
    moved_version: i64,
}

impl<'s> Snapshot<'s> {
    /// `None` if the credential is invalid.
    pub(super) fn open(
        credential: &'s mut Statement<'_>,
        caller: &Caller,
        now: UtcInstant,
    ) -> Result<Option<Self>, StoreError> {
        let mut rows = credential.query(params![caller.client.as_str(), caller.org.0])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let expires_at = row.get(4)?;
        if CredentialStatus::from_micros(row.get(3)?, expires_at, now) != CredentialStatus::Active {
            return Ok(None);
        }
        let version = DataVersion { number: row.get(0)?, mark: row.get(1)? };
        let moved_version = row.get(2)?;
        Ok(Some(Self { _credential: rows, version, expires_at, moved_version }))
    }

    pub(super) fn read_page(
        &self,
        connection: &Connection,
        org: OrgId,
        request: &PageRequest,
    ) -> Result<Page, StoreError> {
        let mut page = PageBuilder::new(request, request.limit);
        match (request.encoding, request.moved_since(self.moved_version)) {
            (_, Some(version)) => {
                let (Key { created, id }, end) = (request.after(), request.end_micros());
                let mut batches = connection.prepare_cached(WITHOUT_MOVED)?;
                append_rows(&mut page, batches.query(params![org.0, created, id, end, version])?)?;
            }
            (Encoding::Identity, None) => append_batches(connection, org, request, &mut page)?,
            (Encoding::Gzip, None) => append_blocks(connection, org, request, &mut page)?,
        }
        Ok(page.finish(self.version))
    }
}

fn append_batches(
    connection: &Connection,
    org: OrgId,
    request: &PageRequest,
    page: &mut PageBuilder,
) -> Result<(), StoreError> {
    let Key { mut created, id } = request.after();
    if !id.is_empty() {
        let mut same_time = connection.prepare_cached(SAME_TIME)?;
        append_rows(page, same_time.query(params![org.0, created, id])?)?;
        created = created.saturating_add(1);
    }
    if page.is_done() {
        return Ok(());
    }
    let mut later = connection.prepare_cached(LATER)?;
    append_rows(page, later.query(params![org.0, created, request.end_micros()])?)
}

/// Appends blocks as far as they fit, and batches where there is no block.
fn append_blocks(
    connection: &Connection,
    org: OrgId,
    request: &PageRequest,
    page: &mut PageBuilder,
) -> Result<(), StoreError> {
    let (mut after, end) = (request.after(), request.end_micros());
    let mut blocks = connection.prepare_cached(BLOCKS)?;
    let mut blocks = blocks.query(params![org.0, after.created, after.id])?;
    while let Some(block) = blocks.next()? {
        let start = key(block, 0)?;
        let (last_created, batches) = (block.get::<_, i64>(2)?, block.get::<_, u32>(4)? as usize);
        if last_created > end {
            break;
        }
        if !page.has_room_for(batches) {
            page.note_more();
            break;
        }
        // The first block may begin before the page. Its other batches are appended one by one.
        if start < after {
            continue;
        }
        if start != after {
            let mut between = connection.prepare_cached(BETWEEN)?;
            let keys = params![org.0, after.created, after.id, start.created, start.id];
            append_rows(page, between.query(keys)?)?;
            after = start;
            if !page.has_room_for(batches) {
                break;
            }
        }
        let piece =
            piece(block.get(5)?, block.get(6)?, block.get_ref(7)?.as_blob().map_err(rusqlite::Error::from)?);
        page.append_block(batches, piece, || last_position(block))?;
        after = key(block, 2)?;
    }
    if page.is_done() {
        return Ok(());
    }
    let mut rest = connection.prepare_cached(REST)?;
    append_rows(page, rest.query(params![org.0, after.created, after.id, end])?)
}

fn last_position(block: &Row<'_>) -> Option<Position> {
    let created = UtcInstant::from_micros(block.get(2).ok()?)?;
    Some(Position { created, id: BatchId::new(block.get::<_, String>(3).ok()?)? })
}

fn append_rows(page: &mut PageBuilder, mut rows: Rows<'_>) -> Result<(), StoreError> {
    while let Some(row) = rows.next()? {
        page.append(row.get_ref(0)?.as_bytes().map_err(rusqlite::Error::from)?)?;
        if page.is_done() {
            break;
        }
    }
    Ok(())
}
