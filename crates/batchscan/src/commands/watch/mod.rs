//! `batchscan watch`: imports the files of a folder.
//!
//! | module | owns |
//! |---|---|
//! | `folder` | which files are complete, and where they are moved |
//! | `target` | imports a file into the database, or through the operator API |
//! | `status` | the status file |
//!
//! A file is first moved to `importing/`, then imported with the hash of its content as the key, then moved to `done/`
//! or `failed/`. After a failure it is imported again: a key that was used before changes nothing.
//!
//! Newer files wait for it, because one of them may correct it. This holds after a kill as well: the file in `importing/`
//! keeps its place in the order. An import of it that the service has not finished by then has the same key, so that it
//! cannot undo the correction.

mod folder;
mod status;
mod target;

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use batchscan_client::ImportedCounts;
use batchscan_formats::read::ReadError;
use batchscan_store::WatcherState;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use self::folder::{FileVersion, Folder, FoundFile};
use self::status::Status;
use self::target::{ClaimedFile, Outcome, Target};
use super::context::shutdown_signal;
use super::import_messages::describe_rejection;
use crate::args::{Watch, unknown_variables};
use crate::log;
use crate::terminal::print;

/// Waits before failed imports are repeated: the first one, and the longest.
const RETRY_WAIT_MIN: Duration = Duration::from_secs(1);
const RETRY_WAIT_MAX: Duration = Duration::from_secs(30);
/// How long an import may take after the signal to stop. It is repeated at the next start.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);
/// How often the watcher reports to the database or the service: if nothing changes, and after a change or a failure.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);
const REPORT_INTERVAL_MIN: Duration = Duration::from_secs(5);

pub(crate) async fn run(command: Watch) -> anyhow::Result<()> {
    log::start("watch", command.log_format)?;
    unknown_variables().iter().for_each(|warning| tracing::warn!("{warning}"));
    let mut folder = Folder::new(&command.folder, command.stable);
    if !command.folder.is_dir() {
        bail!("there is no folder {}; create it first", command.folder.display());
    }
    folder.list().with_context(|| format!("cannot watch {}", command.folder.display()))?;
    let target = Target::open(&command).await?;
    let signal = shutdown_signal()?;
    let (sender, stop) = watch::channel(false);
    tokio::spawn(async move {
        signal.await;
        let _ = sender.send(true);
    });
    let (status, retry) = (Status::new(&command.folder), Retry::new());
    print(&format!("watching {} for \"{}\"\n", command.folder.display(), command.org))?;
    let path = std::path::absolute(&command.folder).unwrap_or(command.folder);
    Watcher { path, folder, target, is_checked: false, status, reported: None, tried_at: None, retry, stop }
        .run(command.poll)
        .await;
    Ok(())
}

/// Why a file is not imported yet.
enum Failure {
    /// It was written to, or another watcher has moved it.
    Changed,
    /// It cannot be imported now.
    Temporary(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::NotFound => Failure::Changed,
            _ => Failure::Temporary(error.to_string()),
        }
    }
}

/// The result of one look at the folder.
enum Round {
    /// Every complete file was imported or rejected.
    Complete,
    /// A file of an earlier round still waits.
    Waiting,
    /// Why the first file, and so every file, has to wait.
    Failed(String),
}

/// When a failed import is repeated.
struct Retry {
    at: Instant,
    wait: Duration,
}

impl Retry {
    fn new() -> Self {
        Self { at: Instant::now(), wait: Duration::ZERO }
    }

    fn is_due(&self) -> bool {
        Instant::now() >= self.at
    }

    fn postpone(&mut self) {
        self.wait = (self.wait * 2).clamp(RETRY_WAIT_MIN, RETRY_WAIT_MAX);
        self.at = Instant::now() + self.wait;
    }
}

struct Watcher {
    path: PathBuf,
    folder: Folder,
    target: Target,
    /// Whether the target has accepted the settings.
    is_checked: bool,
    status: Status,
    /// What was reported last.
    reported: Option<WatcherState>,
    /// When a report was last tried.
    tried_at: Option<Instant>,
    retry: Retry,
    stop: watch::Receiver<bool>,
}

impl Watcher {
    async fn run(mut self, poll: Duration) {
        while !*self.stop.borrow() {
            match self.import_all().await {
                Round::Complete => {
                    self.retry = Retry::new();
                    self.status.set_problem(None);
                }
                Round::Waiting => {}
                Round::Failed(problem) => self.status.set_problem(Some(problem)),
            }
            self.report_if_due().await;
            let stopped = self.stop.wait_for(|stop| *stop);
            let _ = self.status.refresh_during(timeout(poll, stopped)).await;
        }
        self.status.stop();
        self.report().await;
    }

    async fn report_if_due(&mut self) {
        let is_known = self.reported == Some(self.status.state());
        let interval = if is_known { REPORT_INTERVAL } else { REPORT_INTERVAL_MIN };
        if !*self.stop.borrow() && self.tried_at.is_none_or(|at| at.elapsed() >= interval) {
            self.report().await;
        }
    }

    async fn report(&mut self) {
        let (state, detail) = (self.status.state(), self.status.detail());
        let report = self.target.report(&self.path, state, &detail);
        let reported = self.status.refresh_during(report).await;
        match &reported {
            Ok(()) => self.reported = Some(state),
            Err(error) => tracing::debug!(error, "cannot report to {}", self.target.address),
        }
        self.tried_at = Some(Instant::now());
    }

    /// Imports the complete files, up to the first one that may be imported later.
    async fn import_all(&mut self) -> Round {
        let files = match self.folder.list() {
            Ok(files) => files,
            Err(error) => return Round::Failed(format!("cannot use the folder: {error}")),
        };
        self.status.set_files(files.len(), self.folder.ignored());
        if !self.retry.is_due() {
            return Round::Waiting;
        }
        if !self.is_checked {
            if let Err(error) = self.target.check().await {
                self.retry.postpone();
                return Round::Failed(format!("waiting for {}: {error}", self.target.address));
            }
            self.is_checked = true;
        }
        let mut files = files.into_iter();
        while let Some(file) = files.next() {
            if !file.is_complete {
                let is_claimed = file.is_claimed || files.any(|file| file.is_claimed);
                return if is_claimed { Round::Waiting } else { Round::Complete };
            }
            if *self.stop.borrow() {
                return Round::Waiting;
            }
            match self.import(&file).await {
                Ok(()) => {
                    self.retry = Retry::new();
                    self.status.set_problem(None);
                    self.report_if_due().await;
                }
                Err(Failure::Changed) => return Round::Waiting,
                Err(Failure::Temporary(error)) => {
                    self.retry.postpone();
                    let (name, address) = (file.name, &self.target.address);
                    return Round::Failed(format!("waiting to import {name:?} into {address}: {error}"));
                }
            }
        }
        Round::Complete
    }

    /// Imports a file, unless it changes meanwhile.
    async fn import(&mut self, file: &FoundFile) -> Result<(), Failure> {
        let claimed = self.folder.claim(file)?;
        let content = ClaimedFile::open(&claimed, file).await?;
        let hash = content.hash;
        let mut stop = self.stop.clone();
        let is_overdue = async move {
            let _ = stop.wait_for(|stop| *stop).await;
            tokio::time::sleep(STOP_TIMEOUT).await;
        };
        let result = tokio::select! {
            result = self.status.during_import(&file.name, self.target.import(content)) => result,
            never = self.target.report_import(&self.path, &file.name) => match never {},
            () = is_overdue => return Err(Failure::Temporary("stopped before it responded".into())),
        };
        if FileVersion::read(&claimed)? != Some(file.version) {
            return Err(Failure::Changed);
        }
        Ok(self.finish(&claimed, &hash, &file.name, result?)?)
    }

    /// Moves a file to `done` or `failed`.
    fn finish(&mut self, claimed: &Path, hash: &[u8; 32], name: &str, outcome: Outcome) -> io::Result<()> {
        let reason = match outcome {
            Outcome::Imported(ImportedCounts { new, corrected, unchanged, warnings, messages }) => {
                self.folder.move_to_done(claimed, hash)?;
                tracing::info!(file = name, new, corrected, unchanged, warnings, "imported");
                for warning in messages {
                    tracing::warn!(file = name, warning, "imported with a warning");
                }
                self.status.count_imported();
                return Ok(());
            }
            Outcome::Repeated => {
                self.folder.move_to_done(claimed, hash)?;
                tracing::info!(file = name, "imported before, so nothing was changed");
                self.status.count_imported();
                return Ok(());
            }
            Outcome::Invalid(error) => describe_errors(name, &error, &self.target.mapping_name()),
            Outcome::Refused(error) => vec![format!(
                "cannot import {name} into {}: {error}. Nothing was imported; when this is fixed, move the file back to the \
                 watched folder",
                self.target.address
            )],
        };
        let reason: Vec<String> = reason.iter().map(|line| line.replace(char::is_control, " ")).collect();
        self.folder.move_to_failed(claimed, hash, &reason.join("\n"))?;
        tracing::warn!(file = name, reason = reason[0], "rejected");
        self.status.count_rejected();
        Ok(())
    }
}

/// A line for each error, and the summary.
fn describe_errors(name: &str, error: &ReadError, mapping: &str) -> Vec<String> {
    let advice = format!("fix the file or {mapping}, and move it back to the watched folder");
    let (mut lines, summary) = describe_rejection(name, error, "Nothing was imported", &advice);
    lines.push(summary);
    lines
}
