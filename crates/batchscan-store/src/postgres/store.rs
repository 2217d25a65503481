//! The handle on the cluster, and how reads and changes reach a host.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use deadpool_postgres::Transaction;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::hosts::Hosts;
use super::route::{Lease, Timeouts};
use super::schema;
use super::sql::PostgresSql;
use super::tls;
use super::url::PostgresUrl;
use crate::errors::{AdminError, OpenError, StoreError};
use crate::shares::Shares;
use crate::sql::{Columns, Sql, Value};
use crate::store::End;
use crate::types::{Freshness, HostHealth, OpenOptions};

/// How long opening waits for a host. A database that is just starting needs some seconds.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);
const OPEN_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How long a change that is not important may take.
const QUICK_TIMEOUT: Duration = Duration::from_secs(2);
/// Pages read at the same time. Each is in memory completely; more would not be faster.
const PAGES_AT_ONCE: usize = 8;

/// The store on a PostgreSQL cluster.
#[derive(Clone, Debug)]
pub(crate) struct PostgresStore {
    pub(super) hosts: Arc<Hosts>,
    /// Whether statements stay prepared on their connections.
    pub(super) prepare: bool,
    pub(super) page_permits: Arc<Semaphore>,
    pub(super) page_shares: Arc<Shares>,
    pub(super) connection_shares: Arc<Shares>,
}

/// Runs a request's read on one host after another, until one succeeds. A macro, because an async closure with captured
/// references is not `Send`.
macro_rules! on_any_host {
    ($store:expr, $freshness:expr, |$client:ident| $work:expr) => {
        on_any_host!($store.hosts.route($freshness), |$client| $work)
    };
    ($route:expr, |$client:ident| $work:expr) => {{
        let mut route = $route;
        loop {
            let lease = route.next().await?;
            let $client: &deadpool_postgres::ClientWrapper = &lease;
            let result = lease.run($work).await;
            if let Some(done) = route.finish(lease, result)? {
                break done;
            }
        }
    }};
}
pub(super) use on_any_host;

impl PostgresStore {
    pub(crate) async fn open(url: &PostgresUrl, options: OpenOptions) -> Result<Self, OpenError> {
        let shown = url.to_string();
        let tls = tls::connector(&url.tls).map_err(OpenError::Other)?;
        let hosts = Hosts::start(&url.hosts, &tls, options.read_from, options.connections);
        let store = Self {
            hosts: Arc::new(hosts.map_err(OpenError::Other)?),
            prepare: url.prepare,
            page_permits: Arc::new(Semaphore::new(PAGES_AT_ONCE)),
            page_shares: Arc::new(Shares::new(PAGES_AT_ONCE)),
            connection_shares: Arc::new(Shares::new(options.connections)),
        };
        store.wait_for_host(&shown).await?;
        schema::migrate(&store.hosts, &shown, options.create).await?;
        let unfinished = "SELECT source_key FROM unfinished_copy";
        let unfinished = store.read_rows(Freshness::Any, unfinished, &[], |_| Ok(())).await;
        let is_unfinished = !unfinished.map_err(|error| schema::store_error(&shown, error))?.is_empty();
        if is_unfinished && !options.allow_unfinished_copy {
            return Err(OpenError::UnfinishedCopy(shown));
        }
        Ok(store)
    }

    async fn wait_for_host(&self, url: &str) -> Result<(), OpenError> {
        let deadline = Instant::now() + OPEN_TIMEOUT;
        while let Some((_, cause)) = self.hosts.outage() {
            if let Some(cause) = self.hosts.rejection() {
                return Err(OpenError::Refused { url: url.into(), cause });
            }
            if Instant::now() >= deadline {
                return Err(OpenError::Unreachable { url: url.into(), cause });
            }
            tokio::time::sleep(OPEN_POLL_INTERVAL).await;
        }
        Ok(())
    }

    pub(crate) fn health(&self) -> Vec<HostHealth> {
        self.hosts.health()
    }

    pub(crate) fn retries(&self) -> u64 {
        self.hosts.retries.load(Ordering::Relaxed)
    }

    /// The rows of one statement for a request.
    pub(crate) async fn read_rows<T: Send>(
        &self,
        freshness: Freshness,
        statement: &str,
        values: &[Value<'_>],
        map: fn(&dyn Columns) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        Ok(on_any_host!(self, freshness, |client| async {
            let sql: &mut dyn Sql = &mut PostgresSql::new(client);
            sql.all(statement, values, map).await.map_err(|error| StoreError::from(error).into())
        }))
    }

    /// Runs a command's read on the primary in one snapshot, without a timeout.
    pub(crate) async fn snapshot<T>(
        &self,
        work: impl AsyncFnOnce(&mut (dyn Sql + '_)) -> Result<T, AdminError>,
    ) -> Result<T, AdminError> {
        self.on_primary(async |lease| {
            let snapshot = lease.begin(Timeouts::COMMAND).await?;
            snapshot.batch_execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY").await?;
            let done = work(&mut PostgresSql::new(snapshot.client())).await?;
            snapshot.rollback().await?;
            Ok(done)
        })
        .await
    }

    /// Runs a command's transaction on the primary, without a timeout.
    pub(crate) async fn transaction<T>(
        &self,
        work: impl AsyncFnOnce(&mut (dyn Sql + '_)) -> Result<End<T>, AdminError>,
    ) -> Result<T, AdminError> {
        self.transaction_within(Timeouts::COMMAND, work).await
    }

    async fn transaction_within<T>(
        &self,
        timeouts: Timeouts,
        work: impl AsyncFnOnce(&mut (dyn Sql + '_)) -> Result<End<T>, AdminError>,
    ) -> Result<T, AdminError> {
        self.on_primary(async |lease| {
            let transaction = lease.begin(timeouts).await?;
            match work(&mut PostgresSql::new(transaction.client())).await? {
                End::Commit(done) => {
                    commit(transaction).await?;
                    Ok(done)
                }
                End::RollBack(done) => {
                    transaction.rollback().await?;
                    Ok(done)
                }
            }
        })
        .await
    }

    pub(crate) async fn change_quickly<T>(
        &self,
        work: impl AsyncFnOnce(&mut (dyn Sql + '_)) -> Result<End<T>, AdminError>,
    ) -> Result<T, AdminError> {
        // The server gives up as well: a statement that waits for a lock would keep its connection.
        let timeouts = Timeouts { statement: QUICK_TIMEOUT.as_secs(), lock: 0 };
        let timed_out = |_| StoreError::Unreachable("timed out".into());
        tokio::time::timeout(QUICK_TIMEOUT, self.transaction_within(timeouts, work))
            .await
            .map_err(timed_out)?
    }

    /// Runs a command's work on the primary, without a timeout, unless the host goes down.
    async fn on_primary<T>(
        &self,
        work: impl AsyncFnOnce(&mut Lease<'_>) -> Result<T, AdminError>,
    ) -> Result<T, AdminError> {
        let mut lease = self.hosts.command_route(Freshness::Latest).next().await?;
        let host = lease.host();
        let result = tokio::select! {
            biased;
            result = work(&mut lease) => result,
            () = host.is_lost() => {
                let why = format!("{} went down during the command", host.name);
                return Err(StoreError::Unreachable(why).into());
            }
        };
        // Not found, already exists, …: the transaction is rolled back, and the connection can be used again.
        let is_usable = match &result {
            Ok(_) => true,
            Err(AdminError::Store(error)) => matches!(error, StoreError::Rejected(_)),
            Err(AdminError::CommitUnknown | AdminError::Aborted) => false,
            Err(_) => true,
        };
        if is_usable {
            lease.release();
        }
        result
    }
}

/// Commits. If there is no response, the outcome is unknown.
async fn commit(transaction: Transaction<'_>) -> Result<(), AdminError> {
    transaction.commit().await.map_err(|error| match AdminError::from(error) {
        AdminError::Store(StoreError::Unreachable(_)) => AdminError::CommitUnknown,
        other => other,
    })
}
