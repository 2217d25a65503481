//! The hosts of a URL: which of them live, which one is primary, how far the others are behind.
//!
//! Every host is watched (`watch.rs`). A host that stops answering is known to be down within a second, and whoever
//! waits for it is told at once: a slow statement on a living host is waited for, a dead host is not. A host that is
//! down is not asked again until the watch sees it answer.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_postgres::Config;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::watch::{LOOK_EVERY, PrimaryLog, Watch};
use crate::{Freshness, HostHealth, ReadFrom};

/// How long a request waits for a free connection: past this the pool is exhausted.
const POOL_WAIT: Duration = Duration::from_secs(2);
/// How long a connection may take to be made.
pub(super) const CONNECT_WAIT: Duration = Duration::from_secs(1);
/// How long a host may be down before a command that is under way on it gives up.
const LOST_AFTER: Duration = Duration::from_secs(15);
/// A standby that is further behind is not read from while the primary is up: a revocation has to hold everywhere
/// within five seconds (decision 010).
pub(super) const LAG_MAX: Duration = Duration::from_secs(2);
/// What is said of a host before the first look.
pub(super) const NOT_ASKED: &str = "not asked yet";

/// What a host is to the others. Promotions raise the timeline on which a primary writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Takes writes. Of two that claim it, the later timeline is right: the other one was left behind.
    Primary { timeline: i64 },
    /// Takes writes and must not: another was promoted in its place, whether that one is up now or not.
    LeftBehind,
    /// Follows; was up to date at that instant, as far as is known.
    Standby { current_at: Option<Instant> },
    /// Follows a history that the primary does not share: it had heard more than the one that was promoted.
    Astray,
}

/// What the watch knows of a host.
#[derive(Clone, Debug)]
pub(super) enum State {
    Up { role: Role, log_place: i64 },
    Down { since: Instant, why: String, is_refusal: bool },
}

/// One host.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) name: String,
    pub(super) pool: Pool,
    pub(super) state: watch::Receiver<State>,
    watching: JoinHandle<()>,
}

impl Drop for Host {
    fn drop(&mut self) {
        self.watching.abort();
    }
}

impl Host {
    pub(super) fn is_standby(&self) -> bool {
        matches!(*self.state.borrow(), State::Up { role: Role::Standby { .. }, .. })
    }

    /// Done once the watch finds the host down.
    pub(super) async fn went_down(&self) {
        let mut state = self.state.clone();
        // A watch that ended says nothing any more; then the deadline decides.
        if state.wait_for(|state| matches!(state, State::Down { .. })).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Done once the host was down for longer than a command is ready to wait. One missed look does not end an import.
    pub(super) async fn is_lost(&self) {
        loop {
            self.went_down().await;
            let mut state = self.state.clone();
            let back = state.wait_for(|state| matches!(state, State::Up { .. }));
            if timeout(LOST_AFTER, back).await.is_err() {
                return;
            }
        }
    }
}

/// All hosts of a URL.
#[derive(Debug)]
pub(super) struct Hosts {
    pub(super) all: Vec<Host>,
    read_from: ReadFrom,
    turn: AtomicUsize,
    opened_at: Instant,
    pub(super) retries: AtomicU64,
}

impl Hosts {
    /// Begins to watch every host.
    pub(super) fn watch(
        hosts: &[(String, Config)],
        tls: &MakeRustlsConnect,
        read_from: ReadFrom,
        connections: usize,
    ) -> Result<Self, String> {
        let primary = Arc::new(Mutex::new(PrimaryLog::default()));
        let host = |(name, config): &(String, Config)| {
            let state = State::Down { since: Instant::now(), why: NOT_ASKED.into(), is_refusal: false };
            let (sender, state) = watch::channel(state);
            let watching = Watch::new(name, config, tls, sender, primary.clone());
            let pool = pool(config, tls, connections)?;
            Ok(Host { name: name.clone(), pool, state, watching: tokio::spawn(watching.run()) })
        };
        let all = hosts.iter().map(host).collect::<Result<_, String>>()?;
        let (turn, retries) = (AtomicUsize::new(0), AtomicU64::new(0));
        Ok(Self { all, read_from, turn, opened_at: Instant::now(), retries })
    }

    /// The hosts that may answer, best first.
    pub(super) fn candidates(&self, freshness: Freshness) -> Vec<usize> {
        let states: Vec<State> = self.all.iter().map(|host| host.state.borrow().clone()).collect();
        let primary = primary_of(&states);
        if freshness == Freshness::Latest {
            return primary.into_iter().collect();
        }
        let mut readable: Vec<usize> =
            (0..states.len()).filter(|place| is_readable(&states[*place], primary)).collect();
        if self.read_from == ReadFrom::Any {
            readable.extend(primary);
        }
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % readable.len().max(1);
        readable.rotate_left(turn);
        match primary {
            // Nobody can tell how far they are behind: the one that has heard most comes first.
            None => readable.sort_by_key(|place| std::cmp::Reverse(log_place(&states[*place]))),
            Some(primary) if self.read_from == ReadFrom::Standby => readable.push(primary),
            Some(_) => {}
        }
        readable
    }

    /// Since when no host is up, and what the last one said. `None` if one is.
    pub(super) fn outage(&self) -> Option<(Instant, String)> {
        let mut last: Option<(Instant, String)> = None;
        for host in &self.all {
            match &*host.state.borrow() {
                State::Up { .. } => return None,
                State::Down { since, why, .. } if last.as_ref().is_none_or(|(at, _)| since > at) => {
                    last = Some((*since, format!("{}: {why}", host.name)));
                }
                State::Down { .. } => {}
            }
        }
        last
    }

    /// Whether every host answered, and refused.
    pub(super) fn refusal(&self) -> Option<String> {
        let refusals = self.all.iter().map(|host| match &*host.state.borrow() {
            State::Down { why, is_refusal: true, .. } => Some(why.clone()),
            _ => None,
        });
        refusals.collect::<Option<Vec<_>>>().and_then(|whys| whys.into_iter().next())
    }

    /// What each host is, in words.
    pub(super) fn roll_call(&self) -> String {
        let one = |host: &Host| {
            let what = match &*host.state.borrow() {
                State::Up { role: Role::Primary { .. }, .. } => "is the primary",
                State::Up { role: Role::LeftBehind, .. } => "was replaced",
                State::Up { role: Role::Standby { .. } | Role::Astray, .. } => "is a standby",
                State::Down { .. } => "is down",
            };
            format!("{} {what}", host.name)
        };
        self.all.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    pub(super) fn health(&self) -> Vec<HostHealth> {
        let states: Vec<State> = self.all.iter().map(|host| host.state.borrow().clone()).collect();
        let primary = primary_of(&states);
        let one = |(place, host): (usize, &Host)| HostHealth {
            host: host.name.clone(),
            is_up: matches!(states[place], State::Up { .. }),
            is_primary: primary == Some(place),
            is_current: primary == Some(place) || is_readable(&states[place], primary),
            takes_writes: matches!(
                states[place],
                State::Up { role: Role::Primary { .. } | Role::LeftBehind, .. }
            ),
            lag_secs: match &states[place] {
                State::Up { role: Role::Standby { current_at }, .. } if primary.is_some() => {
                    let behind = current_at.unwrap_or(self.opened_at).elapsed();
                    Some(behind.saturating_sub(LOOK_EVERY * 2).as_secs_f64())
                }
                _ => None,
            },
            connections: in_use(&host.pool),
        };
        self.all.iter().enumerate().map(one).collect()
    }
}

fn pool(config: &Config, tls: &MakeRustlsConnect, connections: usize) -> Result<Pool, String> {
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = Manager::from_config(config.clone(), tls.clone(), recycling);
    let pool = Pool::builder(manager)
        .max_size(connections.max(1))
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(POOL_WAIT))
        .create_timeout(Some(CONNECT_WAIT))
        .recycle_timeout(Some(CONNECT_WAIT));
    pool.build().map_err(|error| error.to_string())
}

fn in_use(pool: &Pool) -> usize {
    let status = pool.status();
    status.size.saturating_sub(status.available)
}

fn primary_of(states: &[State]) -> Option<usize> {
    let timeline = |place: &usize| match states[*place] {
        State::Up { role: Role::Primary { timeline }, .. } => timeline,
        _ => 0,
    };
    let claims = |place: &usize| matches!(states[*place], State::Up { role: Role::Primary { .. }, .. });
    (0..states.len()).filter(claims).max_by_key(timeline)
}

/// Whether a host is a standby to read from.
fn is_readable(state: &State, primary: Option<usize>) -> bool {
    match state {
        State::Up { role: Role::Standby { current_at }, .. } => {
            primary.is_none() || current_at.is_some_and(|at| at.elapsed() < LAG_MAX)
        }
        _ => false,
    }
}

fn log_place(state: &State) -> i64 {
    match state {
        State::Up { log_place, .. } => *log_place,
        State::Down { .. } => 0,
    }
}
