//! Reads changes.

use futures_util::TryStreamExt;
use futures_util::future::try_join;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::failure::Failure;
use super::pages::{Attempt, Permits, Prepared, Query, Text, acknowledgement_deadline, compress};
use super::store::{PostgresStore, on_any_host};
use crate::changes::{self, ChangeKey, Changes, ChangesBuilder, ChangesPosition, ChangesRequest};
use crate::errors::StoreError;
use crate::page::{Caller, DataVersion, PageResult};
use crate::page_builder::PageBuilder;
use crate::types::Freshness;

static IS_KNOWN: Query =
    Query { sql: changes::IS_KNOWN, types: &[Type::INT8, Type::INT8, Type::INT8, Type::INT8] };
static CHANGED_BATCHES: Query = Query {
    sql: changes::CHANGED_BATCHES,
    types: &[Type::INT8, Type::INT8, Type::INT8, Type::TEXT, Type::INT8],
};
static REMOVED_BATCHES: Query =
    Query { sql: changes::REMOVED_BATCHES, types: &[Type::INT8, Type::INT8, Type::TEXT, Type::INT8] };

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
        let acknowledged_by = acknowledgement_deadline();
        let result = on_any_host!(route, |client| {
            Attempt { client, store, caller, request, acknowledged_by }.run_changes(changes, &skip)
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
                let (credential, (is_known, page)) = self.read_page(None, is_known).await?;
                (credential, (is_known, Rows::State(page)))
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
        let removal = |row: &Row| Ok::<_, Failure>(ChangeKey::removed(row.try_get(0)?, row.try_get(1)?));
        let removals = removals.iter().map(removal).collect::<Result<_, _>>()?;
        let mut changes = ChangesBuilder::new(request, removals);
        for row in &batches {
            let key = ChangeKey { version: row.try_get(0)?, created: row.try_get(1)?, id: row.try_get(2)? };
            changes.add_batch(key, row.try_get::<_, Text<'_>>(3)?.0)?;
        }
        Ok(Rows::Changes(changes))
    }
}
