//! The hot path: one page, read in one snapshot and copied into one buffer.

use batchscan_model::{BatchId, Position, UtcInstant};
use rusqlite::{Connection, Row, Rows, params};

use super::SqliteStore;
use crate::store::{Answer, DataVersion, Page, PageAsk, StoreError, Tenant};

/// The first allocation of a page. Small windows fit; larger pages double from here, which the allocator mostly
/// does in place.
const BUFFER_BYTES_FIRST: usize = 16 * 1024;

const STANDING: &str = "
    SELECT o.version, o.version_mark, o.moved_version, c.revoked_at IS NOT NULL, c.expires_at
    FROM credential c JOIN organisation o ON o.id = c.org_id
    WHERE c.client_id = ?1 AND c.org_id = ?2";

const PAGE: &str = "
    SELECT json, created_at, batch_id FROM batch
    WHERE org_id = ?1 AND (created_at, batch_id) > (?2, ?3) AND created_at <= ?4
    ORDER BY created_at, batch_id";

/// For the rare walk during which a batch changed its place: those it may have met before are left out.
const PAGE_WITHOUT_MOVED: &str = "
    SELECT json, created_at, batch_id FROM batch
    WHERE org_id = ?1 AND (created_at, batch_id) > (?2, ?3) AND created_at <= ?4
      AND NOT EXISTS (SELECT 1 FROM moved_batch m
                      WHERE m.org_id = ?1 AND m.batch_id = batch.batch_id AND m.version > ?5)
    ORDER BY created_at, batch_id";

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
    // No id is empty, so the pair below comes before every batch of its instant: the start is inclusive.
    let start = ask.range.start.map_or(i64::MIN, UtcInstant::micros);
    let (after, after_id) = match &ask.walk {
        Some(walk) => (walk.after.created.micros(), walk.after.id.as_str()),
        None => (start, ""),
    };
    let end = ask.range.end.map_or(i64::MAX, UtcInstant::micros);
    let org = tenant.org.0;
    match moved_since {
        None => {
            let mut page = connection.prepare_cached(PAGE)?;
            collect(page.query(params![org, after, after_id, end])?, ask, version)
        }
        Some(since) => {
            let mut page = connection.prepare_cached(PAGE_WITHOUT_MOVED)?;
            collect(page.query(params![org, after, after_id, end, since])?, ask, version)
        }
    }
}

/// Copies rows into one buffer until the page is full, and looks one row further for what follows.
fn collect(mut rows: Rows<'_>, ask: &PageAsk, version: DataVersion) -> rusqlite::Result<Page> {
    let mut page = Page { version, text: Vec::with_capacity(BUFFER_BYTES_FIRST), rows: 0, next: None };
    page.text.extend_from_slice(ask.opening.as_bytes());
    if ask.limit.rows == 0 {
        return Ok(page);
    }
    while let Some(row) = rows.next()? {
        if page.rows > 0 {
            page.text.push(b',');
        }
        page.text.extend_from_slice(row.get_ref(0)?.as_bytes()?);
        page.rows += 1;
        if page.rows >= ask.limit.rows || page.text.len() >= ask.limit.bytes {
            let last = position(row)?;
            page.next = rows.next()?.map(|_| last);
            break;
        }
    }
    Ok(page)
}

fn position(row: &Row<'_>) -> rusqlite::Result<Position> {
    let created = UtcInstant::from_micros(row.get(1)?);
    let id = BatchId::new(row.get::<_, String>(2)?);
    match (created, id) {
        (Some(created), Some(id)) => Ok(Position { created, id }),
        _ => Err(rusqlite::Error::InvalidQuery),
    }
}
