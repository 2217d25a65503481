//! The status file: one line that people and monitoring can read, also on a share.

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use batchscan_server::clock::Clock;
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
        let problem = self.problem.take().map_or_else(String::new, |problem| format!(", {problem}"));
        self.problem = Some(format!("stopped{problem}"));
        self.write();
    }

    fn write(&mut self) {
        let Self { imported, rejected, waiting, .. } = self;
        let ignored = match self.ignored {
            0 => String::new(),
            ignored => format!(", {ignored} left alone"),
        };
        let time = Clock::system().now().to_whole_secs();
        let state = match (&self.problem, &self.importing) {
            (Some(problem), _) => problem.clone(),
            (None, Some((name, since))) => format!("importing {name:?} for {} s", since.elapsed().as_secs()),
            (None, None) => "ok".into(),
        };
        let line =
            format!("{time} {state}: {imported} imported, {rejected} rejected, {waiting} waiting{ignored}\n");
        // If the folder is not writable, the log says so for the files.
        let _ = atomic_file::write(&self.path, line.as_bytes());
        self.written_at = Instant::now();
    }
}
