//! Counts every request by how it ended. One act of a run is counted at a time.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::cluster::http::mark;

/// Failures that are told in words; the rest is only counted.
const TOLD_MAX: usize = 5;
const POLL: Duration = Duration::from_millis(10);

/// How a request ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// 200 or 304, and what it said was right.
    Right,
    /// 503.
    Unavailable,
    /// Any other status.
    Status(u16),
    /// No whole answer.
    Broken(String),
    /// A long stream that broke after it had begun; its request id.
    BrokenStream(String),
    /// A whole answer that says something wrong.
    Wrong(String),
}

/// The requests of one act.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Counts {
    pub(crate) right: u64,
    pub(crate) unavailable: u64,
    pub(crate) other: u64,
    pub(crate) broken: u64,
    pub(crate) wrong: u64,
    /// Streams that were cut because the node they flowed through was killed: the one thing that may fail.
    pub(crate) cut: u64,
    pub(crate) slowest: Duration,
    /// Some of the failures, in words.
    pub(crate) told: Vec<String>,
}

impl Counts {
    /// All that must not be.
    pub(crate) fn failures(&self) -> u64 {
        self.unavailable + self.other + self.broken + self.wrong
    }

    /// Both together.
    pub(crate) fn and(mut self, more: &Self) -> Self {
        self.right += more.right;
        self.unavailable += more.unavailable;
        self.other += more.other;
        self.broken += more.broken;
        self.wrong += more.wrong;
        self.cut += more.cut;
        self.slowest = self.slowest.max(more.slowest);
        self.told.extend(more.told.iter().cloned());
        self
    }
}

/// The counts of the act under way, shared by all clients.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    counts: Mutex<Counts>,
    killed: Mutex<BTreeSet<String>>,
}

impl Tally {
    /// Counts a request.
    pub(crate) fn note(&self, what: &str, took: Duration, outcome: &Outcome) {
        let is_excused = matches!(outcome, Outcome::BrokenStream(id) if self.was_killed(id));
        let mut counts = lock(&self.counts);
        counts.slowest = counts.slowest.max(took);
        match outcome {
            Outcome::Right => counts.right += 1,
            Outcome::Unavailable => counts.unavailable += 1,
            Outcome::Status(_) => counts.other += 1,
            Outcome::BrokenStream(_) if is_excused => counts.cut += 1,
            Outcome::BrokenStream(_) | Outcome::Broken(_) => counts.broken += 1,
            Outcome::Wrong(_) => counts.wrong += 1,
        }
        if *outcome != Outcome::Right && !is_excused && counts.told.len() < TOLD_MAX {
            counts.told.push(format!("{what}, after {:.3} s: {outcome:?}", took.as_secs_f64()));
        }
    }

    /// Say this before a node is killed: streams that flow through it may break from now on.
    pub(crate) fn node_is_killed(&self, process_mark: &str) {
        lock(&self.killed).insert(process_mark.to_owned());
    }

    /// The counts of the act that ends with this.
    pub(crate) fn take(&self) -> Counts {
        std::mem::take(&mut *lock(&self.counts))
    }

    /// Waits until so many more requests were answered rightly.
    pub(crate) fn wait_for_right(&self, more: u64, limit: Duration) -> Result<()> {
        let right = || lock(&self.counts).right;
        let (goal, deadline) = (right() + more, Instant::now() + limit);
        while right() < goal {
            if Instant::now() > deadline {
                bail!("{more} requests were not answered in {limit:?}; {:?}", lock(&self.counts).told);
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    fn was_killed(&self, request_id: &str) -> bool {
        lock(&self.killed).contains(mark(request_id))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_is_counted_in_its_own_column() {
        let tally = Tally::default();
        let broken = Outcome::Broken("reset".to_owned());
        let wrong = Outcome::Wrong("a gap".to_owned());
        for outcome in [Outcome::Right, Outcome::Unavailable, Outcome::Status(500), broken, wrong] {
            tally.note("a page", Duration::from_millis(2), &outcome);
        }
        let counts = tally.take();
        assert_eq!((counts.right, counts.failures(), counts.cut), (1, 4, 0));
        assert_eq!(counts.told.len(), 4);
        assert_eq!(tally.take(), Counts::default());
    }

    #[test]
    fn only_a_stream_through_a_killed_node_is_excused() {
        let tally = Tally::default();
        let stream = |id: &str| Outcome::BrokenStream(id.to_owned());
        tally.note("v1", Duration::ZERO, &stream("aaaa-1"));
        tally.node_is_killed("aaaa");
        tally.note("v1", Duration::ZERO, &stream("aaaa-2"));
        tally.note("v1", Duration::ZERO, &stream("bbbb-2"));
        tally.note("v2", Duration::ZERO, &Outcome::Broken("reset".to_owned()));
        let counts = tally.take();
        assert_eq!((counts.cut, counts.broken), (1, 3));
    }
}
