//! Reads changes, and removes batches.

use batchscan_model::{BatchId, OrgId, UtcInstant};
use deadpool_postgres::Transaction;
use futures_util::TryStreamExt;
use futures_util::future::try_join;
use tokio_postgres::types::{ToSql, Type};

use super::failure::Failure;
use super::organisations::lock_org;
use super::pages::{Attempt, BATCHES, Permits, Prepared, Query, Text, compress};
use super::rows::params;
use super::store::{PostgresStore, on_any_host};
use crate::audit::batches_removed;
use crate::changes::{ChangeKey, Changes, ChangesBuilder, ChangesPosition, ChangesRequest};
use crate::errors::{AdminError, StoreError};
use crate::keys::random_mark;
use crate::page::{Caller, DataVersion, OrgState, PageResult};
use crate::page_builder::PageBuilder;
use crate::rows;
use crate::types::Freshness;

static IS_KNOWN: Query =
    Query { sql: rows::IS_KNOWN, types: &[Type::INT8, Type::INT8, Type::INT8, Type::INT8] };
static CHANGED_BATCHES: Query = Query {
    sql: rows::CHANGED_BATCHES,
    types: &[Type::INT8, Type::INT8, Type::INT8, Type::TEXT, Type::INT8],
};
static REMOVED_BATCHES: Query =
    Query { sql: rows::REMOVED_BATCHES, types: &[Type::INT8, Type::INT8, Type::TEXT, Type::INT8] };

impl PostgresStore {
    pub(crate) async fn changes<S: Send + 'static>(
        &self,
        caller: &Caller,
        request: ChangesRequest,
        skip: impl Fn(DataVersion) -> Option<S> + Send + Sync + 'static,
    ) -> Result<PageResult<S, Option<Changes>>, StoreError> {
        let route = self.hosts.route(Freshness::Any);
        let _share = route.in_time(self.connection_shares.acquire(caller.org)).await?;
        let (store, changes, request) = (self, &request, &request.page());
        let result = on_any_host!(route, |client| {
            Attempt { client, store, caller, request }.run_changes(changes, &skip)
        });
        let read = match result {
            PageResult::Skipped(skipped) => return Ok(PageResult::Skipped(skipped)),
            PageResult::InvalidCredential => return Ok(PageResult::InvalidCredential),
            PageResult::Read(None) => return Ok(PageResult::Read(None)),
            PageResult::Read(Some(read)) => read,
        };
        let changes = changes.clone();
        let finished = compress(changes.encoding, move || match read.rows {
            Rows::State(page) => changes.finish_state(page.finish(read.version)),
            Rows::Changes(rows) => rows.finish(read.version),
        });
        finished.await.map(|changes| PageResult::Read(Some(changes)))
    }

    pub(crate) async fn org_states(&self, orgs: Vec<OrgId>) -> Result<Vec<(OrgId, OrgState)>, StoreError> {
        const ORG_STATES: &str = concat!(rows::org_states!(), " WHERE o.id = ANY ($1)");
        let ids: Vec<i64> = orgs.into_iter().map(|org| org.0).collect();
        let rows = on_any_host!(self, Freshness::Any, |client| async {
            Ok(client.query_typed(ORG_STATES, &params![INT8_ARRAY: ids]).await?)
        });
        rows.iter().map(rows::org_state).collect()
    }

    pub(crate) async fn remove_batches(
        &self,
        org: &str,
        ids: Vec<BatchId>,
        prune_before: UtcInstant,
        now: UtcInstant,
    ) -> Result<(), AdminError> {
        self.change_audited(now, async |transaction| {
            let id = lock_org(transaction, org).await?;
            remove(transaction, id, &ids, now).await?;
            prune(transaction, id, prune_before).await?;
            Ok(((), batches_removed(org, &ids)))
        })
        .await
    }
}

/// Changes, not compressed yet.
struct ReadChanges {
    version: DataVersion,
    rows: Rows,
    _permits: Permits,
}

enum Rows {
    State(PageBuilder),
    Changes(ChangesBuilder),
}

impl Attempt<'_> {
    /// `None` if the position cannot be continued.
    async fn run_changes<S>(
        self,
        request: &ChangesRequest,
        skip: &impl Fn(DataVersion) -> Option<S>,
    ) -> Result<PageResult<S, Option<ReadChanges>>, Failure> {
        let Some(known) = self.org_version().await? else { return Ok(PageResult::InvalidCredential) };
        if let Some(skipped) = skip(known.version) {
            return Ok(PageResult::Skipped(skipped));
        }
        let _permits = self.permits().await?;
        let known = self.prepare(&IS_KNOWN).await?;
        let is_known = self.is_known(known, request.position.as_ref());
        let (credential, (is_known, rows)) = match request.after() {
            None => {
                let batches = self.prepare(&BATCHES).await?;
                let rows = async { self.batches(batches, None).await.map(Rows::State) };
                self.snapshot(try_join(is_known, rows)).await?
            }
            Some(after) => {
                let removals = self.prepare(&REMOVED_BATCHES).await?;
                let batches = self.prepare(&CHANGED_BATCHES).await?;
                let rows = self.changes(request, &after, removals, batches);
                self.snapshot(try_join(is_known, rows)).await?
            }
        };
        let Some(latest) = credential else { return Ok(PageResult::InvalidCredential) };
        let read = ReadChanges { version: latest.version, rows, _permits };
        Ok(PageResult::Read(is_known.then_some(read)))
    }

    /// Whether this database has what the client has seen, and the removals that it has not.
    async fn is_known(
        &self,
        statement: Prepared,
        position: Option<&ChangesPosition>,
    ) -> Result<bool, Failure> {
        let Some(position) = position else { return Ok(true) };
        let (DataVersion { number, mark }, complete) = (position.seen, position.complete_version());
        let rows = self.query(statement, &[&self.caller.org.0, &number, &mark, &complete]).await?;
        let rows: Vec<_> = rows.try_collect().await?;
        // Without an organisation, the credential is invalid, too.
        Ok(rows.first().map_or(Ok(false), |row| row.try_get(0))?)
    }

    async fn changes(
        &self,
        request: &ChangesRequest,
        after: &ChangeKey,
        removals: Prepared,
        batches: Prepared,
    ) -> Result<Rows, Failure> {
        // One more than fits, to see whether more follow.
        let limit = i64::try_from(request.rows).unwrap_or(i64::MAX - 1) + 1;
        let (org, ChangeKey { version, created, id }) = (self.caller.org.0, after);
        let select = async |statement, params: &[&(dyn ToSql + Sync)]| {
            self.query(statement, params).await?.try_collect::<Vec<_>>().await
        };
        let removed = after.last_removed();
        let (removals, batches) = try_join(
            select(removals, &[&org, version, &removed, &limit]),
            select(batches, &[&org, version, created, id, &limit]),
        )
        .await?;
        let removals = removals.iter().map(rows::removal).collect::<Result<_, _>>()?;
        let mut changes = ChangesBuilder::new(request, removals);
        for row in &batches {
            let key = ChangeKey { version: row.try_get(0)?, created: row.try_get(1)?, id: row.try_get(2)? };
            changes.add_batch(key, row.try_get::<_, Text<'_>>(3)?.0)?;
        }
        Ok(Rows::Changes(changes))
    }
}

/// Stores a new version of the organisation's batches.
pub(super) async fn set_version(
    transaction: &Transaction<'_>,
    org: OrgId,
    version: i64,
    has_moved: bool,
    now: UtcInstant,
) -> Result<(), AdminError> {
    let mark = random_mark()?;
    let update = "UPDATE organisation SET version = $2, version_mark = $3,
                     moved_version = CASE WHEN $4 THEN $2 ELSE moved_version END WHERE id = $1";
    let params = params![INT8: org.0, INT8: version, INT8: mark, BOOL: has_moved];
    transaction.execute_typed(update, &params).await?;
    let params = params![INT8: org.0, INT8: version, INT8: mark, INT8: now.micros()];
    transaction.execute_typed(rows::INSERT_VERSION, &params).await?;
    prune_versions(transaction, org, version - rows::VERSIONS_MAX).await
}

/// Removes batches. They count as moved, so that paging does not return them twice if they are imported again.
async fn remove(
    transaction: &Transaction<'_>,
    org: OrgId,
    ids: &[BatchId],
    now: UtcInstant,
) -> Result<(), AdminError> {
    let version = transaction.query_typed_one(rows::NEXT_VERSION, &params![INT8: org.0]).await?.try_get(0)?;
    let delete = "DELETE FROM batch WHERE org_id = $1 AND batch_id = $2";
    for id in ids {
        let params = params![INT8: org.0, TEXT: id.as_str(), INT8: version];
        if transaction.execute_typed(delete, &params[..2]).await? == 0 {
            return Err(AdminError::BatchNotFound(id.as_str().to_owned()));
        }
        transaction.execute_typed(rows::RECORD_MOVED, &params).await?;
    }
    set_version(transaction, org, version, true, now).await
}

/// Deletes removals of versions before a time, and the versions whose clients would miss them.
async fn prune(transaction: &Transaction<'_>, org: OrgId, before: UtcInstant) -> Result<(), AdminError> {
    let params = params![INT8: org.0, INT8: before.micros()];
    let version: Option<i64> = transaction.query_typed_one(rows::OLD_REMOVALS, &params).await?.try_get(0)?;
    let Some(version) = version else { return Ok(()) };
    transaction.execute_typed(rows::PRUNE_REMOVALS, &params![INT8: org.0, INT8: version]).await?;
    transaction.execute_typed(rows::SET_PRUNED, &params![INT8: version, INT8: org.0]).await?;
    prune_versions(transaction, org, version - 1).await
}

async fn prune_versions(transaction: &Transaction<'_>, org: OrgId, last: i64) -> Result<(), AdminError> {
    transaction.execute_typed(rows::PRUNE_VERSIONS, &params![INT8: org.0, INT8: last]).await?;
    Ok(())
}
