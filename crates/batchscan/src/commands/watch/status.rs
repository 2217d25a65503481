//! The status file: one line that people and monitoring can read, also on a share.

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use batchscan_server::clock::Clock;
use tokio::time::{Instant, sleep_until};

use crate::atomic_file;

/// An older line means that the watcher does not run.
const REFRESH_INTERVAL: Duration = Duration::from_secs(10);

pub(super) struct Status {
    path: PathBuf,
    written_at: Instant,
    /// Files since the start.
    delivered: u64,
    rejected: u64,
    waiting: usize,
    /// Why files wait.
    problem: Option<String>,
}

impl Status {
    pub(super) fn new(folder: &Path) -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let path = folder.join(format!("watch-{host}.status"));
        let mut status =
            Self { path, written_at: Instant::now(), delivered: 0, rejected: 0, waiting: 0, problem: None };
        status.write();
        status
    }

    pub(super) fn set_waiting(&mut self, waiting: usize) {
        if waiting != self.waiting {
            self.waiting = waiting;
            self.write();
        }
    }

    pub(super) fn count_delivered(&mut self) {
        self.delivered += 1;
        self.waiting = self.waiting.saturating_sub(1);
        self.write();
    }

    pub(super) fn count_rejected(&mut self) {
        self.rejected += 1;
        self.waiting = self.waiting.saturating_sub(1);
        self.write();
    }

    /// Logs the beginning and the end of an outage, not its changes.
    pub(super) fn set_problem(&mut self, problem: Option<String>) {
        match (&self.problem, &problem) {
            (None, Some(problem)) => tracing::warn!("{problem}; trying again"),
            (Some(_), None) => tracing::info!("delivering again"),
            _ => {}
        }
        if problem != self.problem {
            self.problem = problem;
            self.write();
        }
    }

    /// Rewrites the file from time to time until the work is done.
    pub(super) async fn refresh_during<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                result = &mut work => return result,
                () = sleep_until(self.written_at + REFRESH_INTERVAL) => self.write(),
            }
        }
    }

    fn write(&mut self) {
        let Self { delivered, rejected, waiting, .. } = self;
        let time = Clock::system().now().to_whole_secs();
        let state = self.problem.as_deref().unwrap_or("ok");
        let line = format!("{time} {state}: {delivered} delivered, {rejected} rejected, {waiting} waiting\n");
        // If the folder is not writable, the log says so for the files.
        let _ = atomic_file::write(&self.path, line.as_bytes());
        self.written_at = Instant::now();
    }
}
