//! `batchscan mirror`.

use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use batchscan_client::{Batch, Changes, Error, WAIT_MAX};
use indicatif::ProgressBar;
use serde_json::json;

use super::context::shutdown_signal;
use crate::args::{Mirror, MirrorOutput, usage_error};
use crate::connection::{self, Service};
use crate::mirror::{MirrorChanges, MirrorDatabase};
use crate::numbers::grouped;
use crate::progress::progress_bar;
use crate::terminal::{note, print, print_once};

/// How often everything may be read again without being read to the end.
const RESTARTS_MAX: u32 = 3;
/// Pause after a response without changes that came early, for example from a service that is stopping.
const EARLY_PAUSE: Duration = Duration::from_secs(1);

const RESTART_NOTE: &str =
    "note: the service cannot continue from the last position; reading everything again";

pub(crate) async fn run(mut command: Mirror) -> anyhow::Result<()> {
    if command.since.is_some() && !matches!(command.output, MirrorOutput::Stdout) {
        usage_error("mirror", "'--since' requires '--output -'").exit();
    }
    if command.follow {
        // It runs unattended, and outlives a service or a proxy that is down for a night.
        command.connection.retry_for.get_or_insert(Duration::MAX);
    }
    let profile = connection::resolve(&command.connection)?;
    let bar = progress_bar("", "{human_pos} batches{wide_msg}");
    let service = connection::connect(&profile, &command.connection, &bar)?;
    let mut stop = pin!(shutdown_signal()?);
    // Before a target is created.
    tokio::select! {
        signed_in = service.client.sign_in() => signed_in?,
        () = &mut stop => bail!("interrupted"),
    }
    let target = match command.output {
        MirrorOutput::Stdout => Target::Stdout { since: command.since },
        MirrorOutput::Database(url) => {
            let address = service.url.trim_end_matches('/');
            Target::Database(Box::new(MirrorDatabase::open(&url, address).await?))
        }
    };
    let follow = command.follow;
    let mut task = MirrorTask { service, target, bar, is_restarting: false, is_complete: false };
    match task.run(follow, stop.as_mut()).await? {
        End::Complete => Ok(()),
        End::Stopped if follow => Ok(()),
        End::Stopped => bail!("interrupted; run the same command again to continue"),
    }
}

enum End {
    Complete,
    Stopped,
}

struct MirrorTask {
    service: Service,
    target: Target,
    bar: ProgressBar,
    /// Whether the next changes are the first of a complete state.
    is_restarting: bool,
    /// Whether it was up to date once.
    is_complete: bool,
}

#[derive(Default)]
struct Totals {
    changed: u64,
    removed: u64,
}

impl MirrorTask {
    async fn run(
        &mut self,
        follow: bool,
        mut stop: Pin<&mut impl Future<Output = ()>>,
    ) -> anyhow::Result<End> {
        let (mut totals, mut wait, mut restarts) = (Totals::default(), Duration::ZERO, 0);
        loop {
            let started = Instant::now();
            let since = self.target.since().filter(|_| !self.is_restarting);
            let changes = tokio::select! {
                changes = self.service.client.changes(since, wait) => changes,
                () = &mut stop => return Ok(End::Stopped),
            };
            let is_gone = matches!(changes, Err(Error::PositionGone));
            if is_gone && self.target.can_restart() && restarts < RESTARTS_MAX {
                self.bar.suspend(|| note(RESTART_NOTE));
                (self.is_restarting, restarts) = (true, restarts + 1);
                continue;
            }
            let changes = changes.map_err(|error| self.describe(error))?;
            let (more, is_empty) = (changes.more, changes.is_empty());
            match self.apply(changes, &mut totals).await {
                // As in `| head`.
                Err(error) if is_broken_pipe(&error) && !follow => return Ok(End::Complete),
                applied => applied?,
            }
            if more {
                continue;
            }
            self.report(&std::mem::take(&mut totals))?;
            if !follow {
                return Ok(End::Complete);
            }
            if is_empty && started.elapsed() < wait {
                tokio::select! {
                    () = tokio::time::sleep(EARLY_PAUSE) => {}
                    () = &mut stop => return Ok(End::Stopped),
                }
            }
            (wait, restarts) = (WAIT_MAX, 0);
        }
    }

    async fn apply(&mut self, changes: Changes, totals: &mut Totals) -> anyhow::Result<()> {
        if self.service.is_retrying.swap(false, Ordering::Relaxed) && self.is_complete {
            note("note: the service responds again");
        }
        totals.removed += changes.removed.len() as u64;
        let restarts = std::mem::take(&mut self.is_restarting);
        if changes.is_empty() && self.target.since() == Some(changes.since.as_str()) {
            return Ok(());
        }
        let applied = self.target.apply(changes, restarts).await?;
        totals.changed += applied.changed;
        totals.removed += applied.removed;
        self.bar.set_position(totals.changed);
        Ok(())
    }

    /// Prints what was written: at the end of the first run, and later if there was something.
    fn report(&mut self, totals: &Totals) -> anyhow::Result<()> {
        let is_first = !std::mem::replace(&mut self.is_complete, true);
        if is_first {
            self.bar.finish_and_clear();
            self.service.plaintext_note().iter().for_each(|text| note(text));
        } else if totals.changed + totals.removed == 0 {
            return Ok(());
        }
        let (changed, removed) = (grouped(totals.changed), grouped(totals.removed));
        let text = format!("{changed} new or changed, {removed} removed; up to date");
        match self.target {
            Target::Database(_) => print(&format!("{text}\n")),
            Target::Stdout { .. } => {
                note(&text);
                Ok(())
            }
        }
    }

    /// The error of a request, and what it means for the target.
    fn describe(&self, error: Error) -> anyhow::Error {
        match (&self.target, error) {
            (Target::Database(mirror), Error::Rejected { status, .. }) if status.as_u16() == 422 => anyhow!(
                "{} is a mirror of another organisation, or of a service with other keys: choose another --output; \
                 nothing was changed",
                mirror.name()
            ),
            (Target::Stdout { .. }, Error::PositionGone) => anyhow!(
                "the service cannot continue from this position: run it without --since, and delete the batches that \
                 are not in the new lines"
            ),
            (_, error) => error.into(),
        }
    }
}

enum Target {
    Stdout { since: Option<String> },
    Database(Box<MirrorDatabase>),
}

impl Target {
    fn since(&self) -> Option<&str> {
        match self {
            Target::Stdout { since } => since.as_deref(),
            Target::Database(mirror) => mirror.since(),
        }
    }

    /// Whether what is gone can be deleted after everything was read again.
    fn can_restart(&self) -> bool {
        matches!(self, Target::Database(_))
    }

    /// Writes changes and the position after them. Returns the number of batches, and of those that were deleted at the
    /// end of reading everything again.
    async fn apply(&mut self, changes: Changes, restarts: bool) -> anyhow::Result<Totals> {
        match self {
            Target::Stdout { since } => {
                let changed = print_lines(&changes)?;
                *since = Some(changes.since);
                Ok(Totals { changed, removed: 0 })
            }
            Target::Database(mirror) => {
                let batches =
                    changes.batches.batches().map(|received| received.map(|received| received.batch));
                let batches = batches.collect::<Result<Vec<Batch>, Error>>()?;
                let changed = batches.len() as u64;
                let Changes { removed, since, more, .. } = changes;
                let removed = mirror.apply(MirrorChanges { batches, removed, since, more, restarts }).await?;
                Ok(Totals { changed, removed })
            }
        }
    }
}

/// Prints the changes of one response at once. Returns the number of batches.
fn print_lines(changes: &Changes) -> anyhow::Result<u64> {
    let (mut lines, mut count) = (String::with_capacity(changes.batches.size()), 0);
    for text in changes.batches.texts() {
        // A service may send a batch on several lines; a line break in a text is escaped.
        lines += &format!("{{\"batch\":{}}}\n", text?.replace(['\n', '\r'], " "));
        count += 1;
    }
    for id in &changes.removed {
        lines += &format!("{}\n", json!({ "removed": id }));
    }
    print_once(&format!("{lines}{}\n", json!({ "since": changes.since })))?;
    Ok(count)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
