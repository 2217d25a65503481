//! The hot path: one page, read in one snapshot and copied into one buffer.

use batchscan_model::{Batch, Position, UtcInstant};
use rusqlite::types::Type;
use rusqlite::{Connection, Rows, params};

use super::SqliteStore;
use crate::store::{Answer, DataVersion, Page, PageAsk, PageLimit, StoreError, Tenant};

/// The first allocation of a page: small windows fit, and so does what is needed to guess the size of larger ones.
const BUFFER_BYTES_FIRST: usize = 16 * 1024;

const STANDING: &str = "
    SELECT o.version, o.version_mark, o.moved_version, c.revoked_at IS NOT NULL, c.expires_at
    FROM credential c JOIN organisation o ON o.id = c.org_id
    WHERE c.client_id = ?1 AND c.org_id = ?2";

/// Batches in one condition's range, in order.
macro_rules! batches_where {
    ($range:literal $(, $without_moved:literal)?) => {
        concat!(
            "SELECT json FROM batch WHERE org_id = ?1 AND ", $range, $($without_moved,)? " ORDER BY created_at, batch_id"
        )
    };
}

/// The rest of the instant that a walk stopped in.
const TIES: &str = batches_where!("created_at = ?2 AND batch_id > ?3");
/// What comes after an instant. Asking for both at once, by comparing pairs, would cost every row a second comparison.
const AFTER: &str = batches_where!("created_at > ?2 AND created_at <= ?3");

/// The same for the rare walk during which a batch changed its place: those it may have met before are left out.
const TIES_WITHOUT_MOVED: &str = batches_where!(
    "created_at = ?2 AND batch_id > ?3",
    " AND NOT EXISTS (SELECT 1 FROM moved_batch m
                      WHERE m.org_id = ?1 AND m.batch_id = batch.batch_id AND m.version > ?4)"
);
const AFTER_WITHOUT_MOVED: &str = batches_where!(
    "created_at > ?2 AND created_at <= ?3",
    " AND NOT EXISTS (SELECT 1 FROM moved_batch m
                      WHERE m.org_id = ?1 AND m.batch_id = batch.batch_id AND m.version > ?4)"
);

impl SqliteStore {
    pub(in crate::store) async fn page<T: Send + 'static>(
        &self,
        tenant: &Tenant,
        ask: PageAsk,
        known: impl FnOnce(DataVersion) -> Option<T> + Send + 'static,
    ) -> Result<Answer<T>, StoreError> {
        let tenant = tenant.clone();
        self.read(move |connection| answer(connection, &tenant, &ask, known)).await
    }
}

fn answer<T>(
    connection: &Connection,
    tenant: &Tenant,
    ask: &PageAsk,
    known: impl FnOnce(DataVersion) -> Option<T>,
) -> rusqlite::Result<Answer<T>> {
    let mut standing = connection.prepare_cached(STANDING)?;
    // While this row is open, so is its snapshot: the batches below are read from the same one, and no BEGIN and
    // COMMIT are paid for it.
    let mut open = standing.query(params![tenant.client.as_str(), tenant.org.0])?;
    let Some(row) = open.next()? else { return Ok(Answer::DeadCredential) };
    if row.get(3)? || row.get::<_, Option<i64>>(4)?.is_some_and(|expiry| expiry <= ask.now.micros()) {
        return Ok(Answer::DeadCredential);
    }
    let version = DataVersion { number: row.get(0)?, mark: row.get(1)? };
    if let Some(known) = known(version) {
        return Ok(Answer::Known(known));
    }
    let moved_since = ask
        .walk
        .as_ref()
        .map(|walk| walk.since)
        .filter(|since| row.get(2).is_ok_and(|moved: i64| moved > *since));
    read_page(connection, tenant, ask, version, moved_since).map(Answer::Page)
}

fn read_page(
    connection: &Connection,
    tenant: &Tenant,
    ask: &PageAsk,
    version: DataVersion,
    moved_since: Option<i64>,
) -> rusqlite::Result<Page> {
    let mut filling = Filling::new(ask, version);
    let org = tenant.org.0;
    // The start is inclusive, and instants are whole microseconds.
    let start = ask.range.start.map_or(i64::MIN, |start| start.micros() - 1);
    let end = ask.range.end.map_or(i64::MAX, UtcInstant::micros);
    let after = ask.walk.as_ref().map_or(start, |walk| walk.after.created.micros());
    if let Some(walk) = &ask.walk {
        let id = walk.after.id.as_str();
        let mut ties = connection.prepare_cached(moved_since.map_or(TIES, |_| TIES_WITHOUT_MOVED))?;
        let rows = match moved_since {
            None => ties.query(params![org, after, id])?,
            Some(since) => ties.query(params![org, after, id, since])?,
        };
        filling.take(rows)?;
    }
    if !filling.is_done() {
        let mut rest = connection.prepare_cached(moved_since.map_or(AFTER, |_| AFTER_WITHOUT_MOVED))?;
        let rows = match moved_since {
            None => rest.query(params![org, after, end])?,
            Some(since) => rest.query(params![org, after, end, since])?,
        };
        filling.take(rows)?;
    }
    Ok(filling.page)
}

/// A page in the making: rows are copied into one buffer until it is full, and one more is looked at.
struct Filling<'a> {
    ask: &'a PageAsk,
    page: Page,
    /// The batch that filled the page.
    last: Option<Position>,
}

impl<'a> Filling<'a> {
    fn new(ask: &'a PageAsk, version: DataVersion) -> Self {
        let mut text = Vec::with_capacity(BUFFER_BYTES_FIRST);
        text.extend_from_slice(ask.opening.as_bytes());
        Self { ask, page: Page { version, text, rows: 0, next: None }, last: None }
    }

    /// Whether nothing more is to be read.
    fn is_done(&self) -> bool {
        self.page.next.is_some() || self.ask.limit.rows == 0
    }

    fn take(&mut self, mut rows: Rows<'_>) -> rusqlite::Result<()> {
        while let Some(row) = rows.next()? {
            if self.last.is_some() {
                self.page.next = self.last.take();
                break;
            }
            self.copy(row.get_ref(0)?.as_bytes()?)?;
        }
        Ok(())
    }

    fn copy(&mut self, json: &[u8]) -> rusqlite::Result<()> {
        let Page { text, rows, .. } = &mut self.page;
        if text.len() + json.len() + 1 > text.capacity() {
            text.reserve(expected_rest(text.len(), *rows, self.ask.limit).max(json.len() + 1));
        }
        if *rows > 0 {
            text.push(b',');
        }
        text.extend_from_slice(json);
        *rows += 1;
        if *rows >= self.ask.limit.rows || text.len() >= self.ask.limit.bytes {
            self.last = Some(position(json)?);
        }
        Ok(())
    }
}

/// How much is still to come if the batches go on as they began. Growing once, to the right size, spares copying the
/// page once more on its way.
fn expected_rest(bytes: usize, rows: usize, limit: PageLimit) -> usize {
    let row_bytes = bytes / rows.max(1) + 1;
    let by_rows = row_bytes.saturating_mul(limit.rows.saturating_sub(rows));
    let rest = by_rows.min(limit.bytes.saturating_sub(bytes));
    // A sixteenth more than expected: batches differ. What is left over is given back before the page is kept.
    rest + rest / 16 + row_bytes
}

/// Where a batch stands, by its own text: reading the key beside it would cost every row a tenth of its price.
fn position(json: &[u8]) -> rusqlite::Result<Position> {
    let unsound =
        || rusqlite::Error::FromSqlConversionFailure(0, Type::Text, "a stored batch is not a batch".into());
    let text = std::str::from_utf8(json).map_err(|_| unsound())?;
    Batch::from_json(text).map(|batch| batch.position()).map_err(|_| unsound())
}
