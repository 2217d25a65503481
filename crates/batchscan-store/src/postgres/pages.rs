//! Reads one page. The first round trip reads the credential and the data version. If that does not already answer the
//! request, a second one reads the batches, together with the credential of the same snapshot. A gzip page is assembled
//! from blocks (decision 049): its second round trip reads the blocks and the batches before them, and a third one the
//! batches after them, if the page is not full.

use std::pin::pin;
use std::time::{Duration, Instant};

use batchscan_model::{BatchId, Position, UtcInstant};
use deadpool_postgres::ClientWrapper;
use futures_util::TryStreamExt;
use futures_util::future::{try_join, try_join3, try_join4};
use tokio::sync::OwnedSemaphorePermit;
use tokio_postgres::types::{FromSql, ToSql, Type};
use tokio_postgres::{Error, Row, RowStream, Statement};

use super::failure::Failure;
use super::store::{PostgresStore, on_any_host};
use crate::access::CredentialStatus;
use crate::blocks::{BLOCK_BATCHES, key, piece};
use crate::errors::StoreError;
use crate::page::{Caller, DataVersion, Encoding, Key, OneBatch, Page, PageLimit, PageRequest, PageResult};
use crate::page_builder::PageBuilder;
use crate::types::Freshness;

/// The size of a small batch.
const BATCH_BYTES_SMALL: usize = 512;
/// How long a version that the client has seen may be missing on the primary. A synchronous standby shows a commit before the
/// primary, which first waits for the standby's acknowledgement. Later, the version counts as lost, by a restore or a failover.
const ACKNOWLEDGEMENT_TIMEOUT: Duration = Duration::from_secs(2);

const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY";

/// A statement with the types of its parameters.
pub(super) struct Query {
    pub(super) sql: &'static str,
    pub(super) types: &'static [Type],
}

/// A statement that can be sent.
pub(super) enum Prepared {
    Named(Statement),
    Unnamed(&'static Query),
}

/// Always returns a row, which says whether this host is a standby.
static CREDENTIAL: Query = Query {
    sql: "SELECT pg_is_in_recovery(), o.version, o.version_mark, o.moved_version, c.revoked_at, c.expires_at
          FROM (SELECT) AS one
          LEFT JOIN credential c ON c.client_id = $1 AND c.org_id = $2
          LEFT JOIN organisation o ON o.id = c.org_id",
    types: &[Type::TEXT, Type::INT8],
};

pub(super) static BATCHES: Query = Query {
    sql: "SELECT json FROM batch
          WHERE org_id = $1 AND (created_at, batch_id) > ($2, $3) AND created_at <= $4
          ORDER BY created_at, batch_id LIMIT $5",
    types: &[Type::INT8, Type::INT8, Type::TEXT, Type::INT8, Type::INT8],
};

static BATCH: Query = Query {
    sql: "SELECT json FROM batch WHERE org_id = $1 AND batch_id = $2",
    types: &[Type::INT8, Type::TEXT],
};

/// The same without batches that may have been returned before they moved in the order.
static BATCHES_WITHOUT_MOVED: Query = Query {
    sql: "SELECT json FROM batch
          WHERE org_id = $1 AND (created_at, batch_id) > ($2, $3) AND created_at <= $4
            AND NOT EXISTS (SELECT 1 FROM batch_tombstone m
                            WHERE m.org_id = $1 AND m.batch_id = batch.batch_id AND m.version > $6)
          ORDER BY created_at, batch_id LIMIT $5",
    types: &[Type::INT8, Type::INT8, Type::TEXT, Type::INT8, Type::INT8, Type::INT8],
};

/// The first blocks that begin at or after a key and end before a time.
static BLOCKS: Query = Query {
    sql: "SELECT after_created_at, after_id, last_created_at, last_id, batches, text_bytes, text_crc, deflated
          FROM block
          WHERE org_id = $1 AND (last_created_at, last_id) > ($2, $3) AND (after_created_at, after_id) >= ($2, $3)
            AND last_created_at <= $4
          ORDER BY last_created_at, last_id LIMIT $5",
    types: &[Type::INT8, Type::INT8, Type::TEXT, Type::INT8, Type::INT8],
};

/// The batches before the first of those blocks.
static BATCHES_BEFORE_BLOCKS: Query = Query {
    sql: "SELECT b.json
          FROM (SELECT after_created_at, after_id FROM block
                WHERE org_id = $1 AND (last_created_at, last_id) > ($2, $3)
                  AND (after_created_at, after_id) >= ($2, $3) AND last_created_at <= $4
                ORDER BY last_created_at, last_id LIMIT 1) AS first
          CROSS JOIN LATERAL (
              SELECT json FROM batch
              WHERE org_id = $1 AND (created_at, batch_id) > ($2, $3)
                AND (created_at, batch_id) <= (first.after_created_at, first.after_id)
              ORDER BY created_at, batch_id LIMIT $5) AS b",
    types: &[Type::INT8, Type::INT8, Type::TEXT, Type::INT8, Type::INT8],
};

impl PostgresStore {
    pub(crate) async fn batch(
        &self,
        caller: &Caller,
        id: &BatchId,
        request: PageRequest,
    ) -> Result<Option<OneBatch>, StoreError> {
        let route = self.hosts.route(Freshness::Any);
        let _share = route.in_time(self.connection_shares.acquire(caller.org)).await?;
        let (store, request, acknowledged_by) = (self, &request, acknowledgement_deadline());
        Ok(on_any_host!(route, |client| {
            Attempt { client, store, caller, request, acknowledged_by }.run_batch(id)
        }))
    }

    pub(crate) async fn page<S: Send + 'static>(
        &self,
        caller: &Caller,
        request: PageRequest,
        skip: impl Fn(DataVersion) -> Option<S> + Send + Sync + 'static,
    ) -> Result<PageResult<S>, StoreError> {
        let route = self.hosts.route(Freshness::Any);
        let _share = route.in_time(self.connection_shares.acquire(caller.org)).await?;
        let (store, request, acknowledged_by) = (self, &request, acknowledgement_deadline());
        let result = on_any_host!(route, |client| {
            Attempt { client, store, caller, request, acknowledged_by }.run(&skip)
        });
        Ok(match result {
            PageResult::Skipped(skipped) => PageResult::Skipped(skipped),
            PageResult::InvalidCredential => PageResult::InvalidCredential,
            PageResult::Read(rows) => PageResult::Read(rows.finish(request.encoding).await?),
        })
    }
}

/// The rows of a page, not compressed yet.
struct PageRows {
    version: DataVersion,
    builder: PageBuilder,
    _permits: Permits,
}

impl PageRows {
    async fn finish(self, encoding: Encoding) -> Result<Page, StoreError> {
        compress(encoding, move || self.builder.finish(self.version)).await
    }
}

/// Compresses a page, which takes milliseconds, outside the async runtime.
pub(super) async fn compress<T: Send + 'static>(
    encoding: Encoding,
    finish: impl FnOnce() -> T + Send + 'static,
) -> Result<T, StoreError> {
    if encoding == Encoding::Identity {
        return Ok(finish());
    }
    let finished = tokio::task::spawn_blocking(finish).await;
    finished.map_err(|panicked| StoreError::Broken(panicked.to_string()))
}

/// The permits to read one page.
pub(super) struct Permits {
    _permit: OwnedSemaphorePermit,
    _share: Option<OwnedSemaphorePermit>,
}

/// One attempt at one host.
pub(super) struct Attempt<'a> {
    pub(super) client: &'a ClientWrapper,
    pub(super) store: &'a PostgresStore,
    pub(super) caller: &'a Caller,
    pub(super) request: &'a PageRequest,
    /// Until then, the primary is read only if it has the version that the client has seen.
    pub(super) acknowledged_by: Instant,
}

pub(super) fn acknowledgement_deadline() -> Instant {
    Instant::now() + ACKNOWLEDGEMENT_TIMEOUT
}

/// The version of an organisation, and the last version in which a batch moved in the order.
#[derive(Clone, Copy)]
pub(super) struct OrgVersion {
    pub(super) version: DataVersion,
    moved_version: i64,
    is_standby: bool,
}

impl Attempt<'_> {
    async fn run<S>(
        self,
        skip: &impl Fn(DataVersion) -> Option<S>,
    ) -> Result<PageResult<S, PageRows>, Failure> {
        let Some(mut known) = self.org_version().await? else { return Ok(PageResult::InvalidCredential) };
        if let Some(skipped) = skip(known.version) {
            return Ok(PageResult::Skipped(skipped));
        }
        let _permits = self.permits().await?;
        loop {
            let moved_since = self.request.moved_since(known.moved_version);
            let (credential, ((), builder)) = self.read_page(moved_since, async { Ok(()) }).await?;
            let Some(latest) = credential else { return Ok(PageResult::InvalidCredential) };
            // A batch has just moved and must not be returned again: repeat without it.
            if latest.moved_version > known.moved_version && moved_since.is_none() {
                known = latest;
                continue;
            }
            return Ok(PageResult::Read(PageRows { version: latest.version, builder, _permits }));
        }
    }

    /// `None` if the credential is invalid.
    async fn run_batch(self, id: &BatchId) -> Result<Option<OneBatch>, Failure> {
        let (statement, org, id) = (self.prepare(&BATCH).await?, self.caller.org.0, id.as_str());
        let rows = async {
            let rows = self.query(statement, &[&org, &id]).await?;
            Ok(rows.try_collect::<Vec<_>>().await?)
        };
        let (credential, rows) = self.snapshot(rows).await?;
        let Some(OrgVersion { version, is_standby, .. }) = credential else { return Ok(None) };
        let json: Option<String> = rows.first().map(|row| row.try_get(0)).transpose()?;
        // A standby may not have it yet.
        if json.is_none() && is_standby {
            return Err(Failure::Lagging);
        }
        Ok(Some(OneBatch { version, json }))
    }

    /// The version of the caller's organisation; `None` if the credential is invalid.
    pub(super) async fn org_version(&self) -> Result<Option<OrgVersion>, Failure> {
        self.credential(self.prepare(&CREDENTIAL).await?).await
    }

    pub(super) async fn permits(&self) -> Result<Permits, Failure> {
        let _share = self.store.page_shares.acquire(self.caller.org).await;
        let permit = self.store.page_permits.clone().acquire_owned().await;
        let _permit = permit.map_err(|closed| Failure::Broken(closed.to_string()))?;
        Ok(Permits { _permit, _share })
    }

    /// The credential and rows of one snapshot, in one round trip. The statements of the rows must be prepared.
    pub(super) async fn snapshot<T>(
        &self,
        rows: impl Future<Output = Result<T, Failure>>,
    ) -> Result<(Option<OrgVersion>, T), Failure> {
        let credential = self.prepare(&CREDENTIAL).await?;
        // All are sent, in this order, before the first response.
        let ((), credential, rows, ()) =
            try_join4(self.execute(BEGIN), self.credential(credential), rows, self.execute("COMMIT")).await?;
        Ok((credential, rows))
    }

    /// The credential, `other` rows and a page of one snapshot.
    pub(super) async fn read_page<T>(
        &self,
        moved_since: Option<i64>,
        other: impl Future<Output = Result<T, Failure>>,
    ) -> Result<(Option<OrgVersion>, (T, PageBuilder)), Failure> {
        if self.request.encoding == Encoding::Gzip && moved_since.is_none() {
            let read = self.read_blocks(other).await;
            if read.is_err() {
                // The connection may be used again, but not in this snapshot.
                let _ = self.execute("ROLLBACK").await;
            }
            return read;
        }
        let batches = self.prepare(moved_since.map_or(&BATCHES, |_| &BATCHES_WITHOUT_MOVED)).await?;
        let page = async {
            let mut page = PageBuilder::new(self.request, self.limit());
            self.append_batches(batches, &self.request.after(), moved_since, &mut page).await?;
            Ok(page)
        };
        self.snapshot(try_join(other, page)).await
    }

    /// The same for a page from blocks.
    async fn read_blocks<T>(
        &self,
        other: impl Future<Output = Result<T, Failure>>,
    ) -> Result<(Option<OrgVersion>, (T, PageBuilder)), Failure> {
        let (credential, batches) = (self.prepare(&CREDENTIAL).await?, self.prepare(&BATCHES).await?);
        let (before, blocks) = (self.prepare(&BATCHES_BEFORE_BLOCKS).await?, self.prepare(&BLOCKS).await?);
        let limit = self.limit();
        let (org, after, end) = (self.caller.org.0, self.request.after(), self.request.end_micros());
        let (rows, blocks_max) = (row_limit(limit.rows), row_limit(limit.rows.div_ceil(BLOCK_BATCHES)));
        let before_blocks: [&(dyn ToSql + Sync); 5] = [&org, &after.created, &after.id, &end, &rows];
        let of_blocks: [&(dyn ToSql + Sync); 5] = [&org, &after.created, &after.id, &end, &blocks_max];
        let rows = try_join3(other, self.collect(before, &before_blocks), self.collect(blocks, &of_blocks));
        let ((), credential, (other, before, blocks)) =
            try_join3(self.execute(BEGIN), self.credential(credential), rows).await?;
        let mut page = PageBuilder::new(self.request, limit);
        let after = append_blocks(&mut page, &before, &blocks)?.unwrap_or(after);
        if page.is_done() {
            self.execute("COMMIT").await?;
        } else {
            let rest = self.append_batches(batches, &after, None, &mut page);
            try_join(rest, self.execute("COMMIT")).await?;
        }
        Ok((credential, (other, page)))
    }

    async fn collect(
        &self,
        statement: Prepared,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Failure> {
        Ok(self.query(statement, params).await?.try_collect().await?)
    }

    /// Prepares a statement, unless that is disabled or was already done on this connection.
    pub(super) async fn prepare(&self, query: &'static Query) -> Result<Prepared, Failure> {
        if !self.store.prepare {
            return Ok(Prepared::Unnamed(query));
        }
        Ok(Prepared::Named(self.client.prepare_typed_cached(query.sql, query.types).await?))
    }

    pub(super) async fn query(
        &self,
        statement: Prepared,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<RowStream, Error> {
        match statement {
            Prepared::Named(statement) => self.client.query_raw(&statement, params.iter().copied()).await,
            Prepared::Unnamed(query) => {
                let typed = params.iter().copied().zip(query.types.iter().cloned());
                self.client.query_typed_raw(query.sql, typed).await
            }
        }
    }

    async fn execute(&self, statement: &str) -> Result<(), Failure> {
        Ok(self.client.batch_execute(statement).await?)
    }

    /// Checks the credential; `None` if it is invalid.
    async fn credential(&self, statement: Prepared) -> Result<Option<OrgVersion>, Failure> {
        let (client, org) = (self.caller.client.as_str(), self.caller.org.0);
        let mut rows = pin!(self.query(statement, &[&client, &org]).await?);
        let row = rows.try_next().await?.ok_or_else(|| Failure::Broken("no row for a credential".into()))?;
        // Reads the response to its end. Otherwise the next user of the connection would have to.
        while rows.try_next().await?.is_some() {}
        let is_standby: bool = row.try_get(0)?;
        let Some(number) = row.try_get::<_, Option<i64>>(1)? else {
            // A standby may not have the credential yet.
            return if is_standby { Err(Failure::Lagging) } else { Ok(None) };
        };
        // Revocation and expiry are final, so a standby cannot be wrong about them.
        let status = CredentialStatus::from_micros(row.try_get(4)?, row.try_get(5)?, self.request.now);
        if status != CredentialStatus::Active {
            return Ok(None);
        }
        let must_wait = is_standby || Instant::now() < self.acknowledged_by;
        if number < self.request.min_version && must_wait {
            return Err(Failure::Lagging);
        }
        let version = DataVersion { number, mark: row.try_get(2)? };
        Ok(Some(OrgVersion { version, moved_version: row.try_get(3)?, is_standby }))
    }

    /// Appends the batches after a key.
    async fn append_batches(
        &self,
        statement: Prepared,
        after: &Key,
        moved_since: Option<i64>,
        page: &mut PageBuilder,
    ) -> Result<(), Failure> {
        let (org, end) = (self.caller.org.0, self.request.end_micros());
        let rows = row_limit(page.rows_left());
        let mut params: Vec<&(dyn ToSql + Sync)> = vec![&org, &after.created, &after.id, &end, &rows];
        params.extend(moved_since.iter().map(|version| version as &(dyn ToSql + Sync)));
        let mut rows = pin!(self.query(statement, &params).await?);
        while let Some(row) = rows.try_next().await? {
            // The rows after the end of a page have already been sent. They are read and discarded.
            if !page.is_done() {
                page.append(row.try_get::<_, Text<'_>>(0)?.0)?;
            }
        }
        Ok(())
    }

    /// With a limit of bytes, no more rows are requested than could fit.
    fn limit(&self) -> PageLimit {
        let PageLimit { rows, bytes } = self.request.limit;
        PageLimit { rows: rows.min(bytes / BATCH_BYTES_SMALL + 1), bytes }
    }
}

/// One more than fits, to see whether more follow.
fn row_limit(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX - 1).saturating_add(1)
}

/// Appends the batches before the first block, and the blocks as far as they fit. Returns where the rest begins.
fn append_blocks(page: &mut PageBuilder, before: &[Row], blocks: &[Row]) -> Result<Option<Key>, Failure> {
    for row in before {
        if !page.is_done() {
            page.append(row.try_get::<_, Text<'_>>(0)?.0)?;
        }
    }
    let mut end = blocks.first().map(|first| key(first, 0)).transpose()?;
    for block in blocks {
        let (start, batches) = (key(block, 0)?, block.try_get::<_, i64>(4)?);
        // A block may be missing.
        if end.as_ref().is_some_and(|end| *end != start) {
            break;
        }
        let batches = usize::try_from(batches).unwrap_or(usize::MAX);
        if !page.has_room_for(batches) {
            page.note_more();
            break;
        }
        let piece = piece(block.try_get(5)?, block.try_get(6)?, block.try_get(7)?);
        page.append_block(batches, piece, || last_position(block))?;
        end = Some(key(block, 2)?);
    }
    Ok(end)
}

fn last_position(block: &Row) -> Option<Position> {
    let created = UtcInstant::from_micros(block.try_get(2).ok()?)?;
    Some(Position { created, id: BatchId::new(block.try_get::<_, String>(3).ok()?)? })
}

/// A text as bytes. It was valid UTF-8 when it was stored.
pub(super) struct Text<'a>(pub(super) &'a [u8]);

impl<'a> FromSql<'a> for Text<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(raw))
    }

    fn accepts(wanted: &Type) -> bool {
        *wanted == Type::TEXT
    }
}
