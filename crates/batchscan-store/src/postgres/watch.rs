//! Looks at one host over and over, on a connection of its own: whether it lives, what it is, how far behind.

use std::collections::VecDeque;
use std::mem::discriminant;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_postgres::{Client, Config, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::failure::{is_refusal, told};
use super::hosts::{CONNECT_WAIT, LAG_MAX, NOT_ASKED, Role, State};

/// How often a host is looked at.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(250);
/// A host that takes longer to say that it lives does not. With the above: within a second.
const LOOK_WAIT: Duration = Duration::from_millis(750);
/// Places of the primary that are remembered: more than it is asked for in the time that a standby may lag.
const MARKS_MAX: usize = 16;

/// Whether the host follows, on which timeline it writes, and where in the log it is.
const LOOK: &str = "
    SELECT pg_is_in_recovery(),
           CASE WHEN pg_is_in_recovery() THEN 0
                ELSE ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint END,
           (CASE WHEN pg_is_in_recovery() THEN coalesce(pg_last_wal_replay_lsn(), '0/0')
                 ELSE pg_current_wal_lsn() END - '0/0')::bigint";

/// The watch over one host.
pub(super) struct Watch {
    name: String,
    config: Config,
    tls: MakeRustlsConnect,
    state: watch::Sender<State>,
    primary: Arc<Mutex<PrimaryLog>>,
    following: Following,
}

impl Watch {
    pub(super) fn new(
        name: &str,
        config: &Config,
        tls: &MakeRustlsConnect,
        state: watch::Sender<State>,
        primary: Arc<Mutex<PrimaryLog>>,
    ) -> Self {
        let (name, config, tls) = (name.to_owned(), config.clone(), tls.clone());
        Self { name, config, tls, state, primary, following: Following::default() }
    }

    /// Watches until it is aborted.
    pub(super) async fn run(mut self) {
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
    async fn look_on(&mut self, client: &Client, serving: &mut JoinHandle<()>) -> String {
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

    fn role(&mut self, row: &Row, asked_at: Instant) -> Option<(Role, i64)> {
        let (follows, timeline): (bool, i64) = (row.try_get(0).ok()?, row.try_get(1).ok()?);
        let log_place: i64 = row.try_get(2).ok()?;
        let mut primary = self.primary.lock().unwrap_or_else(PoisonError::into_inner);
        if !follows {
            return Some((primary.note(timeline, log_place, asked_at), log_place));
        }
        let role = self.following.role(log_place, Instant::now(), &primary);
        if let Some(lags) = self.following.news_of_lag(role, &primary) {
            match lags {
                true => tracing::warn!(host = self.name, "database host lags: not read from"),
                false => tracing::info!(host = self.name, "database host is up to date again"),
            }
        }
        Some((role, log_place))
    }

    fn set_up(&self, role: Role, log_place: i64) {
        let was = match self.state.send_replace(State::Up { role, log_place }) {
            State::Up { role, .. } => Some(role),
            State::Down { .. } => None,
        };
        if was.is_some_and(|was| discriminant(&was) == discriminant(&role)) {
            return;
        }
        let (host, primary) = (&self.name, matches!(role, Role::Primary { .. }));
        match (was, role) {
            (_, Role::LeftBehind) => {
                tracing::warn!(host, "database host was replaced as the primary and does not know: not used");
            }
            (_, Role::Astray) => {
                tracing::warn!(host, "database host follows a history that was left behind: not used");
            }
            (None, _) => tracing::info!(host, primary, "database host is up"),
            (Some(_), _) => tracing::info!(host, primary, "database host changed its role"),
        }
    }

    fn set_down(&self, why: String, is_refusal: bool) {
        let (since, is_news) = match &*self.state.borrow() {
            State::Down { since, why, .. } => (*since, why == NOT_ASKED),
            State::Up { .. } => (Instant::now(), true),
        };
        if is_news {
            tracing::warn!(host = self.name, why, "database host is down");
        }
        self.state.send_replace(State::Down { since, why, is_refusal });
    }
}

/// Where the primary was in its log lately. One for all watches.
#[derive(Debug, Default)]
pub(super) struct PrimaryLog {
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

    /// Whether the primary, asked after that instant, had what a standby had then; `None` if it was not asked since.
    fn had(&self, place: i64, at: Instant) -> Option<bool> {
        self.marks.iter().find(|(_, asked_at)| *asked_at >= at).map(|(mark, _)| *mark >= place)
    }

    fn is_fresh(&self) -> bool {
        self.marks.back().is_some_and(|(_, at)| at.elapsed() < LAG_MAX / 2)
    }
}

/// What is known of a standby from its last look to the next.
#[derive(Debug, Default)]
struct Following {
    /// Where it was, and when that was known.
    last: Option<(i64, Instant)>,
    /// The timeline on which the primary was seen to have all that the standby has. A standby that had heard more than
    /// the one that was promoted cannot follow it, and would pass for current as long as it is ahead.
    confirmed_on: i64,
    /// Where it was when the primary did not have what it had.
    astray_at: Option<i64>,
    current_at: Option<Instant>,
    lags: bool,
}

impl Following {
    fn role(&mut self, place: i64, now: Instant, primary: &PrimaryLog) -> Role {
        match self.last.and_then(|(place, at)| Some((place, primary.had(place, at)?))) {
            // One that is astray is not confirmed by a primary that has come past it.
            Some((_, true)) if self.astray_at.is_none() => self.confirmed_on = primary.timeline,
            Some((place, false)) => (self.astray_at, self.confirmed_on) = (Some(place), 0),
            _ => {}
        }
        self.last = Some((place, now));
        if self.astray_at == Some(place) {
            return Role::Astray;
        }
        // It has moved since: it was set up anew.
        self.astray_at = None;
        let is_confirmed = self.confirmed_on == primary.timeline;
        self.current_at = is_confirmed.then(|| primary.current_at(place).or(self.current_at)).flatten();
        Role::Standby { current_at: self.current_at }
    }

    /// Whether it lags, if that is news. Without a primary nobody is behind it.
    fn news_of_lag(&mut self, role: Role, primary: &PrimaryLog) -> Option<bool> {
        let Role::Standby { current_at: Some(at) } = role else { return None };
        let lags = at.elapsed() >= LAG_MAX;
        (primary.is_fresh() && std::mem::replace(&mut self.lags, lags) != lags).then_some(lags)
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

    /// Decision 041.
    #[test]
    fn a_standby_that_is_ahead_of_a_promoted_one_is_astray_until_it_is_set_up_anew() {
        let (mut log, mut standby, start) = (PrimaryLog::default(), Following::default(), Instant::now());
        let at = |turn: u32| start + LOOK_EVERY * turn;
        let current_at = |at| Role::Standby { current_at: at };
        log.note(1, 500, at(0));
        assert_eq!(standby.role(500, at(1), &log), current_at(None), "not confirmed yet");
        log.note(1, 520, at(2));
        assert_eq!(standby.role(520, at(3), &log), current_at(Some(at(2))));
        // Another one is promoted that had heard less.
        log.note(2, 510, at(4));
        assert_eq!(standby.role(520, at(5), &log), Role::Astray);
        log.note(2, 530, at(6));
        assert_eq!(standby.role(520, at(7), &log), Role::Astray, "also when the primary has come past it");
        log.note(2, 540, at(8));
        assert_eq!(standby.role(535, at(9), &log), current_at(None), "set up anew");
        log.note(2, 550, at(10));
        assert_eq!(standby.role(550, at(11), &log), current_at(Some(at(10))));
    }
}
