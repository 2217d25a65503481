//! The hosts of a cluster: their connection pools, and which of them may serve a request.
//!
//! A monitor watches each host. A host that stops responding is known to be down within a second, and requests that wait for
//! it continue with another host at once. It is not used again until its monitor sees it respond.

use std::cmp::Reverse;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_postgres::Config;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::host_state::{CHECK_INTERVAL, CONNECT_TIMEOUT, Role, State, primary};
use super::monitor::{Monitor, PrimaryLog};
use crate::types::{Freshness, HostHealth, ReadFrom};

/// How long a request waits for a free connection.
const POOL_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a host may be down before a running command gives up.
const LOST_TIMEOUT: Duration = Duration::from_secs(15);

#[derive(Debug)]
pub(super) struct Host {
    pub(super) name: String,
    pub(super) pool: Pool,
    state: watch::Receiver<State>,
    monitor: JoinHandle<()>,
}

impl Drop for Host {
    fn drop(&mut self) {
        self.monitor.abort();
    }
}

impl Host {
    pub(super) fn is_standby(&self) -> bool {
        matches!(self.state.borrow().role(), Some(Role::Standby { .. }))
    }

    pub(super) async fn is_down(&self) {
        let mut state = self.state.clone();
        // If the monitor has ended, only the deadline counts.
        if state.wait_for(|state| !state.is_up()).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Completes when the host has been down for longer than a command waits. One failed check does not end an import.
    pub(super) async fn is_lost(&self) {
        loop {
            self.is_down().await;
            let mut state = self.state.clone();
            if timeout(LOST_TIMEOUT, state.wait_for(State::is_up)).await.is_err() {
                return;
            }
        }
    }
}

#[derive(Debug)]
pub(super) struct Hosts {
    pub(super) all: Vec<Host>,
    read_from: ReadFrom,
    turn: AtomicUsize,
    opened_at: Instant,
    pub(super) retries: AtomicU64,
}

impl Hosts {
    /// Starts the monitors.
    pub(super) fn start(
        hosts: &[(String, Config)],
        tls: &MakeRustlsConnect,
        read_from: ReadFrom,
        connections: usize,
    ) -> Result<Self, String> {
        let primary = Arc::new(Mutex::new(PrimaryLog::default()));
        let host = |(name, config): &(String, Config)| {
            let (sender, state) = watch::channel(State::Unknown { since: Instant::now() });
            let monitor = Monitor::new(name, config, tls, sender, primary.clone());
            let pool = pool(config, tls, connections)?;
            Ok(Host { name: name.clone(), pool, state, monitor: tokio::spawn(monitor.run()) })
        };
        let all = hosts.iter().map(host).collect::<Result<_, String>>()?;
        let (turn, retries) = (AtomicUsize::new(0), AtomicU64::new(0));
        Ok(Self { all, read_from, turn, opened_at: Instant::now(), retries })
    }

    /// The hosts that may serve a request, best first.
    pub(super) fn candidates(&self, freshness: Freshness) -> Vec<usize> {
        let states = self.states();
        let primary = primary(&states);
        if freshness == Freshness::Latest {
            return primary.into_iter().collect();
        }
        let is_readable = |index: &usize| states[*index].is_readable_standby(primary.is_some());
        let mut readable: Vec<usize> = (0..states.len()).filter(is_readable).collect();
        if self.read_from == ReadFrom::Any {
            readable.extend(primary);
        }
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % readable.len().max(1);
        readable.rotate_left(turn);
        match primary {
            // The lag is unknown: the standby that has received most comes first.
            None => readable.sort_by_key(|index| Reverse(states[*index].wal_position())),
            Some(primary) if self.read_from == ReadFrom::Standby => readable.push(primary),
            Some(_) => {}
        }
        readable
    }

    /// Since when no host is up, with the latest cause; `None` if a host is up.
    pub(super) fn outage(&self) -> Option<(Instant, String)> {
        let mut latest: Option<(Instant, String)> = None;
        for host in &self.all {
            let (since, cause) = match &*host.state.borrow() {
                State::Up { .. } => return None,
                State::Unknown { since } => (*since, "not checked yet".to_owned()),
                State::Down { since, cause, .. } => (*since, cause.clone()),
            };
            if latest.as_ref().is_none_or(|(at, _)| since > *at) {
                latest = Some((since, format!("{}: {cause}", host.name)));
            }
        }
        latest
    }

    /// The first host's error, if every host rejects our connections.
    pub(super) fn rejection(&self) -> Option<String> {
        let rejections = self.all.iter().map(|host| match &*host.state.borrow() {
            State::Down { cause, is_rejection: true, .. } => Some(cause.clone()),
            _ => None,
        });
        rejections.collect::<Option<Vec<_>>>()?.into_iter().next()
    }

    /// The roles of all hosts, for an error message.
    pub(super) fn describe_roles(&self) -> String {
        let describe = |host: &Host| {
            let role = match host.state.borrow().role() {
                Some(Role::Primary { .. }) => "primary",
                Some(Role::StalePrimary) => "stale primary",
                Some(Role::Standby { .. } | Role::Divergent) => "standby",
                None => "down",
            };
            format!("{} ({role})", host.name)
        };
        self.all.iter().map(describe).collect::<Vec<_>>().join(", ")
    }

    pub(super) fn health(&self) -> Vec<HostHealth> {
        let states = self.states();
        let primary = primary(&states);
        let health = |(index, (host, state)): (usize, (&Host, &State))| HostHealth {
            host: host.name.clone(),
            is_up: state.is_up(),
            is_primary: primary == Some(index),
            is_current: primary == Some(index) || state.is_readable_standby(primary.is_some()),
            takes_writes: state.takes_writes(),
            lag_secs: match state.role() {
                Some(Role::Standby { current_at }) if primary.is_some() => {
                    let lag = current_at.unwrap_or(self.opened_at).elapsed();
                    Some(lag.saturating_sub(CHECK_INTERVAL * 2).as_secs_f64())
                }
                _ => None,
            },
            connections: connections_in_use(&host.pool),
        };
        self.all.iter().zip(&states).enumerate().map(health).collect()
    }

    fn states(&self) -> Vec<State> {
        self.all.iter().map(|host| host.state.borrow().clone()).collect()
    }
}

fn pool(config: &Config, tls: &MakeRustlsConnect, connections: usize) -> Result<Pool, String> {
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = Manager::from_config(config.clone(), tls.clone(), recycling);
    let pool = Pool::builder(manager)
        .max_size(connections.max(1))
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(POOL_TIMEOUT))
        .create_timeout(Some(CONNECT_TIMEOUT))
        .recycle_timeout(Some(CONNECT_TIMEOUT));
    pool.build().map_err(|error| error.to_string())
}

fn connections_in_use(pool: &Pool) -> usize {
    let status = pool.status();
    status.size.saturating_sub(status.available)
}
