//! The status file: one line that people and monitoring can read, also on a share.

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use batchscan_server::clock::Clock;
use batchscan_store::WatcherState;
use batchscan_store::platform::host_name;
use tokio::time::{Instant, sleep_until};

use crate::atomic_file;

/// An older line means that the watcher does not run.
const REFRESH_INTERVAL: Duration = Duration::from_secs(10);

pub(super) struct Status {
    path: PathBuf,
    written_at: Instant,
    /// Files since the start.
    imported: u64,
    rejected: u64,
    waiting: usize,
    /// Files in the folder that are left alone.
    ignored: usize,
    /// Why files wait.
    problem: Option<String>,
    is_stopped: bool,
    /// The file that is being imported, and since when.
    importing: Option<(String, Instant)>,
}

impl Status {
    pub(super) fn new(folder: &Path) -> Self {
        let path = folder.join(format!("watch-{}.status", host_name()));
        let (written_at, importing) = (Instant::now(), None);
        let mut status = Self {
            path,
            written_at,
            imported: 0,
            rejected: 0,
            waiting: 0,
            ignored: 0,
            problem: None,
            is_stopped: false,
            importing,
        };
        status.write();
        status
    }

    pub(super) fn set_files(&mut self, waiting: usize, ignored: usize) {
        if (waiting, ignored) != (self.waiting, self.ignored) {
            (self.waiting, self.ignored) = (waiting, ignored);
            self.write();
        }
    }

    pub(super) fn count_imported(&mut self) {
        self.imported += 1;
        self.waiting = self.waiting.saturating_sub(1);
        self.write();
    }

    pub(super) fn count_rejected(&mut self) {
        self.rejected += 1;
        self.waiting = self.waiting.saturating_sub(1);
        self.write();
    }

    pub(super) fn set_problem(&mut self, problem: Option<String>) {
        if problem == self.problem {
            return;
        }
        match &problem {
            Some(problem) => tracing::warn!("{problem}; trying again"),
            None => tracing::info!("importing again"),
        }
        self.problem = problem;
        self.write();
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

    /// Shows an import that takes long.
    pub(super) async fn during_import<T>(&mut self, name: &str, import: impl Future<Output = T>) -> T {
        self.importing = Some((name.to_owned(), Instant::now()));
        let result = self.refresh_during(import).await;
        self.importing = None;
        result
    }

    /// Shows that the watcher was stopped, besides why files wait.
    pub(super) fn stop(&mut self) {
        self.is_stopped = true;
        self.write();
    }

    /// For the list of watchers.
    pub(super) fn state(&self) -> WatcherState {
        match (self.is_stopped, &self.problem) {
            (true, _) => WatcherState::Stopped,
            (false, Some(_)) => WatcherState::Waiting,
            (false, None) => WatcherState::Running,
        }
    }

    /// Numbers of files, and why they wait.
    pub(super) fn detail(&self) -> String {
        let Self { imported, rejected, waiting, ignored, .. } = self;
        let ignored = if *ignored == 0 { String::new() } else { format!(", {ignored} left alone") };
        let files = format!("{imported} imported, {rejected} rejected, {waiting} waiting{ignored}");
        self.problem.as_ref().map_or(files.clone(), |problem| format!("{problem}: {files}"))
    }

    fn write(&mut self) {
        let time = Clock::system().now().to_whole_secs();
        let state = match (self.state(), &self.importing) {
            (WatcherState::Stopped, _) if self.problem.is_some() => "stopped, ".into(),
            (WatcherState::Stopped, _) => "stopped: ".into(),
            (WatcherState::Waiting, _) => String::new(),
            (WatcherState::Running, Some((name, since))) => {
                format!("importing {name:?} for {} s: ", since.elapsed().as_secs())
            }
            (WatcherState::Running, None) => "ok: ".into(),
        };
        // If the folder is not writable, the log says so for the files.
        let line = format!("{time} {state}{}\n", self.detail());
        let _ = atomic_file::write(&self.path, line.as_bytes());
        self.written_at = Instant::now();
    }
}
