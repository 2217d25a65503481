//! `batchscan pull`.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, bail};
use batchscan_client::{Freshness, Pages, TryStreamExt};
use indicatif::ProgressBar;
use serde_json::json;

use super::serve::told_to_stop;
use crate::args::Pull;
use crate::connection::{self, Service};
use crate::figures::{count, grouped, size};
use crate::output::{bar, print, remark};
use crate::printable::{clipped, printable};
use crate::pull::course::{Growing, Stopped, Tally, Writer};
use crate::pull::finish::{Finished, finish};
use crate::pull::partial::{Journal, Next, Partial};
use crate::pull::place::{self, Place};
use crate::pull::plan::{self, Shape};
use crate::pull::record::Record;
use crate::window::Window;

pub(crate) async fn run(command: Pull) -> anyhow::Result<ExitCode> {
    let window = command.window.read("pull");
    if command.output.is_dir() {
        bail!("{} is a folder; name a file in it", command.output.display());
    }
    let shape = Shape::of(&command).unwrap_or_else(|error| error.exit());
    plan::check_flags(&command, shape).unwrap_or_else(|error| error.exit());
    let place = Place::new(&command.output)?;
    let last = plan::file_of(&place).filter(|_| command.if_changed).and_then(Record::of);
    let may_replace = command.force || last.is_some();
    if let Some(file) = plan::file_of(&place) {
        if command.if_changed && !may_replace && Record::is_of(file) {
            bail!("{} was changed since the last pull; --force replaces it", file.display());
        }
        place::check_free(file, may_replace)?;
    }
    let profile = connection::resolve(&command.connection)?;
    let bar = bar("", "{human_pos} batches{wide_msg}");
    let service = connection::client(&profile, &command.connection, &bar)?;
    let pull = Pulling { command, window, shape, place, may_replace, service, bar, began: Instant::now() };
    pull.run(last).await
}

/// How much of the name of a field that nobody knows is worth a remark.
const UNKNOWN_COLUMNS_MAX: usize = 40;

/// A pull that is under way.
struct Pulling {
    command: Pull,
    window: Window,
    shape: Shape,
    place: Place,
    may_replace: bool,
    service: Service,
    bar: ProgressBar,
    began: Instant,
}

impl Pulling {
    async fn run(mut self, last: Option<Record>) -> anyhow::Result<ExitCode> {
        let mut stop = std::pin::pin!(told_to_stop()?);
        let etag = tokio::select! {
            looked = self.look(last.as_ref()) => looked?,
            () = &mut stop => bail!("interrupted"),
        };
        let etag = match etag {
            Look::Unchanged(batches) => return self.say_unchanged(batches),
            Look::Pull(etag) => etag,
        };
        let growing = self.growing(etag)?;
        if let Growing::Kept(partial) = &growing {
            // A pull that is gone on with has the window that it began with.
            self.window = plan::window_of(&partial.journal)?;
        }
        let (pages, writer) = self.set_out(growing);
        let before = writer.tally.batches;
        let (writer, outcome) = match pages {
            Some(pages) => self.walk(pages, writer, &mut stop).await?,
            None => (writer, Ok(())),
        };
        match outcome {
            Ok(()) if writer.tally.is_ended => self.complete(writer, before, &mut stop).await,
            Ok(()) => bail!("the pages ended before the last one"),
            Err(stopped) => self.give_up(writer, stopped),
        }
    }

    /// Walks the pages into the file, and shows how far it is. While something is waited for, that is what is shown.
    async fn walk(
        &self,
        pages: Pages,
        writer: Writer,
        stop: impl Future<Output = ()>,
    ) -> anyhow::Result<(Writer, Result<(), Stopped>)> {
        let (before, bar, began) = (writer.tally.batches, self.bar.clone(), self.began);
        let (heard, is_waiting) = (self.service.is_waiting.clone(), self.service.is_waiting.clone());
        let pages = pages.inspect_ok(move |_| heard.store(false, Ordering::Relaxed));
        let on_page = move |tally: &Tally| {
            if !is_waiting.load(Ordering::Relaxed) {
                show(&bar, tally, before, began);
            }
        };
        writer.run(Box::pin(pages), stop, on_page).await
    }

    /// Whether there is anything to do, and the ETag of what there is.
    async fn look(&self, last: Option<&Record>) -> anyhow::Result<Look> {
        if !self.command.if_changed {
            return Ok(Look::Pull(None));
        }
        let range = self.window.range();
        let settings = plan::settings(self.shape, &self.window, &self.service.url, &self.service.client_id);
        // A file of another window, service or shape is replaced, whatever the service says.
        let last = last.filter(|last| {
            last.settings == settings && (&last.from, &last.to) == as_refs(&plan::ends(range))
        });
        match self.service.client.freshness(range, last.map(|last| last.etag.as_str())).await? {
            Freshness::Unchanged => Ok(Look::Unchanged(last.map_or(0, |last| last.batches))),
            Freshness::Changed { etag } => Ok(Look::Pull(etag)),
        }
    }

    /// What rows are written to: a new file, one that is gone on with, or none.
    fn growing(&self, etag: Option<String>) -> anyhow::Result<Growing> {
        let Some(file) = plan::file_of(&self.place) else {
            return Ok(match self.shape {
                Shape::Text(_) => Growing::Stdout,
                Shape::Made(_) => {
                    Growing::Spool(tempfile::tempfile().context("cannot make a temporary file")?)
                }
            });
        };
        let settings = plan::settings(self.shape, &self.window, &self.service.url, &self.service.client_id);
        if self.command.resume
            && let Some(partial) = Partial::resume(file, &settings)?
        {
            return Ok(Growing::Kept(Box::new(partial)));
        }
        let given_up = Partial::kept_batches(file, &settings);
        let (from, to) = plan::ends(self.window.range());
        let mut journal = Journal::new(settings, from, to);
        journal.etag = etag;
        let partial = Partial::begin(file, journal)?;
        if let Some(batches) = given_up {
            let batches = count(batches, "batch", "batches");
            remark(&format!("note: beginning anew; --resume would have gone on from {batches}"));
        }
        Ok(Growing::Kept(Box::new(partial)))
    }

    /// The pages that are still to come; none if all are there.
    fn set_out(&self, growing: Growing) -> (Option<Pages>, Writer) {
        let (client, range) = (&self.service.client, self.window.range());
        let pages = match &growing {
            Growing::Kept(partial) => match &partial.journal.next {
                Next::Begin => Some(client.pages(range)),
                Next::After(token) => Some(client.pages_after(range, token)),
                Next::End => None,
            },
            Growing::Stdout | Growing::Spool(_) => Some(client.pages(range)),
        };
        let writer = Writer::new(self.shape.growing_form(), growing);
        self.bar.set_position(writer.tally.batches);
        (pages, writer)
    }

    /// Says what stopped the pull, and keeps what a later one can go on with.
    fn give_up(&self, writer: Writer, stopped: Stopped) -> anyhow::Result<ExitCode> {
        self.bar.finish_and_clear();
        let batches = writer.tally.batches;
        let kept = match writer.growing {
            Growing::Kept(partial) if partial.is_empty() || !stopped.leaves_hope() => {
                partial.remove();
                None
            }
            Growing::Kept(partial) => Some(partial.path().to_owned()),
            Growing::Stdout | Growing::Spool(_) => None,
        };
        let error = match stopped {
            Stopped::NobodyReads => return Ok(ExitCode::SUCCESS),
            Stopped::Interrupted => anyhow::anyhow!("interrupted"),
            Stopped::Service(error) => error.into(),
            Stopped::Writing(error) | Stopped::Naming(error) => error,
        };
        let Some(kept) = kept else { return Err(error) };
        let batches = count(batches, "batch is", "batches are");
        bail!(
            "{error:#}; {batches} kept in {}: the same command with --resume goes on from there",
            kept.display()
        )
    }

    /// Makes the file, and says what it is.
    async fn complete(
        self,
        writer: Writer,
        before: u64,
        stop: impl Future<Output = ()>,
    ) -> anyhow::Result<ExitCode> {
        let Writer { growing, tally, .. } = writer;
        let journal = match &growing {
            Growing::Kept(partial) => Some(partial.journal.clone()),
            _ => None,
        };
        let file = plan::file_of(&self.place).map(Path::to_owned);
        let unwanted = Arc::new(AtomicBool::new(false));
        let (heard, shape, target) = (unwanted.clone(), self.shape, file.clone());
        let may_replace = self.may_replace;
        if matches!(shape, Shape::Made(_)) {
            self.bar.set_message(", all there: making the file");
        }
        let mut finishing = tokio::task::spawn_blocking(move || {
            finish(growing, shape, target.as_deref(), may_replace, &heard)
        });
        let finished = tokio::select! {
            finished = &mut finishing => finished,
            () = stop => {
                unwanted.store(true, Ordering::Relaxed);
                finishing.await
            }
        };
        self.bar.finish_and_clear();
        let finished = match finished.context("making the file broke off")? {
            Ok(finished) => finished,
            Err(Stopped::NobodyReads) => return Ok(ExitCode::SUCCESS),
            Err(Stopped::Interrupted) => bail!("interrupted; the same command with --resume makes the file"),
            Err(Stopped::Writing(error) | Stopped::Naming(error)) => return Err(error),
            Err(Stopped::Service(error)) => return Err(error.into()),
        };
        if let (Some(file), Some(journal)) = (&file, journal) {
            self.remember(file, journal)?;
        }
        self.say_done(&tally, before, &finished)
    }

    /// For the next `--if-changed`.
    fn remember(&self, file: &Path, journal: Journal) -> anyhow::Result<()> {
        if !self.command.if_changed {
            return Ok(());
        }
        let Some(etag) = journal.etag else {
            Record::forget(file);
            remark("note: the service gives no ETag, so --if-changed pulls every time");
            return Ok(());
        };
        Record::write(file, journal.settings, (journal.from, journal.to), etag, journal.batches)
    }

    fn say_unchanged(&self, batches: u64) -> anyhow::Result<ExitCode> {
        self.bar.finish_and_clear();
        let file = self.command.output.display().to_string();
        if self.command.json {
            print(&format!("{}\n", json!({ "changed": false, "batches": batches, "file": file })))?;
        } else {
            print(&format!("nothing has changed: {file} holds {}\n", count(batches, "batch", "batches")))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// The last line: on standard output, unless that holds the batches themselves.
    fn say_done(&self, tally: &Tally, before: u64, finished: &Finished) -> anyhow::Result<ExitCode> {
        if !tally.unknown.is_empty() && self.shape.drops_unknown_fields() {
            let names: Vec<String> =
                tally.unknown.iter().map(|name| clipped(&printable(name), UNKNOWN_COLUMNS_MAX)).collect();
            remark(&format!(
                "note: fields that this version does not know are left out: {}",
                names.join(", ")
            ));
        }
        if let Some(sentence) = finished.remarks.message() {
            remark(&format!("note: {sentence}"));
        }
        if let Some(note) = self.service.note() {
            remark(&note);
        }
        let bytes = if finished.bytes > 0 { finished.bytes } else { tally.bytes };
        let text = if self.command.json {
            self.done_json(tally, before, bytes)
        } else {
            self.done_line(tally, before, bytes)
        };
        match self.place {
            Place::Stdout => remark(&text),
            Place::File(_) => print(&format!("{text}\n"))?,
        }
        Ok(ExitCode::SUCCESS)
    }

    fn done_line(&self, tally: &Tally, before: u64, bytes: u64) -> String {
        let into = match &self.place {
            Place::Stdout => "standard output".to_owned(),
            Place::File(_) => self.command.output.display().to_string(),
        };
        let resumed =
            if before > 0 { format!(" ({} of them before)", grouped(before)) } else { String::new() };
        format!(
            "pulled {}{resumed}, {}, into {into}: {} in {:.1} s, {}",
            count(tally.batches, "batch", "batches"),
            self.window,
            size(bytes),
            self.began.elapsed().as_secs_f64(),
            count(self.service.retries(), "retry", "retries"),
        )
    }

    fn done_json(&self, tally: &Tally, before: u64, bytes: u64) -> String {
        let (from, to) = plan::ends(self.window.range());
        let file = plan::file_of(&self.place).map(|_| self.command.output.display().to_string());
        json!({
            "changed": true,
            "batches": tally.batches,
            "resumed_batches": before,
            "start_date": from,
            "end_date": to,
            "file": file,
            "bytes": bytes,
            "seconds": self.began.elapsed().as_secs_f64(),
            "retries": self.service.retries(),
        })
        .to_string()
    }
}

enum Look {
    /// The file holds so many batches, and would hold the same again.
    Unchanged(u64),
    /// With the ETag of what there is, if it was asked for.
    Pull(Option<String>),
}

fn show(bar: &ProgressBar, tally: &Tally, before: u64, began: Instant) {
    let millis = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX).max(1);
    let rate = (tally.batches - before).saturating_mul(1_000) / millis;
    let reached =
        tally.reached.map(|instant| format!(", up to {}", instant.to_whole_secs())).unwrap_or_default();
    bar.set_position(tally.batches);
    bar.set_message(format!(", {} a second{reached}", grouped(rate)));
}

fn as_refs(ends: &(Option<String>, Option<String>)) -> (&Option<String>, &Option<String>) {
    (&ends.0, &ends.1)
}
