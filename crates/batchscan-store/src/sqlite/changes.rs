//! Reads changes.

use batchscan_model::OrgId;
use rusqlite::{Connection, params};

use super::pages::Snapshot;
use super::store::SqliteStore;
use crate::changes::{
    CHANGED_BATCHES, ChangeKey, Changes, ChangesBuilder, ChangesPosition, ChangesRequest, IS_KNOWN,
    REMOVED_BATCHES,
};
use crate::errors::StoreError;
use crate::page::{Caller, DataVersion, PageResult};
use crate::sql::for_sqlite;

impl SqliteStore {
    pub(crate) async fn changes<S: Send + 'static>(
        &self,
        caller: &Caller,
        request: ChangesRequest,
        skip: impl Fn(DataVersion) -> Option<S> + Send + 'static,
    ) -> Result<PageResult<S, Option<Changes>>, StoreError> {
        let (org, now) = (caller.org, request.now);
        self.read_unless(caller, now, skip, move |connection, snapshot| {
            read(connection, snapshot, org, &request)
        })
        .await
    }
}

fn read(
    connection: &Connection,
    snapshot: &Snapshot<'_>,
    org: OrgId,
    request: &ChangesRequest,
) -> Result<Option<Changes>, StoreError> {
    if let Some(position) = &request.position
        && !is_known(connection, org, position)?
    {
        return Ok(None);
    }
    Ok(Some(match request.after() {
        None => request.finish_state(snapshot.read_page(connection, org, &request.page())?),
        Some(after) => read_after(connection, org, request, &after)?.finish(snapshot.version),
    }))
}

/// Whether this database has what the client has seen, and the removals that it has not.
fn is_known(connection: &Connection, org: OrgId, position: &ChangesPosition) -> Result<bool, StoreError> {
    let DataVersion { number, mark } = position.seen;
    let mut known = connection.prepare_cached(&for_sqlite(IS_KNOWN))?;
    Ok(known.query_row(params![org.0, number, mark, position.complete_version()], |row| row.get(0))?)
}

fn read_after(
    connection: &Connection,
    org: OrgId,
    request: &ChangesRequest,
    after: &ChangeKey,
) -> Result<ChangesBuilder, StoreError> {
    // One more than fits, to see whether more follow.
    let limit = i64::try_from(request.rows).unwrap_or(i64::MAX - 1) + 1;
    let ChangeKey { version, created, id } = after;
    let mut removals = connection.prepare_cached(&for_sqlite(REMOVED_BATCHES))?;
    let after_removal = params![org.0, version, after.last_removed(), limit];
    let removals =
        removals.query_map(after_removal, |row| Ok(ChangeKey::removed(row.get(0)?, row.get(1)?)))?;
    let removals = removals.collect::<Result<_, _>>()?;
    let mut changes = ChangesBuilder::new(request, removals);
    let mut batches = connection.prepare_cached(&for_sqlite(CHANGED_BATCHES))?;
    let mut rows = batches.query(params![org.0, version, created, id, limit])?;
    while let Some(row) = rows.next()? {
        let key = ChangeKey { version: row.get(0)?, created: row.get(1)?, id: row.get(2)? };
        changes.add_batch(key, row.get_ref(3)?.as_bytes().map_err(rusqlite::Error::from)?)?;
    }
    Ok(changes)
}
