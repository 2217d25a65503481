//! The route of one request: tries one host after another until one responds or the deadline has passed.

use std::future::Future;
use std::ops::Deref;
use std::sync::atomic::Ordering;
use std::time::Duration;

use deadpool_postgres::{ClientWrapper, Object, Transaction};
use tokio::time::{Instant, sleep_until};

use super::failure::Failure;
use super::hosts::{Host, Hosts};
use crate::errors::{AdminError, StoreError};
use crate::types::Freshness;

/// The deadline of a request: a response takes at most 5 s (decision 028).
const READ_TIMEOUT: Duration = Duration::from_secs(4);
/// The same for the primary, which may be tried after a standby that took a second.
const LATEST_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a request waits for a host if all have just gone down. During a longer outage it fails at once.
const OUTAGE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a command waits for a primary: a failover takes some seconds.
const PRIMARY_TIMEOUT: Duration = Duration::from_secs(15);
/// The pause after all hosts were tried.
const ROUND_PAUSE: Duration = Duration::from_millis(50);
/// Requests that may wait for a connection to one host. More would miss their deadline.
const QUEUED_MAX: usize = 1_024;
/// How long a command's statement may take, and how long it waits for another command that changes the same
/// organisation, in seconds. 0 means no limit.
#[derive(Clone, Copy)]
pub(super) struct Timeouts {
    pub(super) statement: u64,
    pub(super) lock: u64,
}

impl Timeouts {
    pub(super) const COMMAND: Self = Self { statement: 0, lock: 60 };
}

/// The route of one request.
pub(super) struct Route<'a> {
    hosts: &'a Hosts,
    freshness: Freshness,
    deadline: Instant,
    /// How long an outage may have lasted.
    outage_timeout: Duration,
    /// The hosts tried in this round.
    tried: Vec<usize>,
    attempts: u64,
    last: Option<Failure>,
}

impl Hosts {
    pub(super) fn route(&self, freshness: Freshness) -> Route<'_> {
        let timeout = if freshness == Freshness::Latest { LATEST_TIMEOUT } else { READ_TIMEOUT };
        self.route_within(freshness, timeout, OUTAGE_TIMEOUT)
    }

    /// The route of a command, which has more time.
    pub(super) fn command_route(&self, freshness: Freshness) -> Route<'_> {
        self.route_within(freshness, PRIMARY_TIMEOUT, PRIMARY_TIMEOUT)
    }

    fn route_within(&self, freshness: Freshness, timeout: Duration, outage_timeout: Duration) -> Route<'_> {
        let deadline = Instant::now() + timeout;
        Route { hosts: self, freshness, deadline, outage_timeout, tried: Vec::new(), attempts: 0, last: None }
    }
}

impl<'a> Route<'a> {
    /// Waits for something, until the deadline of the request.
    pub(super) async fn in_time<T>(&self, future: impl Future<Output = T>) -> Result<T, StoreError> {
        let late = |_| StoreError::Unreachable("too many reads of this organisation".into());
        tokio::time::timeout_at(self.deadline, future).await.map_err(late)
    }

    /// A connection to the next host.
    pub(super) async fn next(&mut self) -> Result<Lease<'a>, StoreError> {
        loop {
            if Instant::now() >= self.deadline {
                return Err(self.timed_out());
            }
            let candidates = self.hosts.candidates(self.freshness);
            let Some(index) = candidates.into_iter().find(|index| !self.tried.contains(index)) else {
                self.end_round().await?;
                continue;
            };
            self.tried.push(index);
            self.attempts += 1;
            if self.attempts > 1 {
                self.hosts.retries.fetch_add(1, Ordering::Relaxed);
            }
            match lease(&self.hosts.all[index], self.deadline).await {
                Ok(lease) => return Ok(lease),
                Err(failure) => self.last = Some(failure),
            }
        }
    }

    /// Ends an attempt. Returns `None` if another host should be tried.
    pub(super) fn finish<T>(
        &mut self,
        mut lease: Lease<'_>,
        result: Result<T, Failure>,
    ) -> Result<Option<T>, StoreError> {
        match result {
            Ok(done) => {
                lease.is_clean = true;
                Ok(Some(done))
            }
            // Only this standby may be damaged, or it does not have a migration yet.
            Err(Failure::Broken(why)) if lease.host.is_standby() => {
                self.prefer_primary(Failure::Broken(why));
                Ok(None)
            }
            Err(Failure::Broken(why)) => Err(StoreError::Broken(why)),
            Err(Failure::Rejected(why)) => {
                // The response was read completely, and a snapshot is sent with its COMMIT.
                lease.is_clean = true;
                Err(StoreError::Rejected(why))
            }
            Err(Failure::Lagging) => {
                // The connection can be reused.
                lease.is_clean = true;
                self.prefer_primary(Failure::Lagging);
                Ok(None)
            }
            Err(unavailable) => {
                self.last = Some(unavailable);
                Ok(None)
            }
        }
    }

    /// Continues with the primary, if there is one: the standby may be wrong.
    fn prefer_primary(&mut self, failure: Failure) {
        self.last = Some(failure);
        if !self.hosts.candidates(Freshness::Latest).is_empty() {
            self.freshness = Freshness::Latest;
        }
    }

    /// Waits before the next round, unless the outage has lasted too long.
    async fn end_round(&mut self) -> Result<(), StoreError> {
        if let Some((since, why)) = self.hosts.outage() {
            self.last = Some(Failure::Unavailable(why));
            if since.elapsed() > self.outage_timeout {
                return Err(self.timed_out());
            }
        }
        self.tried.clear();
        sleep_until(self.deadline.min(Instant::now() + ROUND_PAUSE)).await;
        Ok(())
    }

    fn timed_out(&mut self) -> StoreError {
        match self.last.take() {
            Some(failure) => failure.into(),
            None if self.freshness == Freshness::Latest => {
                StoreError::Unreachable(format!("no host is a primary: {}", self.hosts.describe_roles()))
            }
            None => StoreError::Unreachable("no host is up".into()),
        }
    }
}

async fn lease(host: &Host, deadline: Instant) -> Result<Lease<'_>, Failure> {
    if host.pool.status().waiting >= QUEUED_MAX {
        return Err(Failure::Unavailable("too many requests are waiting for a connection".into()));
    }
    let client = tokio::select! {
        biased;
        client = host.pool.get() => client.map_err(|error| Failure::Unavailable(format!("{}: {error}", host.name)))?,
        () = host.is_down() => return Err(Failure::Unavailable(format!("{} went down", host.name))),
        () = sleep_until(deadline) => return Err(Failure::Unavailable("timed out waiting for a connection".into())),
    };
    Ok(Lease { host, client: Some(client), deadline, is_clean: false })
}

/// A borrowed connection. Returns to its pool only if the response was read completely.
pub(super) struct Lease<'a> {
    host: &'a Host,
    client: Option<Object>,
    deadline: Instant,
    is_clean: bool,
}

impl<'a> Lease<'a> {
    pub(super) fn host(&self) -> &'a Host {
        self.host
    }

    /// Runs `work` until the host goes down or the deadline passes.
    pub(super) async fn run<T>(&self, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        tokio::select! {
            biased;
            done = work => done,
            () = self.host.is_down() => Err(Failure::Unavailable(format!("{} went down", self.host.name))),
            () = sleep_until(self.deadline) => Err(Failure::Unavailable(format!("{}: timed out waiting for a response", self.host.name))),
        }
    }

    /// Begins a command's transaction.
    pub(super) async fn begin(&mut self, timeouts: Timeouts) -> Result<Transaction<'_>, AdminError> {
        let client =
            self.client.as_mut().ok_or_else(|| StoreError::Broken("the connection was released".into()))?;
        let transaction = client.transaction().await?;
        let Timeouts { statement, lock } = timeouts;
        let timeouts = format!(
            "SET LOCAL statement_timeout = '{statement}s'; SET LOCAL lock_timeout = '{lock}s';
             SET LOCAL idle_in_transaction_session_timeout = 0"
        );
        transaction.batch_execute(&timeouts).await?;
        Ok(transaction)
    }

    /// Returns the connection to its pool.
    pub(super) fn release(mut self) {
        self.is_clean = true;
    }
}

impl Deref for Lease<'_> {
    type Target = ClientWrapper;

    #[expect(clippy::expect_used, reason = "the connection is only taken when the lease is dropped")]
    fn deref(&self) -> &ClientWrapper {
        self.client.as_ref().expect("the lease was dropped")
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let Some(client) = self.client.take() else { return };
        if !self.is_clean {
            // A response may still be pending: the next user must not wait for it.
            drop(Object::take(client));
        }
    }
}
