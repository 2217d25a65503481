//! The hot path: one page, read in one snapshot and copied into one buffer. Where compressed text is asked for, it is put
//! together from packs (decision 049) and from the batches at the edges.

use batchscan_model::{BatchId, OrgId, Position, UtcInstant};
use rusqlite::types::Type;
use rusqlite::{Connection, Row, Rows, params};

use super::SqliteStore;
use super::packs::{Place, piece};
use crate::deflate::TEXT_BYTES_MIN;
use crate::filling::{NotABatch, PageBuilder};
use crate::{Answer, Caller, DataVersion, Form, Page, PageRequest, StoreError};

const STANDING: &str = "
    SELECT o.version, o.version_mark, o.moved_version, c.revoked_at IS NOT NULL, c.expires_at, o.packed_version
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

/// Packs from a place on, in order.
const PACKS: &str = "
    SELECT first_created_at, first_id, last_created_at, last_id, until_created_at, until_id,
           batches, text_bytes, text_sum, deflated
    FROM pack WHERE org_id = ?1 AND (first_created_at, first_id) >= (?2, ?3) ORDER BY first_created_at, first_id";
/// Batches from a place on, up to another; and up to the end of the window.
const BETWEEN: &str =
    batches_where!("(created_at, batch_id) >= (?2, ?3) AND (created_at, batch_id) < (?4, ?5)");
const FROM: &str = batches_where!("(created_at, batch_id) >= (?2, ?3) AND created_at <= ?4");

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
    pub(crate) async fn page<T: Send + 'static>(
        &self,
        tenant: &Caller,
        ask: PageRequest,
        known: impl Fn(DataVersion) -> Option<T> + Send + 'static,
    ) -> Result<Answer<T>, StoreError> {
        let tenant = tenant.clone();
        self.read(move |connection| answer(connection, &tenant, &ask, known)).await
    }
}

fn answer<T>(
    connection: &Connection,
    tenant: &Caller,
    ask: &PageRequest,
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
    let has_packs = row.get::<_, i64>(5)? == version.number;
    let packs = ask.form == Form::Deflated && has_packs && moved_since.is_none();
    let page = if packs {
        read_packed_page(connection, tenant, ask, version)
    } else {
        read_page(connection, tenant, ask, version, moved_since)
    };
    page.map(Answer::Page)
}

fn read_page(
    connection: &Connection,
    tenant: &Caller,
    ask: &PageRequest,
    version: DataVersion,
    moved_since: Option<i64>,
) -> rusqlite::Result<Page> {
    let mut filling = PageBuilder::new(ask.opening, ask.limit);
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

fn read_packed_page(
    connection: &Connection,
    tenant: &Caller,
    ask: &PageRequest,
    version: DataVersion,
) -> rusqlite::Result<Page> {
    let mut filling = PageBuilder::new(ask.opening, ask.limit);
    let end = ask.range.end.map_or(i64::MAX, UtcInstant::micros);
    let from = match &ask.walk {
        None => Place::new(ask.range.start.map_or(i64::MIN, UtcInstant::micros), ""),
        Some(walk) => Place::new(walk.after.created.micros(), walk.after.id.as_str()).after(),
    };
    fill_with_packs(connection, tenant.org, from, end, &mut filling)?;
    Ok(filling.finish(version))
}

/// Fills a page with packs as far as they go, and with batches where they do not.
fn fill_with_packs(
    connection: &Connection,
    org: OrgId,
    mut from: Place,
    end: i64,
    filling: &mut PageBuilder,
) -> rusqlite::Result<()> {
    let mut packs = connection.prepare_cached(PACKS)?;
    let mut packs = packs.query(params![org.0, from.created, from.id])?;
    // Up to here there is nothing but what the pack before held.
    let mut until = None;
    while let Some(pack) = packs.next()? {
        let (last, batches) = (pack.get::<_, i64>(2)?, pack.get::<_, u32>(6)? as usize);
        if last > end || !filling.has_room_for(batches) {
            break;
        }
        // A page of so little goes out plain. What is about the pack is read as text, and so is it.
        if usize::try_from(pack.get::<_, i64>(7)?).unwrap_or(0) < TEXT_BYTES_MIN {
            continue;
        }
        let first = Place { created: pack.get(0)?, id: pack.get(1)? };
        if until.as_ref() != Some(&first) {
            let mut between = connection.prepare_cached(BETWEEN)?;
            let loose = params![org.0, from.created, from.id, first.created, first.id];
            fill(filling, between.query(loose)?)?;
        }
        if !filling.has_room_for(batches) {
            from = first;
            break;
        }
        let (piece, position) = (piece(pack, 7)?, || position(pack));
        filling.take_piece(batches, piece, position).map_err(|error| unsound(9, error))?;
        from = Place { created: last, id: pack.get(3)? }.after();
        until = Some(Place { created: pack.get(4)?, id: pack.get(5)? });
    }
    if filling.is_done() {
        return Ok(());
    }
    let mut rest = connection.prepare_cached(FROM)?;
    fill(filling, rest.query(params![org.0, from.created, from.id, end])?)
}

/// The place of a pack's last batch.
fn position(pack: &Row<'_>) -> Option<Position> {
    let created = UtcInstant::from_micros(pack.get(2).ok()?)?;
    Some(Position { created, id: BatchId::new(pack.get::<_, String>(3).ok()?)? })
}

fn fill(filling: &mut PageBuilder, mut rows: Rows<'_>) -> rusqlite::Result<()> {
    while let Some(row) = rows.next()? {
        filling.take(row.get_ref(0)?.as_bytes()?).map_err(|error| unsound(0, error))?;
        if filling.is_done() {
            break;
        }
    }
    Ok(())
}

fn unsound(column: usize, error: NotABatch) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error))
}
