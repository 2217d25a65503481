//! The state of a host, as its monitor reports it.

use std::time::Duration;

use tokio::time::Instant;

pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// A standby with more lag is not read while the primary is up: a revocation must take effect everywhere within five
/// seconds (decision 010).
pub(super) const LAG_MAX: Duration = Duration::from_secs(2);
pub(super) const CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// The role of a host in the cluster. A promotion increases the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Accepts writes. If there are two, the one with the higher timeline is right.
    Primary { timeline: i64 },
    /// Accepts writes, but another host was promoted in its place.
    StalePrimary,
    /// Follows the primary. `current_at` is the last time at which it is known to have had everything.
    Standby { current_at: Option<Instant> },
    /// Follows a timeline that the primary does not share: it had received more than the promoted host.
    Divergent,
}

#[derive(Clone, Debug)]
pub(super) enum State {
    /// Not checked yet.
    Unknown { since: Instant },
    /// Responds. `wal_position` is its position in the write-ahead log.
    Up { role: Role, wal_position: i64 },
    /// Does not respond, or rejects connections.
    Down { since: Instant, cause: String, is_rejection: bool },
}

impl State {
    pub(super) fn is_up(&self) -> bool {
        matches!(self, State::Up { .. })
    }

    pub(super) fn role(&self) -> Option<Role> {
        match self {
            State::Up { role, .. } => Some(*role),
            State::Unknown { .. } | State::Down { .. } => None,
        }
    }

    /// Whether it accepts writes, rightly or not.
    pub(super) fn takes_writes(&self) -> bool {
        matches!(self.role(), Some(Role::Primary { .. } | Role::StalePrimary))
    }

    /// Whether it is a standby that may be read. Without a primary, the lag is unknown and does not matter.
    pub(super) fn is_readable_standby(&self, has_primary: bool) -> bool {
        match self.role() {
            Some(Role::Standby { current_at }) => {
                !has_primary || current_at.is_some_and(|at| at.elapsed() < LAG_MAX)
            }
            _ => false,
        }
    }

    pub(super) fn wal_position(&self) -> i64 {
        match self {
            State::Up { wal_position, .. } => *wal_position,
            State::Unknown { .. } | State::Down { .. } => 0,
        }
    }
}

pub(super) fn primary(states: &[State]) -> Option<usize> {
    let timeline = |(index, state): (usize, &State)| match state.role() {
        Some(Role::Primary { timeline }) => Some((timeline, index)),
        _ => None,
    };
    states.iter().enumerate().filter_map(timeline).max().map(|(_, index)| index)
}
