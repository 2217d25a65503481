//! The way of one request over the hosts: from the best to the next, until one has answered or time is up.

use std::future::Future;
use std::ops::Deref;
use std::sync::atomic::Ordering;
use std::time::Duration;

use deadpool_postgres::{ClientWrapper, Object, Transaction};
use tokio::time::{Instant, sleep_until};

use super::failure::Failure;
use super::hosts::{Host, Hosts};
use crate::{AdminError, Freshness, StoreError};

/// How long a request may look for an answer (decision 028: answered within 5 s).
const READ_WAIT: Duration = Duration::from_secs(4);
/// The same for what only the primary can answer. It is asked after a standby was, which may have taken a second.
const LATEST_WAIT: Duration = Duration::from_secs(3);
/// How long a request waits for the first host to come back, if all went down a moment ago. A longer outage is
/// answered at once.
const OUTAGE_WAIT: Duration = Duration::from_secs(2);
/// How long a command waits for a primary: a failover takes some seconds.
const PRIMARY_WAIT: Duration = Duration::from_secs(15);
/// Between two rounds over the hosts.
const ROUND_PAUSE: Duration = Duration::from_millis(50);
/// Requests that may wait for a connection of one host: past this the answer would come too late anyway.
const WAITING_MAX: usize = 1_024;
/// How long a command waits for another one that writes to the same organisation.
const LOCK_WAIT_SECS: u32 = 60;

/// One request's way.
pub(super) struct Route<'a> {
    hosts: &'a Hosts,
    freshness: Freshness,
    deadline: Instant,
    /// How long an outage may have lasted already.
    outage_wait: Duration,
    /// Hosts that were tried in this round.
    tried: Vec<usize>,
    attempts: u64,
    last: Option<Failure>,
}

impl Hosts {
    /// The way of a request.
    pub(super) fn route(&self, freshness: Freshness) -> Route<'_> {
        let wait = if freshness == Freshness::Latest { LATEST_WAIT } else { READ_WAIT };
        self.route_within(freshness, wait, OUTAGE_WAIT)
    }

    /// The way of a command, which has more time.
    pub(super) fn route_at_leisure(&self, freshness: Freshness) -> Route<'_> {
        self.route_within(freshness, PRIMARY_WAIT, PRIMARY_WAIT)
    }

    fn route_within(&self, freshness: Freshness, wait: Duration, outage_wait: Duration) -> Route<'_> {
        let deadline = Instant::now() + wait;
        Route { hosts: self, freshness, deadline, outage_wait, tried: Vec::new(), attempts: 0, last: None }
    }
}

impl<'a> Route<'a> {
    /// A connection to the next host.
    pub(super) async fn next(&mut self) -> Result<Lease<'a>, StoreError> {
        loop {
            if Instant::now() >= self.deadline {
                return Err(self.out_of_time());
            }
            let candidates = self.hosts.candidates(self.freshness);
            let Some(place) = candidates.into_iter().find(|place| !self.tried.contains(place)) else {
                self.end_round().await?;
                continue;
            };
            self.tried.push(place);
            self.attempts += 1;
            if self.attempts > 1 {
                self.hosts.retries.fetch_add(1, Ordering::Relaxed);
            }
            match lease(&self.hosts.all[place], self.deadline).await {
                Ok(lease) => return Ok(lease),
                Err(failure) => self.last = Some(failure),
            }
        }
    }

    /// The answer; or `None` if another host is to be asked.
    pub(super) fn settle<T>(
        &mut self,
        mut lease: Lease<'_>,
        outcome: Result<T, Failure>,
    ) -> Result<Option<T>, StoreError> {
        match outcome {
            Ok(answer) => {
                lease.is_clean = true;
                Ok(Some(answer))
            }
            // A standby may be the only one that is damaged, or not have heard of a migration yet.
            Err(Failure::Broken(why)) if lease.host.is_standby() => {
                self.ask_the_primary(Failure::Broken(why));
                Ok(None)
            }
            Err(Failure::Broken(why)) => Err(StoreError::Broken(why)),
            Err(Failure::Behind) => {
                // The connection is sound.
                lease.is_clean = true;
                self.ask_the_primary(Failure::Behind);
                Ok(None)
            }
            Err(away) => {
                self.last = Some(away);
                Ok(None)
            }
        }
    }

    /// After what a standby said: the primary knows better, if there is one.
    fn ask_the_primary(&mut self, said: Failure) {
        self.last = Some(said);
        if !self.hosts.candidates(Freshness::Latest).is_empty() {
            self.freshness = Freshness::Latest;
        }
    }

    /// Every host was tried, or none is up: waits a moment, if there is hope.
    async fn end_round(&mut self) -> Result<(), StoreError> {
        if let Some((since, why)) = self.hosts.outage() {
            self.last = Some(Failure::Away(why));
            if since.elapsed() > self.outage_wait {
                return Err(self.out_of_time());
            }
        }
        self.tried.clear();
        sleep_until(self.deadline.min(Instant::now() + ROUND_PAUSE)).await;
        Ok(())
    }

    fn out_of_time(&mut self) -> StoreError {
        match self.last.take() {
            Some(failure) => failure.into(),
            None if self.freshness == Freshness::Latest => {
                StoreError::Unreachable(format!("no host is a primary: {}", self.hosts.roll_call()))
            }
            None => StoreError::Unreachable("no host is up".into()),
        }
    }
}

async fn lease(host: &Host, deadline: Instant) -> Result<Lease<'_>, Failure> {
    if host.pool.status().waiting >= WAITING_MAX {
        return Err(Failure::Away("too many requests wait for a connection".into()));
    }
    let client = tokio::select! {
        biased;
        client = host.pool.get() => client.map_err(|error| Failure::Away(format!("{}: {error}", host.name)))?,
        () = host.went_down() => return Err(Failure::Away(format!("{} went down", host.name))),
        () = sleep_until(deadline) => return Err(Failure::Away("no connection in time".into())),
    };
    Ok(Lease { host, client: Some(client), deadline, is_clean: false })
}

/// A connection on loan. Goes back to its pool only if what was asked was answered to the end.
pub(super) struct Lease<'a> {
    host: &'a Host,
    client: Option<Object>,
    deadline: Instant,
    is_clean: bool,
}

impl<'a> Lease<'a> {
    /// The host that the connection is to.
    pub(super) fn host(&self) -> &'a Host {
        self.host
    }

    /// Waits for `work` as long as the host lives and time is left.
    pub(super) async fn during<T>(
        &self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        tokio::select! {
            biased;
            done = work => done,
            () = self.host.went_down() => Err(Failure::Away(format!("{} went down", self.host.name))),
            () = sleep_until(self.deadline) => Err(Failure::Away(format!("{}: no answer in time", self.host.name))),
        }
    }

    /// A transaction of a command, which may take its time, but does not wait for ever for other commands.
    pub(super) async fn begin(&mut self) -> Result<Transaction<'_>, AdminError> {
        // Nothing else is read from this connection: a broken transaction must not go back to the pool.
        let client = self.client.as_mut().ok_or_else(|| StoreError::Broken("a lease has ended".into()))?;
        let transaction = client.transaction().await?;
        let patience = format!(
            "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '{LOCK_WAIT_SECS}s';
             SET LOCAL idle_in_transaction_session_timeout = 0"
        );
        transaction.batch_execute(&patience).await?;
        Ok(transaction)
    }

    /// Lets the connection go back to its pool.
    pub(super) fn end(mut self) {
        self.is_clean = true;
    }
}

impl Deref for Lease<'_> {
    type Target = ClientWrapper;

    #[expect(clippy::expect_used, reason = "the connection is there until the lease is dropped")]
    fn deref(&self) -> &ClientWrapper {
        self.client.as_ref().expect("a lease that was dropped")
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let Some(client) = self.client.take() else { return };
        if !self.is_clean {
            // An answer may still be under way on it: the next user must not wait for that.
            drop(Object::take(client));
        }
    }
}
