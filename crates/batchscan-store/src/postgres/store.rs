//! The handle on the cluster, and how reads and changes reach a host.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use deadpool_postgres::{ClientWrapper, Transaction};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::failure::Failure;
use super::hosts::Hosts;
use super::route::Lease;
use super::schema;
use super::tls;
use super::url::PostgresUrl;
use crate::errors::{AdminError, OpenError, StoreError};
use crate::types::{Freshness, HostHealth, OpenOptions};

/// How long opening waits for a host. A database that is just starting needs some seconds.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);
/// How often opening checks for a host.
const OPEN_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Pages read at the same time. Each is in memory completely; more would not be faster.
const PAGES_AT_ONCE: usize = 8;

/// The store on a PostgreSQL cluster.
#[derive(Clone, Debug)]
pub struct PostgresStore {
    pub(super) hosts: Arc<Hosts>,
    /// Whether statements stay prepared on their connections.
    pub(super) prepare: bool,
    pub(super) page_permits: Arc<Semaphore>,
}

impl PostgresStore {
    pub(crate) async fn open(url: &PostgresUrl, options: OpenOptions) -> Result<Self, OpenError> {
        let shown = url.to_string();
        let tls = tls::connector(&url.tls).map_err(OpenError::Other)?;
        let hosts = Hosts::start(&url.hosts, &tls, options.read_from, options.connections);
        let store = Self {
            hosts: Arc::new(hosts.map_err(OpenError::Other)?),
            prepare: url.prepare,
            page_permits: Arc::new(Semaphore::new(PAGES_AT_ONCE)),
        };
        store.wait_for_host(&shown).await?;
        schema::migrate(&store.hosts, &shown, options.create).await?;
        if !options.allow_unfinished_copy
            && store.exists("unfinished_copy").await.map_err(|error| schema::store_error(&shown, error))?
        {
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

    pub(crate) async fn ping(&self) -> Result<(), StoreError> {
        self.exists("organisation").await.map(|_| ())
    }

    /// Whether a table has a row.
    pub(super) async fn exists(&self, table: &str) -> Result<bool, StoreError> {
        let query = format!("SELECT EXISTS (SELECT 1 FROM {table})");
        self.read(Freshness::Any, async |client: &ClientWrapper| {
            Ok(client.query_typed_one(&query, &[]).await?.try_get(0)?)
        })
        .await
    }

    pub(crate) fn health(&self) -> Vec<HostHealth> {
        self.hosts.health()
    }

    pub(crate) fn retries(&self) -> u64 {
        self.hosts.retries.load(Ordering::Relaxed)
    }

    /// Runs a request's read on one host after another, until one succeeds.
    pub(super) async fn read<T>(
        &self,
        freshness: Freshness,
        work: impl AsyncFn(&ClientWrapper) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        let mut route = self.hosts.route(freshness);
        loop {
            let lease = route.next().await?;
            let result = lease.run(work(&lease)).await;
            if let Some(done) = route.finish(lease, result)? {
                return Ok(done);
            }
        }
    }

    /// Runs a command's change on the primary in one transaction, committed if `work` succeeds.
    pub(super) async fn change<T>(
        &self,
        work: impl AsyncFnOnce(&Transaction<'_>) -> Result<T, AdminError>,
    ) -> Result<T, AdminError> {
        self.on_primary(async |lease| {
            let transaction = lease.begin().await?;
            let done = work(&transaction).await?;
            commit(transaction).await?;
            Ok(done)
        })
        .await
    }

    /// Runs a command's read on the primary in one snapshot, without a timeout.
    pub(super) async fn read_slowly<T>(
        &self,
        work: impl AsyncFnOnce(&Transaction<'_>) -> Result<T, AdminError>,
    ) -> Result<T, AdminError> {
        self.on_primary(async |lease| {
            let snapshot = lease.begin().await?;
            snapshot.batch_execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY").await?;
            let done = work(&snapshot).await?;
            snapshot.rollback().await?;
            Ok(done)
        })
        .await
    }

    /// Runs a command's work on the primary, without a timeout, unless the host goes down.
    pub(super) async fn on_primary<T>(
        &self,
        work: impl AsyncFnOnce(&mut Lease<'_>) -> Result<T, AdminError>,
    ) -> Result<T, AdminError> {
        let mut lease = self.hosts.command_route(Freshness::Latest).next().await?;
        let host = lease.host();
        let done = tokio::select! {
            biased;
            done = work(&mut lease) => done?,
            () = host.is_lost() => {
                let why = format!("{} went down during the command", host.name);
                return Err(StoreError::Unreachable(why).into());
            }
        };
        lease.release();
        Ok(done)
    }
}

/// Commits. If there is no response, the outcome is unknown.
pub(super) async fn commit(transaction: Transaction<'_>) -> Result<(), AdminError> {
    transaction.commit().await.map_err(|error| match AdminError::from(error) {
        AdminError::Store(StoreError::Unreachable(_)) => AdminError::CommitUnknown,
        other => other,
    })
}
