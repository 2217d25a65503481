//! Reads changes, and removes batches.

use batchscan_model::{BatchId, OrgId, UtcInstant};
use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::blocks::BlockUpdate;
use super::organisations::org_id;
use super::pages::{CREDENTIAL, Snapshot};
use super::rows::query_all;
use super::store::SqliteStore;
use crate::audit::batches_removed;
use crate::changes::{ChangeKey, Changes, ChangesBuilder, ChangesPosition, ChangesRequest};
use crate::errors::{AdminError, StoreError};
use crate::page::{Caller, DataVersion, OrgState, PageResult};
use crate::rows::{
    CHANGED_BATCHES, IS_KNOWN, NEXT_VERSION, OLD_REMOVALS, PRUNE_REMOVALS, PRUNE_VERSIONS, RECORD_MOVED,
    REMOVED_BATCHES, SET_PRUNED, VERSIONS_MAX, org_state, org_states, removal,
};

impl SqliteStore {
    pub(crate) async fn changes<S: Send + 'static>(
        &self,
        caller: &Caller,
        request: ChangesRequest,
        skip: impl Fn(DataVersion) -> Option<S> + Send + 'static,
    ) -> Result<PageResult<S, Option<Changes>>, StoreError> {
        let caller = caller.clone();
        self.read_for(caller.org, move |connection| read(connection, &caller, &request, skip)).await
    }

    pub(crate) async fn org_states(&self, orgs: Vec<OrgId>) -> Result<Vec<(OrgId, OrgState)>, StoreError> {
        self.read(move |connection| {
            let mut select = connection.prepare_cached(concat!(org_states!(), " WHERE o.id = ?1"))?;
            let mut states = Vec::with_capacity(orgs.len());
            for org in orgs {
                states.extend(query_all(&mut select, [org.0], |row| org_state(row))?);
            }
            Ok(states)
        })
        .await
    }

    pub(crate) async fn remove_batches(
        &self,
        org: &str,
        ids: Vec<BatchId>,
        prune_before: UtcInstant,
        now: UtcInstant,
    ) -> Result<(), AdminError> {
        let name = org.to_owned();
        self.change_audited(now, move |transaction| {
            let org = org_id(transaction, &name)?;
            remove(transaction, org, &ids, now)?;
            prune(transaction, org, prune_before)?;
            Ok(((), batches_removed(&name, &ids)))
        })
        .await
    }
}

fn read<S>(
    connection: &Connection,
    caller: &Caller,
    request: &ChangesRequest,
    skip: impl Fn(DataVersion) -> Option<S>,
) -> Result<PageResult<S, Option<Changes>>, StoreError> {
    let mut credential = connection.prepare_cached(CREDENTIAL)?;
    let Some(snapshot) = Snapshot::open(&mut credential, caller, request.now)? else {
        return Ok(PageResult::InvalidCredential);
    };
    if let Some(skipped) = skip(snapshot.version) {
        return Ok(PageResult::Skipped(skipped));
    }
    if let Some(position) = &request.position
        && !is_known(connection, caller.org, position)?
    {
        return Ok(PageResult::Read(None));
    }
    let changes = match request.after() {
        None => request.finish_state(snapshot.read_page(connection, caller.org, &request.page())?),
        Some(after) => read_after(connection, caller.org, request, &after)?.finish(snapshot.version),
    };
    Ok(PageResult::Read(Some(changes)))
}

/// Whether this database has what the client has seen, and the removals that it has not.
fn is_known(connection: &Connection, org: OrgId, position: &ChangesPosition) -> Result<bool, StoreError> {
    let DataVersion { number, mark } = position.seen;
    let mut known = connection.prepare_cached(IS_KNOWN)?;
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
    let mut removals = connection.prepare_cached(REMOVED_BATCHES)?;
    let after_removal = params![org.0, version, after.last_removed(), limit];
    let removals = query_all(&mut removals, after_removal, |row| removal(row))?;
    let mut changes = ChangesBuilder::new(request, removals);
    let mut batches = connection.prepare_cached(CHANGED_BATCHES)?;
    let mut rows = batches.query(params![org.0, version, created, id, limit])?;
    while let Some(row) = rows.next()? {
        let key = ChangeKey { version: row.get(0)?, created: row.get(1)?, id: row.get(2)? };
        changes.add_batch(key, row.get_ref(3)?.as_bytes().map_err(rusqlite::Error::from)?)?;
    }
    Ok(changes)
}

/// The version that the next change of the batches creates.
pub(super) fn next_version(transaction: &Transaction<'_>, org: OrgId) -> rusqlite::Result<i64> {
    transaction.query_row(NEXT_VERSION, [org.0], |row| row.get(0))
}

/// Stores a new version of the organisation's batches.
pub(super) fn set_version(
    transaction: &Transaction<'_>,
    org: OrgId,
    version: i64,
    has_moved: bool,
    now: UtcInstant,
) -> rusqlite::Result<()> {
    let update = "UPDATE organisation SET version = ?2, version_mark = random(),
                      moved_version = iif(?3, ?2, moved_version) WHERE id = ?1";
    transaction.execute(update, params![org.0, version, has_moved])?;
    let record = "INSERT INTO data_version (org_id, version, mark, created_at)
                  SELECT id, version, version_mark, ?2 FROM organisation WHERE id = ?1";
    transaction.execute(record, [org.0, now.micros()])?;
    transaction.execute(PRUNE_VERSIONS, [org.0, version - VERSIONS_MAX]).map(drop)
}

/// Removes batches. They count as moved, so that paging does not return them twice if they are imported again.
fn remove(
    transaction: &Transaction<'_>,
    org: OrgId,
    ids: &[BatchId],
    now: UtcInstant,
) -> Result<(), AdminError> {
    let version = next_version(transaction, org)?;
    let mut blocks = BlockUpdate::new(org);
    let mut delete =
        transaction.prepare("DELETE FROM batch WHERE org_id = ?1 AND batch_id = ?2 RETURNING created_at")?;
    let mut moved = transaction.prepare(RECORD_MOVED)?;
    for id in ids {
        let id = id.as_str();
        let created = delete.query_row(params![org.0, id], |row| row.get(0)).optional()?;
        let created = created.ok_or_else(|| AdminError::BatchNotFound(id.to_owned()))?;
        blocks.change(transaction, created, id)?;
        moved.execute(params![org.0, id, version])?;
    }
    blocks.finish(transaction)?;
    Ok(set_version(transaction, org, version, true, now)?)
}

/// Deletes removals of versions before a time, and the versions whose clients would miss them.
fn prune(transaction: &Transaction<'_>, org: OrgId, before: UtcInstant) -> Result<(), AdminError> {
    let old = transaction.query_row(OLD_REMOVALS, params![org.0, before.micros()], |row| row.get(0))?;
    let Some::<i64>(version) = old else { return Ok(()) };
    transaction.execute(PRUNE_REMOVALS, [org.0, version])?;
    transaction.execute(SET_PRUNED, [version, org.0])?;
    transaction.execute(PRUNE_VERSIONS, [org.0, version - 1])?;
    Ok(())
}
