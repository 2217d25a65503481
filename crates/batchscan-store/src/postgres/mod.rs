//! The store on a PostgreSQL cluster: one host or several, and any number of processes on any number of machines.
//!
//! | module | owns |
//! |---|---|
//! | `url`, `tls` | what an operator says about the database |
//! | `hosts`, `watch` | which hosts live, which one is primary, which are behind |
//! | `route` | the way of one request over the hosts |
//! | `failure` | what another host may do better, and what will not pass |
//! | `schema` | migrations, under a lock |
//! | `pages`, `credentials`, `organisations`, `import`, `dump`, `care` | the contract |
//!
//! Whatever a standby says is only taken for what it cannot be wrong about: a page that is at least as new as what
//! the caller has seen, a credential that is alive. All else is asked of the primary (decision 041).

mod care;
mod credentials;
mod dump;
mod failure;
mod hosts;
mod import;
mod organisations;
mod pages;
mod route;
mod schema;
mod tls;
mod url;
mod watch;

pub use url::{BadPostgresUrl, PostgresUrl};

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use deadpool_postgres::{ClientWrapper, Transaction};
use tokio::sync::Semaphore;

use super::{AdminError, Freshness, HostHealth, OpenError, Opening, StoreError};
use failure::Failure;
use hosts::Hosts;
use route::Lease;

/// How long an opening waits for a host: a database that is being started beside us needs some seconds.
const OPEN_WAIT: Duration = Duration::from_secs(10);
/// How often an opening looks whether a host has answered.
const OPEN_PAUSE: Duration = Duration::from_millis(20);

/// The store on a PostgreSQL cluster.
#[derive(Clone, Debug)]
pub struct PostgresStore {
    hosts: Arc<Hosts>,
    /// Whether the statements of requests stay prepared on their connections.
    prepare: bool,
    /// Pages that may be read at once. Each is held in memory whole before anybody counts it.
    pages: Arc<Semaphore>,
}

/// Pages read at once: more would not come sooner, and they may be large.
const PAGES_AT_ONCE: usize = 8;

impl PostgresStore {
    pub(super) async fn open(url: &PostgresUrl, opening: Opening) -> Result<Self, OpenError> {
        let shown = url.to_string();
        let tls = tls::connector(&url.tls).map_err(OpenError::Other)?;
        let hosts = Hosts::watch(&url.hosts, &tls, opening.read_from, opening.connections);
        let store = Self {
            hosts: Arc::new(hosts.map_err(OpenError::Other)?),
            prepare: url.prepare,
            pages: Arc::new(Semaphore::new(PAGES_AT_ONCE)),
        };
        store.wait_for_a_host(&shown).await?;
        schema::bring_up_to_date(&store.hosts, url, opening.make_if_missing).await?;
        if !opening.unfinished_copy
            && store.is_unfinished_copy().await.map_err(|error| schema::unreachable(&shown, error))?
        {
            return Err(OpenError::UnfinishedCopy(shown));
        }
        Ok(store)
    }

    async fn is_unfinished_copy(&self) -> Result<bool, StoreError> {
        self.read(Freshness::Any, async |client: &ClientWrapper| {
            let any = client.query_typed_one("SELECT EXISTS (SELECT 1 FROM unfinished_copy)", &[]).await?;
            Ok(any.try_get(0)?)
        })
        .await
    }

    async fn wait_for_a_host(&self, url: &str) -> Result<(), OpenError> {
        let deadline = tokio::time::Instant::now() + OPEN_WAIT;
        while let Some((_, cause)) = self.hosts.outage() {
            if let Some(cause) = self.hosts.refusal() {
                return Err(OpenError::Refused { url: url.into(), cause });
            }
            if tokio::time::Instant::now() >= deadline {
                return Err(OpenError::Unreachable { url: url.into(), cause });
            }
            tokio::time::sleep(OPEN_PAUSE).await;
        }
        Ok(())
    }

    pub(super) async fn ping(&self) -> Result<(), StoreError> {
        self.read(Freshness::Any, async |client: &ClientWrapper| {
            client.query_typed("SELECT 1 FROM organisation LIMIT 1", &[]).await?;
            Ok(())
        })
        .await
    }

    pub(super) fn health(&self) -> Vec<HostHealth> {
        self.hosts.health()
    }

    pub(super) fn retries(&self) -> u64 {
        self.hosts.retries.load(Ordering::Relaxed)
    }

    /// The answer of the first host that has one. `work` may run several times, on one host after another.
    async fn read<T>(
        &self,
        freshness: Freshness,
        work: impl AsyncFn(&ClientWrapper) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        let mut route = self.hosts.route(freshness);
        loop {
            let lease = route.next().await?;
            let outcome = lease.during(work(&lease)).await;
            if let Some(answer) = route.settle(lease, outcome)? {
                return Ok(answer);
            }
        }
    }

    /// A command's change: one transaction on the primary, kept if `work` succeeds.
    async fn change<T>(
        &self,
        work: impl AsyncFnOnce(&Transaction<'_>) -> Result<T, AdminError>,
    ) -> Result<T, AdminError> {
        self.on_primary(async |lease| {
            let change = lease.begin().await?;
            let done = work(&change).await?;
            commit(change).await?;
            Ok(done)
        })
        .await
    }

    /// What a command wants to know, from the primary: one snapshot, however long it takes.
    async fn look<T>(
        &self,
        work: impl AsyncFnOnce(&Transaction<'_>) -> Result<T, AdminError>,
    ) -> Result<T, AdminError> {
        self.on_primary(async |lease| {
            let snapshot = lease.begin().await?;
            snapshot.batch_execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY").await?;
            let found = work(&snapshot).await?;
            snapshot.rollback().await?;
            Ok(found)
        })
        .await
    }

    /// A command's work on the primary, however long it takes, as long as that lives.
    async fn on_primary<T>(
        &self,
        work: impl AsyncFnOnce(&mut Lease<'_>) -> Result<T, AdminError>,
    ) -> Result<T, AdminError> {
        let mut lease = self.hosts.route_at_leisure(Freshness::Latest).next().await?;
        let host = lease.host();
        let done = tokio::select! {
            biased;
            done = work(&mut lease) => done?,
            () = host.is_lost() => {
                let why = format!("{} went away in the middle of the command", host.name);
                return Err(StoreError::Unreachable(why).into());
            }
        };
        lease.end();
        Ok(done)
    }
}

/// Commits. If the answer does not come, nobody knows.
async fn commit(transaction: Transaction<'_>) -> Result<(), AdminError> {
    transaction.commit().await.map_err(|error| match AdminError::from(error) {
        AdminError::Store(StoreError::Unreachable(_)) => AdminError::Unsure,
        other => other,
    })
}
