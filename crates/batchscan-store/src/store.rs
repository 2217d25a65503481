//! The store of this process: one type for handlers and commands, for both databases.

use std::sync::Arc;

use batchscan_model::{BatchId, UtcInstant};

use crate::change::{self, Actor, Change};
use crate::changes::{Changes, ChangesRequest};
use crate::errors::{AdminError, OpenError, StoreError};
use crate::page::{Caller, DataVersion, OneBatch, PageRequest, PageResult};
use crate::postgres::PostgresStore;
use crate::sql::{Columns, Sql, Value};
use crate::sqlite::SqliteStore;
use crate::types::{Freshness, HostHealth, OpenOptions};
use crate::url::DatabaseUrl;

/// An open database.
#[derive(Clone, Debug)]
pub struct Store {
    pub(crate) database: Database,
    actor: Arc<Actor>,
}

#[derive(Clone, Debug)]
pub(crate) enum Database {
    /// One file, opened by any number of processes on one machine.
    Sqlite(SqliteStore),
    /// A PostgreSQL cluster, used by any number of processes on any number of machines.
    Postgres(PostgresStore),
}

/// How a transaction ends, with its result.
pub(crate) enum End<T> {
    Commit(T),
    RollBack(T),
}

/// Calls the same method of either store. Futures of PostgreSQL are large: requests to SQLite would move them, too.
macro_rules! call {
    ($self:ident.$method:ident($($argument:expr),*)) => {
        match &$self.database {
            Database::Sqlite(store) => store.$method($($argument),*).await,
            Database::Postgres(store) => Box::pin(store.$method($($argument),*)).await,
        }
    };
}

impl Store {
    /// Opens the database and migrates its schema.
    pub async fn open(url: &DatabaseUrl, options: OpenOptions) -> Result<Self, OpenError> {
        Ok(Self::new(match url {
            DatabaseUrl::Sqlite(path) => Database::Sqlite(SqliteStore::open(path, options).await?),
            DatabaseUrl::Postgres(url) => Database::Postgres(PostgresStore::open(url, options).await?),
        }))
    }

    pub(crate) fn new(database: Database) -> Self {
        Self { database, actor: Arc::new(Actor::of_process()) }
    }

    /// The same database, with changes by someone else in the audit log.
    pub fn with_actor(&self, actor: Actor) -> Self {
        Self { database: self.database.clone(), actor: Arc::new(actor) }
    }

    pub(crate) fn actor(&self) -> Arc<Actor> {
        self.actor.clone()
    }

    /// One page of the caller's batches.
    ///
    /// `skip` is called with the data version before any batch is read. If it returns something, for example a cached
    /// page, that is the result. It may be called again if a host fails during the read.
    pub async fn page<S: Send + 'static>(
        &self,
        caller: &Caller,
        request: PageRequest,
        skip: impl Fn(DataVersion) -> Option<S> + Send + Sync + 'static,
    ) -> Result<PageResult<S>, StoreError> {
        call!(self.page(caller, request, skip))
    }

    /// One of the caller's batches, not older than a version, in one snapshot; `None` if the credential is invalid.
    pub async fn batch(
        &self,
        caller: &Caller,
        id: &BatchId,
        min_version: i64,
        now: UtcInstant,
    ) -> Result<Option<OneBatch>, StoreError> {
        let request = PageRequest { min_version, ..PageRequest::version_only(now) };
        call!(self.batch(caller, id, request))
    }

    /// Changes of the caller's batches. `skip` is called as in [`Store::page`].
    ///
    /// `None` if the position cannot be continued: what the client has seen is not in this database, or removals that it
    /// has not seen were deleted.
    pub async fn changes<S: Send + 'static>(
        &self,
        caller: &Caller,
        request: ChangesRequest,
        skip: impl Fn(DataVersion) -> Option<S> + Send + Sync + 'static,
    ) -> Result<PageResult<S, Option<Changes>>, StoreError> {
        call!(self.changes(caller, request, skip))
    }

    /// The version of the caller's batches; `None` if the credential is invalid.
    pub async fn data_version(
        &self,
        caller: &Caller,
        now: UtcInstant,
    ) -> Result<Option<DataVersion>, StoreError> {
        match self.page(caller, PageRequest::version_only(now), Some).await? {
            PageResult::Skipped(version) => Ok(Some(version)),
            PageResult::Read(_) | PageResult::InvalidCredential => Ok(None),
        }
    }

    /// Whether a read may come from a standby, which may be behind.
    pub fn has_standbys(&self) -> bool {
        matches!(self.database, Database::Postgres(_))
    }

    /// The hosts of a PostgreSQL cluster; none for SQLite.
    pub fn hosts(&self) -> Vec<HostHealth> {
        match &self.database {
            Database::Sqlite(_) => Vec::new(),
            Database::Postgres(store) => store.health(),
        }
    }

    /// Reads that were repeated on another host or connection.
    pub fn retries(&self) -> u64 {
        match &self.database {
            Database::Sqlite(_) => 0,
            Database::Postgres(store) => store.retries(),
        }
    }

    /// The rows of one statement for a request, within its timeout. Repeated on another host if one fails.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        freshness: Freshness,
        statement: &str,
        values: &[Value<'_>],
        map: fn(&dyn Columns) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        call!(self.read_rows(freshness, statement, values, map))
    }

    /// An operator's read in one snapshot of the primary, without a timeout.
    pub(crate) async fn snapshot<T: Send + 'static>(
        &self,
        work: impl AsyncFnOnce(&mut (dyn Sql + '_)) -> Result<T, AdminError> + Send + 'static,
    ) -> Result<T, AdminError> {
        call!(self.snapshot(work))
    }

    /// A transaction on the primary, without a timeout. An error rolls it back.
    pub(crate) async fn transaction<T: Send + 'static>(
        &self,
        work: impl AsyncFnOnce(&mut (dyn Sql + '_)) -> Result<End<T>, AdminError> + Send + 'static,
    ) -> Result<T, AdminError> {
        call!(self.transaction(work))
    }

    /// A transaction that is not important: gives up early if the database is locked.
    pub(crate) async fn change_quickly<T: Send + 'static>(
        &self,
        work: impl AsyncFnOnce(&mut (dyn Sql + '_)) -> Result<End<T>, AdminError> + Send + 'static,
    ) -> Result<T, AdminError> {
        call!(self.change_quickly(work))
    }

    /// A transaction with an entry in the audit log for each change that `work` returns.
    pub(crate) async fn change<T: Send + 'static>(
        &self,
        now: UtcInstant,
        work: impl AsyncFnOnce(&mut (dyn Sql + '_)) -> Result<(T, Vec<Change>), AdminError> + Send + 'static,
    ) -> Result<T, AdminError> {
        let actor = self.actor();
        self.transaction(async move |sql| {
            let (done, changes) = work(sql).await?;
            change::record(sql, &actor, now, &changes).await?;
            Ok(End::Commit(done))
        })
        .await
    }
}
