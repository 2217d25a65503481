//! Checks one host periodically, on its own connection: whether it responds, its role, its replication lag.

use std::collections::VecDeque;
use std::mem::discriminant;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_postgres::{Client, Config, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::failure::{describe, is_rejection};
use super::host_state::{CHECK_INTERVAL, CONNECT_TIMEOUT, LAG_MAX, Role, State};

/// The timeout of a check. With the interval: a failure is detected within a second.
const CHECK_TIMEOUT: Duration = Duration::from_millis(750);
/// Positions of the primary to remember: more than there are checks during the allowed lag.
const POSITIONS_MAX: usize = 16;

/// Whether the host is a standby, the timeline it writes, and its position in the write-ahead log.
const CHECK: &str = "
    SELECT pg_is_in_recovery(),
           CASE WHEN pg_is_in_recovery() THEN 0
                ELSE ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint END,
           (CASE WHEN pg_is_in_recovery() THEN coalesce(pg_last_wal_replay_lsn(), '0/0')
                 ELSE pg_current_wal_lsn() END - '0/0')::bigint";

pub(super) struct Monitor {
    name: String,
    config: Config,
    tls: MakeRustlsConnect,
    state: watch::Sender<State>,
    primary: Arc<Mutex<PrimaryLog>>,
    standby: StandbyLog,
}

impl Monitor {
    pub(super) fn new(
        name: &str,
        config: &Config,
        tls: &MakeRustlsConnect,
        state: watch::Sender<State>,
        primary: Arc<Mutex<PrimaryLog>>,
    ) -> Self {
        let (name, config, tls) = (name.to_owned(), config.clone(), tls.clone());
        Self { name, config, tls, state, primary, standby: StandbyLog::default() }
    }

    /// Runs until it is aborted.
    pub(super) async fn run(mut self) {
        loop {
            match timeout(CONNECT_TIMEOUT, self.config.connect(self.tls.clone())).await {
                Ok(Ok((client, connection))) => {
                    let mut driver = tokio::spawn(async move {
                        let _ = connection.await;
                    });
                    let cause = self.check_until_failure(&client, &mut driver).await;
                    driver.abort();
                    self.set_down(cause, false);
                }
                Ok(Err(error)) => self.set_down(describe(&error), is_rejection(&error)),
                Err(_) => self.set_down("timed out connecting".into(), false),
            }
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }

    /// Checks until the host does not respond, and returns the cause.
    async fn check_until_failure(&mut self, client: &Client, driver: &mut JoinHandle<()>) -> String {
        loop {
            let sent_at = Instant::now();
            // Not prepared, so that it works behind every pooler.
            match timeout(CHECK_TIMEOUT, client.query_typed(CHECK, &[])).await {
                Ok(Ok(rows)) => match rows.first().and_then(|row| self.role(row, sent_at)) {
                    Some((role, wal_position)) => self.set_up(role, wal_position),
                    None => return "unexpected response".into(),
                },
                Ok(Err(error)) => return describe(&error),
                Err(_) => return "timed out waiting for a response".into(),
            }
            tokio::select! {
                () = tokio::time::sleep(CHECK_INTERVAL) => {}
                _ = &mut *driver => return "the connection was closed".into(),
            }
        }
    }

    fn role(&mut self, row: &Row, sent_at: Instant) -> Option<(Role, i64)> {
        let (is_standby, timeline): (bool, i64) = (row.try_get(0).ok()?, row.try_get(1).ok()?);
        let wal_position: i64 = row.try_get(2).ok()?;
        let mut primary = self.primary.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_standby {
            return Some((primary.record(timeline, wal_position, sent_at), wal_position));
        }
        let role = self.standby.role(wal_position, Instant::now(), &primary);
        if let Some(is_lagging) = self.standby.lag_change(role, &primary) {
            match is_lagging {
                true => tracing::warn!(host = self.name, "database standby lags: not used for reads"),
                false => tracing::info!(host = self.name, "database standby is up to date again"),
            }
        }
        Some((role, wal_position))
    }

    fn set_up(&self, role: Role, wal_position: i64) {
        let was = self.state.send_replace(State::Up { role, wal_position }).role();
        if was.is_some_and(|was| discriminant(&was) == discriminant(&role)) {
            return;
        }
        let (host, primary) = (&self.name, matches!(role, Role::Primary { .. }));
        match (was, role) {
            (_, Role::StalePrimary) => tracing::warn!(host, "ignoring stale primary"),
            (_, Role::Divergent) => tracing::warn!(host, "ignoring standby on a divergent timeline"),
            (None, _) => tracing::info!(host, primary, "database host is up"),
            (Some(_), _) => tracing::info!(host, primary, "database host changed its role"),
        }
    }

    fn set_down(&self, cause: String, is_rejection: bool) {
        let (since, is_new) = match &*self.state.borrow() {
            State::Down { since, .. } => (*since, false),
            State::Unknown { since } => (*since, true),
            State::Up { .. } => (Instant::now(), true),
        };
        if is_new {
            tracing::warn!(host = self.name, cause, "database host is down");
        }
        self.state.send_replace(State::Down { since, cause, is_rejection });
    }
}

/// The recent positions of the primary in its write-ahead log. Shared by all monitors.
#[derive(Debug, Default)]
pub(super) struct PrimaryLog {
    /// The highest timeline on which any host has accepted writes.
    timeline: i64,
    /// Positions with the times of their queries, oldest first.
    positions: VecDeque<(i64, Instant)>,
}

impl PrimaryLog {
    /// Records the position of a host that accepts writes, and returns its role.
    fn record(&mut self, timeline: i64, position: i64, at: Instant) -> Role {
        if timeline < self.timeline {
            return Role::StalePrimary;
        }
        if timeline > self.timeline {
            *self = Self { timeline, positions: VecDeque::new() };
        }
        if self.positions.len() == POSITIONS_MAX {
            self.positions.pop_front();
        }
        self.positions.push_back((position, at));
        Role::Primary { timeline }
    }

    /// The latest time at which a standby at that position had everything. While the primary is busy, even a close standby
    /// is a little behind the last position, so earlier ones count, too.
    fn current_at(&self, position: i64) -> Option<Instant> {
        self.positions.iter().rev().find(|(known, _)| *known <= position).map(|(_, at)| *at)
    }

    /// Whether the primary, when queried after that time, was at least at that position; `None` if there was no query since.
    fn has_reached(&self, position: i64, at: Instant) -> Option<bool> {
        self.positions.iter().find(|(_, sent_at)| *sent_at >= at).map(|(known, _)| *known >= position)
    }

    fn is_fresh(&self) -> bool {
        self.positions.back().is_some_and(|(_, at)| at.elapsed() < LAG_MAX / 2)
    }
}

/// The history of a standby.
#[derive(Debug, Default)]
struct StandbyLog {
    /// Its last position, and when that was known.
    last: Option<(i64, Instant)>,
    /// The timeline on which the primary was seen to have everything the standby has. A standby that had received more than
    /// the promoted host cannot follow it, and would look current as long as it is ahead.
    confirmed_on: i64,
    /// Its position when the primary did not have everything it had.
    divergent_at: Option<i64>,
    current_at: Option<Instant>,
    is_lagging: bool,
}

impl StandbyLog {
    fn role(&mut self, position: i64, now: Instant, primary: &PrimaryLog) -> Role {
        match self.last.and_then(|(last, at)| Some((last, primary.has_reached(last, at)?))) {
            // A primary that has passed a divergent standby does not confirm it.
            Some((_, true)) if self.divergent_at.is_none() => self.confirmed_on = primary.timeline,
            Some((last, false)) => (self.divergent_at, self.confirmed_on) = (Some(last), 0),
            _ => {}
        }
        self.last = Some((position, now));
        if self.divergent_at == Some(position) {
            return Role::Divergent;
        }
        // It has moved, so it was rebuilt.
        self.divergent_at = None;
        let is_confirmed = self.confirmed_on == primary.timeline;
        self.current_at = is_confirmed.then(|| primary.current_at(position).or(self.current_at)).flatten();
        Role::Standby { current_at: self.current_at }
    }

    /// Whether it lags, if that has changed. Without a primary, the lag is unknown.
    fn lag_change(&mut self, role: Role, primary: &PrimaryLog) -> Option<bool> {
        let Role::Standby { current_at: Some(at) } = role else { return None };
        let is_lagging = at.elapsed() >= LAG_MAX;
        (primary.is_fresh() && std::mem::replace(&mut self.is_lagging, is_lagging) != is_lagging)
            .then_some(is_lagging)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standby_close_behind_a_busy_primary_is_current_as_of_the_previous_check() {
        let (mut log, start) = (PrimaryLog::default(), Instant::now());
        let at = |turn: u32| start + CHECK_INTERVAL * turn;
        assert_eq!(log.current_at(100), None, "no primary yet");
        for turn in 0..40 {
            log.record(1, i64::from(turn) * 10, at(turn));
        }
        assert_eq!(log.current_at(390), Some(at(39)));
        assert_eq!(log.current_at(389), Some(at(38)));
        assert_eq!(log.current_at(3), None, "too old to be remembered");
        assert!(at(40) - at(40 - u32::try_from(POSITIONS_MAX).unwrap()) > LAG_MAX);
    }

    #[test]
    fn a_primary_on_an_older_timeline_is_stale_and_not_recorded() {
        let (mut log, now) = (PrimaryLog::default(), Instant::now());
        assert_eq!(log.record(1, 500, now), Role::Primary { timeline: 1 });
        assert_eq!(log.record(2, 600, now), Role::Primary { timeline: 2 });
        assert_eq!(log.record(1, 510, now), Role::StalePrimary);
        assert_eq!(log.current_at(550), None, "it has the data of the old primary, but not of the new one");
        assert_eq!(log.current_at(600), Some(now));
    }

    /// Decision 041.
    #[test]
    fn a_standby_ahead_of_the_promoted_host_is_divergent_until_it_is_rebuilt() {
        let (mut log, mut standby, start) = (PrimaryLog::default(), StandbyLog::default(), Instant::now());
        let at = |turn: u32| start + CHECK_INTERVAL * turn;
        let current_at = |at| Role::Standby { current_at: at };
        log.record(1, 500, at(0));
        assert_eq!(standby.role(500, at(1), &log), current_at(None), "not confirmed yet");
        log.record(1, 520, at(2));
        assert_eq!(standby.role(520, at(3), &log), current_at(Some(at(2))));
        // Another host is promoted that had received less.
        log.record(2, 510, at(4));
        assert_eq!(standby.role(520, at(5), &log), Role::Divergent);
        log.record(2, 530, at(6));
        assert_eq!(standby.role(520, at(7), &log), Role::Divergent, "even when the primary has passed it");
        log.record(2, 540, at(8));
        assert_eq!(standby.role(535, at(9), &log), current_at(None), "rebuilt");
        log.record(2, 550, at(10));
        assert_eq!(standby.role(550, at(11), &log), current_at(Some(at(10))));
    }
}
