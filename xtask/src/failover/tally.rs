//! Counts requests by their outcome.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Result, bail};
use batchscan_testbed::wait_until;

use super::lock::lock;
use crate::cluster::http::process_id;

/// Failures that are reported with their reason; more are only counted.
const REASONS_MAX: usize = 5;

/// Why a request failed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Failed {
    Status(u16),
    Broken(String),
    /// A long stream that broke after it had started: the request id.
    BrokenStream(String),
    Wrong(String),
}

/// The column of right responses: 200 or 304 with the right content.
pub(crate) const RIGHT: usize = 0;
/// The column of long streams through a node that was killed: the only requests that may fail.
pub(crate) const CUT: usize = 5;

/// The requests during one event.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Counts {
    /// The columns of the results: right, 503, other status, broken, wrong, cut.
    pub(crate) requests: [u64; 6],
    pub(crate) slowest: Duration,
    pub(crate) reasons: Vec<String>,
}

impl Counts {
    pub(crate) fn failures(&self) -> u64 {
        self.requests[RIGHT + 1..CUT].iter().sum()
    }
}

/// The counts of the current event, shared by all clients.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    counts: Mutex<Counts>,
    killed: Mutex<BTreeSet<String>>,
}

impl Tally {
    pub(crate) fn count(&self, path: &str, duration: Duration, result: Result<(), &Failed>) {
        let column = match result {
            Ok(()) => RIGHT,
            Err(Failed::Status(503)) => 1,
            Err(Failed::Status(_)) => 2,
            Err(Failed::BrokenStream(id)) if lock(&self.killed).contains(process_id(id)) => CUT,
            Err(Failed::BrokenStream(_) | Failed::Broken(_)) => 3,
            Err(Failed::Wrong(_)) => 4,
        };
        let mut counts = lock(&self.counts);
        counts.requests[column] += 1;
        counts.slowest = counts.slowest.max(duration);
        if let (Err(failed), true) = (result, column != CUT && counts.reasons.len() < REASONS_MAX) {
            counts.reasons.push(format!("{path}, after {:.3} s: {failed:?}", duration.as_secs_f64()));
        }
    }

    /// A node is about to be killed: from now on long streams through it may be cut.
    pub(crate) fn expect_kill(&self, process_id: String) {
        lock(&self.killed).insert(process_id);
    }

    /// Ends an event and returns its counts.
    pub(crate) fn take(&self) -> Counts {
        std::mem::take(&mut *lock(&self.counts))
    }

    /// Waits for more right responses.
    pub(crate) fn wait_for_right(&self, more: u64, timeout: Duration) -> Result<()> {
        let right = || lock(&self.counts).requests[RIGHT];
        let goal = right() + more;
        if !wait_until(timeout, || right() >= goal) {
            bail!("no {more} right responses in {timeout:?}: {:?}", lock(&self.counts).reasons);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_has_its_column_and_only_streams_through_killed_nodes_are_cut() {
        let tally = Tally::default();
        let stream = |id: &str| Failed::BrokenStream(id.to_owned());
        tally.count("/v1", Duration::ZERO, Err(&stream("aaaa-1")));
        tally.expect_kill("aaaa".to_owned());
        tally.count("/v1", Duration::ZERO, Ok(()));
        let (broken, wrong) = (Failed::Broken("reset".to_owned()), Failed::Wrong("a gap".to_owned()));
        for failed in
            [Failed::Status(503), Failed::Status(500), broken, wrong, stream("aaaa-2"), stream("bbbb-1")]
        {
            tally.count("/v1", Duration::ZERO, Err(&failed));
        }
        let counts = tally.take();
        assert_eq!(counts.requests, [1, 1, 1, 3, 1, 1]);
        assert_eq!((counts.failures(), counts.reasons.len()), (6, 5));
        assert_eq!(tally.take(), Counts::default());
    }
}
