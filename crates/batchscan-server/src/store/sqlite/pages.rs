//! The hot path: one page, read in one snapshot and copied into one buffer.

use batchscan_model::UtcInstant;
use rusqlite::types::Type;
use rusqlite::{Connection, Rows, params};

use super::SqliteStore;
use crate::store::filling::Filling;
use crate::store::{Answer, DataVersion, Page, PageAsk, StoreError, Tenant};

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
        known: impl Fn(DataVersion) -> Option<T> + Send + 'static,
    ) -> Result<Answer<T>, StoreError> {
        let tenant = tenant.clone();
        self.read(move |connection| answer(connection, &tenant, &ask, known)).await
    }
}

fn answer<T>(
    connection: &Connection,
    tenant: &Tenant,
    ask: &PageAsk,
    known: impl Fn(DataVersion) -> Option<T>,
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
    let mut filling = Filling::new(ask.opening, ask.limit);
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
        fill(&mut filling, rows)?;
    }
    if !filling.is_done() {
        let mut rest = connection.prepare_cached(moved_since.map_or(AFTER, |_| AFTER_WITHOUT_MOVED))?;
        let rows = match moved_since {
            None => rest.query(params![org, after, end])?,
            Some(since) => rest.query(params![org, after, end, since])?,
        };
        fill(&mut filling, rows)?;
    }
    Ok(filling.finish(version))
}

fn fill(filling: &mut Filling, mut rows: Rows<'_>) -> rusqlite::Result<()> {
    while let Some(row) = rows.next()? {
        let taken = filling.take(row.get_ref(0)?.as_bytes()?);
        taken
            .map_err(|unsound| rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::new(unsound)))?;
        if filling.is_done() {
            break;
        }
    }
    Ok(())
}
