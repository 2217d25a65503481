//! `batchscan watch`: delivers the files of a folder.
//!
//! | module | owns |
//! |---|---|
//! | `folder` | which files are complete, and where they are moved |
//! | `target` | delivers a file to the database or to the operator API |
//! | `status` | the status file |
//!
//! A file is first moved to `delivering/`, then delivered with the hash of its content as the key, then moved to `done/`
//! or `failed/`. After a failure it is delivered again: a key that was used before changes nothing.

mod folder;
mod status;
mod target;

use std::collections::HashSet;
use std::io::{self, ErrorKind};
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use self::folder::{FileVersion, Folder, FoundFile};
use self::status::Status;
use self::target::{Counts, Delivery, Outcome, Target};
use super::context::shutdown_signal;
use super::import::describe_rejection;
use crate::args::{Watch, unknown_variables};
use crate::log;
use crate::terminal::print;

/// Waits before failed deliveries are repeated: the first one, and the longest.
const RETRY_WAIT_MIN: Duration = Duration::from_secs(1);
const RETRY_WAIT_MAX: Duration = Duration::from_secs(30);
/// How long a delivery may take after the signal to stop. It is repeated at the next start.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);

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
    Watcher { folder, target, is_checked: false, failing: HashSet::new(), status, retry, stop }
        .run(command.poll)
        .await;
    Ok(())
}

/// Why a file is not delivered yet.
enum Failure {
    /// Another watcher has moved it.
    Gone,
    /// This file cannot be delivered now. Others may be.
    File(String),
    /// No file can be delivered now.
    Outage(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::NotFound => Failure::Gone,
            _ => Failure::File(error.to_string()),
        }
    }
}

/// The result of one look at the folder.
enum Round {
    /// Every complete file was delivered or rejected.
    Complete,
    /// Files of earlier rounds still wait.
    Waiting,
    /// The problem of the first file that failed, and how many other files failed. All were tried.
    FileFailed(String, usize),
    /// No file can be delivered now.
    Outage(String),
}

/// When failed deliveries are repeated.
struct Retry {
    at: Instant,
    wait: Duration,
    /// Whether new files wait as well.
    is_outage: bool,
}

impl Retry {
    fn new() -> Self {
        Self { at: Instant::now(), wait: Duration::ZERO, is_outage: false }
    }
}

struct Watcher {
    folder: Folder,
    target: Target,
    /// Whether the target has accepted the settings.
    is_checked: bool,
    /// Files whose failure was logged.
    failing: HashSet<String>,
    status: Status,
    retry: Retry,
    stop: watch::Receiver<bool>,
}

impl Watcher {
    async fn run(mut self, poll: Duration) {
        while !*self.stop.borrow() {
            let is_due = Instant::now() >= self.retry.at;
            match self.deliver_all(is_due).await {
                Round::Complete => {
                    self.retry = Retry::new();
                    self.failing.clear();
                    self.status.set_problem(None);
                }
                Round::Waiting => {}
                Round::FileFailed(problem, 0) => self.postpone(is_due, false, problem),
                Round::FileFailed(problem, others) => {
                    self.postpone(is_due, false, format!("{problem} (and {others} more)"));
                }
                Round::Outage(problem) => {
                    if !self.retry.is_outage {
                        tracing::warn!("{problem}; trying again");
                    }
                    self.postpone(is_due, true, problem);
                }
            }
            let stopped = self.stop.wait_for(|stop| *stop);
            let _ = self.status.refresh_during(timeout(poll, stopped)).await;
        }
    }

    fn postpone(&mut self, is_due: bool, is_outage: bool, problem: String) {
        self.retry.is_outage = is_outage;
        if is_due {
            self.retry.wait = (self.retry.wait * 2).clamp(RETRY_WAIT_MIN, RETRY_WAIT_MAX);
            self.retry.at = Instant::now() + self.retry.wait;
        }
        self.status.set_problem(Some(problem));
    }

    async fn deliver_all(&mut self, is_due: bool) -> Round {
        let files = match self.folder.list() {
            Ok(files) => files,
            Err(error) => return Round::Outage(format!("cannot use the folder: {error}")),
        };
        self.status.set_waiting(files.len());
        if !self.is_checked {
            if !is_due {
                return Round::Waiting;
            }
            match self.target.check().await {
                Ok(()) => self.is_checked = true,
                Err(error) => return Round::Outage(format!("waiting for {}: {error}", self.target.address)),
            }
        }
        let mut round = Round::Complete;
        for file in files {
            let is_postponed = !is_due && (file.is_claimed || self.retry.is_outage);
            if is_postponed || !file.is_complete {
                if file.is_claimed && matches!(round, Round::Complete) {
                    round = Round::Waiting;
                }
                continue;
            }
            if *self.stop.borrow() {
                return Round::Waiting;
            }
            match self.deliver(&file).await {
                Ok(()) | Err(Failure::Gone) => {}
                Err(Failure::File(error)) => {
                    let problem = format!("cannot deliver {:?}: {error}", file.name);
                    if self.failing.insert(file.name) {
                        tracing::warn!("{problem}; trying again");
                    }
                    round = match round {
                        Round::FileFailed(first, others) => Round::FileFailed(first, others + 1),
                        _ => Round::FileFailed(problem, 0),
                    };
                }
                Err(Failure::Outage(error)) => {
                    return Round::Outage(format!("waiting for {}: {error}", self.target.address));
                }
            }
        }
        round
    }

    /// Delivers a file and moves it to `done` or `failed`. Leaves a file that changes meanwhile for a later round.
    async fn deliver(&mut self, file: &FoundFile) -> Result<(), Failure> {
        let claimed = self.folder.claim(file)?;
        // It may have been written to since the list was made.
        let Some(delivery) = Delivery::open(&claimed, file).await? else { return Ok(()) };
        let hash = delivery.hash;
        let mut stop = self.stop.clone();
        let is_overdue = async move {
            let _ = stop.wait_for(|stop| *stop).await;
            tokio::time::sleep(STOP_TIMEOUT).await;
        };
        let result = tokio::select! {
            result = self.status.deliver(&file.name, self.target.deliver(delivery)) => result,
            () = is_overdue => return Err(Failure::Outage("stopped before it responded".into())),
        };
        if FileVersion::read(&claimed)? != Some(file.version) {
            return Ok(());
        }
        match result? {
            Outcome::Delivered(Counts { new, corrected, unchanged, warnings, first_warning }) => {
                self.folder.move_to_done(&claimed, &hash)?;
                let name = &file.name;
                tracing::info!(file = name, new, corrected, unchanged, warnings, first_warning, "delivered");
                self.status.count_delivered();
            }
            Outcome::Repeated => {
                self.folder.move_to_done(&claimed, &hash)?;
                tracing::info!(file = file.name, "delivered before");
                self.status.count_delivered();
            }
            Outcome::Rejected(error) => {
                let (nothing, advice) =
                    ("Nothing was imported", "fix the file and move it back to the watched folder");
                let (mut lines, summary) = describe_rejection(&file.name, &error, nothing, advice);
                lines.push(summary);
                let lines = lines.iter().map(|line| line.replace(char::is_control, " ")).collect::<Vec<_>>();
                self.folder.move_to_failed(&claimed, &hash, &lines.join("\n"))?;
                tracing::warn!(file = file.name, reason = lines[0], "rejected");
                self.status.count_rejected();
            }
        }
        Ok(())
    }
}
