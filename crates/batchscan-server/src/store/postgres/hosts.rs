//! The hosts of a URL: which of them live, which one is primary, how far the others are behind.
//!
//! Every host is watched over a connection of its own. A host that stops answering is known to be down within a
//! second, and whoever waits for it is told at once: a slow statement on a living host is waited for, a dead host
//! is not. A host that is down is not asked again until the watch sees it answer.

use std::collections::VecDeque;
use std::mem::discriminant;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_postgres::{Client, Config};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::failure::{is_refusal, told};
use crate::store::{Freshness, HostHealth, ReadFrom};

/// How often a host is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// A host that takes longer to say that it lives does not. With the above: within a second.
const LOOK_WAIT: Duration = Duration::from_millis(750);
/// How long a request waits for a free connection: past this the pool is exhausted.
const POOL_WAIT: Duration = Duration::from_secs(2);
/// How long a connection may take to be made.
const CONNECT_WAIT: Duration = Duration::from_secs(1);
/// How long a host may be down before a command that is under way on it gives up.
const LOST_AFTER: Duration = Duration::from_secs(15);
/// A standby that is further behind is not read from while the primary is up: a revocation has to hold everywhere
/// within five seconds (decision 010).
const LAG_MAX: Duration = Duration::from_secs(2);
/// Places of the primary that are remembered: more than it is asked for in the time that a standby may lag.
const MARKS_MAX: usize = 16;

/// What a host is to the others. Promotions raise the timeline on which a primary writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Takes writes. Of two that claim it, the later timeline is right: the other one was left behind.
    Primary { timeline: i64 },
    /// Takes writes and must not: another was promoted in its place, whether that one is up now or not.
    LeftBehind,
    /// Follows; was up to date at that instant, as far as is known.
    Standby { current_at: Option<Instant> },
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
            let state = State::Down { since: Instant::now(), why: "not asked yet".into(), is_refusal: false };
            let (sender, state) = watch::channel(state);
            let watching = Watch {
                name: name.clone(),
                config: config.clone(),
                tls: tls.clone(),
                state: sender,
                primary: primary.clone(),
            };
            let pool = pool(config, tls, connections)?;
            Ok(Host { name: name.clone(), pool, state, watching: tokio::spawn(watching.run()) })
        };
        let all = hosts.iter().map(host).collect::<Result<_, String>>()?;
        Ok(Self { all, read_from, turn: AtomicUsize::new(0), retries: AtomicU64::new(0) })
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

    pub(super) fn health(&self) -> Vec<HostHealth> {
        let states: Vec<State> = self.all.iter().map(|host| host.state.borrow().clone()).collect();
        let primary = primary_of(&states);
        let one = |(place, host): (usize, &Host)| HostHealth {
            host: host.name.clone(),
            is_up: matches!(states[place], State::Up { .. }),
            is_primary: primary == Some(place),
            lag_secs: match &states[place] {
                State::Up { role: Role::Standby { current_at: Some(at) }, .. } if primary.is_some() => {
                    at.elapsed().saturating_sub(LOOK_EVERY * 2).as_secs_f64()
                }
                _ => 0.0,
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

/// Looks at one host over and over.
struct Watch {
    name: String,
    config: Config,
    tls: MakeRustlsConnect,
    state: watch::Sender<State>,
    primary: Arc<Mutex<PrimaryLog>>,
}

/// Where the primary was in its log lately. One for all watches.
#[derive(Debug, Default)]
struct PrimaryLog {
    /// The latest timeline on which any host has taken writes.
    timeline: i64,
    /// Places, each with the instant at which it was asked for; the oldest first.
    marks: VecDeque<(i64, Instant)>,
}

impl PrimaryLog {
    /// Takes down where a host is that takes writes. Gives what that makes it.
    fn note(&mut self, timeline: i64, place: i64, at: Instant) -> Role {
        if timeline < self.timeline {
            return Role::LeftBehind;
        }
        if timeline > self.timeline {
            *self = Self { timeline, marks: VecDeque::new() };
        }
        if self.marks.len() == MARKS_MAX {
            self.marks.pop_front();
        }
        self.marks.push_back((place, at));
        Role::Primary { timeline }
    }

    /// The latest instant of which a standby at that place has all. Not only the last mark counts: while the primary
    /// is busy, who follows it closely is still a little behind that one.
    fn current_at(&self, place: i64) -> Option<Instant> {
        self.marks.iter().rev().find(|(mark, _)| *mark <= place).map(|(_, at)| *at)
    }
}

/// Whether the host follows, on which timeline it writes, and where in the log it is.
const LOOK: &str = "
    SELECT pg_is_in_recovery(),
           CASE WHEN pg_is_in_recovery() THEN 0
                ELSE ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint END,
           (CASE WHEN pg_is_in_recovery() THEN coalesce(pg_last_wal_replay_lsn(), '0/0')
                 ELSE pg_current_wal_lsn() END - '0/0')::bigint";

impl Watch {
    async fn run(self) {
        loop {
            match timeout(CONNECT_WAIT, self.config.connect(self.tls.clone())).await {
                Ok(Ok((client, connection))) => {
                    let mut serving = tokio::spawn(async move {
                        let _ = connection.await;
                    });
                    let why = self.look_on(&client, &mut serving).await;
                    serving.abort();
                    self.set_down(why, false);
                }
                Ok(Err(error)) => self.set_down(told(&error), is_refusal(&error)),
                Err(_) => self.set_down("no connection in time".into(), false),
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Looks until the host does not answer, and says why.
    async fn look_on(&self, client: &Client, serving: &mut JoinHandle<()>) -> String {
        loop {
            let asked_at = Instant::now();
            // Unprepared, so that every pooler passes it on.
            match timeout(LOOK_WAIT, client.query_typed(LOOK, &[])).await {
                Ok(Ok(rows)) => match rows.first().and_then(|row| self.role(row, asked_at)) {
                    Some((role, log_place)) => self.set_up(role, log_place),
                    None => return "an answer that cannot be read".into(),
                },
                Ok(Err(error)) => return told(&error),
                Err(_) => return "no answer in time".into(),
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                _ = &mut *serving => return "the connection was closed".into(),
            }
        }
    }

    fn role(&self, row: &tokio_postgres::Row, asked_at: Instant) -> Option<(Role, i64)> {
        let (follows, timeline): (bool, i64) = (row.try_get(0).ok()?, row.try_get(1).ok()?);
        let log_place: i64 = row.try_get(2).ok()?;
        let mut primary = self.primary.lock().unwrap_or_else(PoisonError::into_inner);
        if !follows {
            return Some((primary.note(timeline, log_place, asked_at), log_place));
        }
        let before = match &*self.state.borrow() {
            State::Up { role: Role::Standby { current_at }, .. } => *current_at,
            _ => None,
        };
        Some((Role::Standby { current_at: primary.current_at(log_place).or(before) }, log_place))
    }

    fn set_up(&self, role: Role, log_place: i64) {
        let before = self.state.send_replace(State::Up { role, log_place });
        if matches!(before, State::Up { role: was, .. } if discriminant(&was) == discriminant(&role)) {
            return;
        }
        let is_primary = matches!(role, Role::Primary { .. });
        tracing::info!(host = self.name, primary = is_primary, "database host is up");
        if role == Role::LeftBehind {
            tracing::warn!(
                host = self.name,
                "database host was replaced as the primary and does not know: not used"
            );
        }
    }

    fn set_down(&self, why: String, is_refusal: bool) {
        let since = match &*self.state.borrow() {
            State::Down { since, .. } => *since,
            State::Up { .. } => {
                tracing::warn!(host = self.name, why, "database host is down");
                Instant::now()
            }
        };
        self.state.send_replace(State::Down { since, why, is_refusal });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standby_close_behind_a_busy_primary_is_current_as_of_a_moment_ago() {
        let (mut log, start) = (PrimaryLog::default(), Instant::now());
        let at = |turn: u32| start + LOOK_EVERY * turn;
        assert_eq!(log.current_at(100), None, "no primary was seen");
        for turn in 0..40 {
            log.note(1, i64::from(turn) * 10, at(turn));
        }
        assert_eq!(log.current_at(390), Some(at(39)));
        assert_eq!(log.current_at(389), Some(at(38)));
        assert_eq!(log.current_at(3), None, "too long ago to matter");
        assert!(at(40) - at(40 - u32::try_from(MARKS_MAX).unwrap()) > LAG_MAX);
    }

    #[test]
    fn who_writes_on_an_older_timeline_was_left_behind_and_measures_nobody() {
        let (mut log, now) = (PrimaryLog::default(), Instant::now());
        assert_eq!(log.note(1, 500, now), Role::Primary { timeline: 1 });
        assert_eq!(log.note(2, 600, now), Role::Primary { timeline: 2 });
        assert_eq!(log.note(1, 510, now), Role::LeftBehind);
        assert_eq!(
            log.current_at(550),
            None,
            "it has what the old primary had, and not what the new one has"
        );
        assert_eq!(log.current_at(600), Some(now));
    }
}
