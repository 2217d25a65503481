//! `batchscan pull`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, bail};
use batchscan_client::{DateRange, Freshness, Pages, TryStreamExt, UtcInstant};
use batchscan_formats::write::{Columns, TextFormat};
use batchscan_server::clock::Clock;
use indicatif::ProgressBar;
use serde_json::json;

use super::context::{columns, date_range, shutdown_signal};
use crate::args::Pull;
use crate::connection::{self, Service};
use crate::date_range::TypedDateRange;
use crate::numbers::{count, grouped, size};
use crate::progress::progress_bar;
use crate::pull::download::{PageWriter, PullError, RowFormat, Sink, Totals};
use crate::pull::finalize::{Finished, finalize};
use crate::pull::journal::{Journal, Next, Settings, instants};
use crate::pull::last_pull::LastPull;
use crate::pull::options::{self, Contents, OutputFormat};
use crate::pull::partial_file::PartialFile;
use crate::pull::target;
use crate::table::{sanitize, truncate};
use crate::terminal::{note, print, prompt};

/// Length of an unknown field's name in a note.
const UNKNOWN_COLUMNS_MAX: usize = 40;

pub(crate) async fn run(command: Pull) -> anyhow::Result<()> {
    let dates = date_range("pull", &command.dates);
    if command.output.is_dir() {
        bail!("{} is a folder; name a file in it", command.output.display());
    }
    let format = OutputFormat::from_args(&command).unwrap_or_else(|error| error.exit());
    let columns = columns("pull", &command.columns);
    let contents = Contents { selection: command.selection.selection(), columns };
    options::check_stdout(&command, format).unwrap_or_else(|error| error.exit());
    let file = target::file_of(&command.output)?;
    let last = match file.as_deref().filter(|_| command.if_changed).map(LastPull::read) {
        Some(Err(_)) if command.force => None,
        last => last.transpose()?.flatten(),
    };
    let may_replace = command.force || last.is_some();
    if let Some(file) = &file {
        if command.if_changed && !may_replace && LastPull::exists(file) {
            bail!("{} was changed since the last pull; use --force to replace it", file.display());
        }
        target::check_free(file, may_replace)?;
    }
    let profile = connection::resolve(&command.connection)?;
    let bar = progress_bar("", "{human_pos} batches{wide_msg}");
    let service = connection::connect(&profile, &command.connection, &bar)?;
    let started = Instant::now();
    let mut task = PullTask { command, dates, format, contents, file, may_replace, service, bar, started };
    task.command.resume = task.decide_to_resume()?;
    task.run(last).await
}

struct PullTask {
    command: Pull,
    dates: TypedDateRange,
    format: OutputFormat,
    contents: Contents,
    /// The output file; `None` for standard output.
    file: Option<PathBuf>,
    may_replace: bool,
    service: Service,
    bar: ProgressBar,
    started: Instant,
}

impl PullTask {
    async fn run(mut self, last: Option<LastPull>) -> anyhow::Result<()> {
        let mut stop = std::pin::pin!(shutdown_signal()?);
        let checked = tokio::select! {
            checked = self.check_changes(last.as_ref()) => checked?,
            () = &mut stop => bail!("interrupted"),
        };
        let Freshness::Changed { etag } = checked else {
            return self.print_unchanged(last.map_or(0, |last| last.batches));
        };
        let sink = self.open_sink(etag)?;
        if let Sink::Partial(partial) = &sink {
            // A resumed pull keeps the instants of its start.
            self.dates = partial.journal.dates()?;
        }
        let pages = self.remaining_pages(&sink);
        let writer = PageWriter::new(self.row_format(), sink);
        let resumed = writer.totals.batches;
        self.bar.set_position(resumed);
        let (writer, result) = match pages {
            Some(pages) => self.download(pages, writer, &mut stop).await?,
            None => (writer, Ok(())),
        };
        match result {
            Ok(()) if writer.totals.is_complete => self.finish(writer, resumed, &mut stop).await,
            Ok(()) => bail!("the stream ended without a final page"),
            Err(error) => self.abort(writer, error),
        }
    }

    /// Whether to continue an interrupted pull. Without a flag the user decides: its batches are not lost silently. A
    /// scheduled job with `--if-changed` has no one to ask.
    fn decide_to_resume(&self) -> anyhow::Result<bool> {
        let Pull { resume, force, if_changed, .. } = self.command;
        let Some(file) = self.file.as_deref().filter(|_| !resume && !force && !if_changed) else {
            return Ok(resume);
        };
        let Some(journal) = PartialFile::interrupted(file)? else { return Ok(false) };
        let batches = count(journal.batches, "batch", "batches");
        let found = format!("{} has {batches} of an interrupted pull", PartialFile::path_for(file).display());
        let difference = journal.settings.difference(&self.settings());
        let question = match &difference {
            None => format!("{found}. Resume it, start over or cancel? [r/s/C] "),
            Some(difference) => format!("{found}, but {difference}. Start over or cancel? [s/C] "),
        };
        match self.bar.suspend(|| prompt(&question))? {
            Some(reply) => match (reply.trim().to_lowercase().as_str(), difference) {
                ("r" | "resume", None) => Ok(true),
                ("s" | "start over", _) => Ok(false),
                _ => bail!("cancelled; nothing was changed"),
            },
            None => match difference {
                None => bail!("{found}; add --resume to continue it, or --force to start over"),
                Some(difference) => bail!("{found}, but {difference}; add --force to start over"),
            },
        }
    }

    /// Asks the service whether the data has changed since the last pull.
    async fn check_changes(&self, last: Option<&LastPull>) -> anyhow::Result<Freshness> {
        if !self.command.if_changed {
            return Ok(Freshness::Changed { etag: None });
        }
        let range = self.dates.range();
        let (settings, (from, to)) = (self.settings(), instants(range));
        if let (Some(file), Some(difference)) =
            (self.output(), last.and_then(|last| last.settings.difference(&settings)))
        {
            note(&format!("note: replacing {file}: {difference}"));
        }
        // A file with another range, service or format is always replaced.
        let last = last.filter(|last| last.settings == settings && (&last.from, &last.to) == (&from, &to));
        Ok(self.service.client.freshness(range, last.map(|last| last.etag.as_str())).await?)
    }

    fn settings(&self) -> Settings {
        let Service { url, client_id, .. } = &self.service;
        options::settings(self.format, &self.contents, &self.dates, url, client_id)
    }

    /// A file that is converted later has every field until then: only so can it be read back.
    fn row_format(&self) -> RowFormat {
        let Contents { selection, columns } = self.contents.clone();
        let (form, columns) = match self.format {
            OutputFormat::Text(form) => (form, columns),
            OutputFormat::Binary(_) => (TextFormat::Ndjson, Columns::All),
        };
        RowFormat { form, columns, selection }
    }

    /// Opens the partial file, a temporary file or standard output.
    fn open_sink(&self, etag: Option<String>) -> anyhow::Result<Sink> {
        let Some(file) = &self.file else {
            return Ok(match self.format {
                OutputFormat::Text(_) => Sink::Stdout,
                OutputFormat::Binary(_) => {
                    Sink::TempFile(tempfile::tempfile().context("cannot create a temporary file")?)
                }
            });
        };
        let settings = self.settings();
        if self.command.resume
            && let Some(partial) = PartialFile::resume(file, &settings)?
        {
            return Ok(Sink::Partial(Box::new(partial)));
        }
        if self.command.if_changed
            && !self.command.force
            && let Some(journal) = PartialFile::interrupted(file)?
        {
            let batches = count(journal.batches, "batch", "batches");
            note(&format!(
                "note: discarding {batches} of an interrupted pull; --resume would have continued it"
            ));
        }
        let partial = PartialFile::create(file, Journal::new(settings, self.dates.range(), etag))?;
        Ok(Sink::Partial(Box::new(partial)))
    }

    /// The pages to download; `None` if all are in the partial file.
    fn remaining_pages(&self, sink: &Sink) -> Option<Pages> {
        let (client, range) = (&self.service.client, self.dates.range());
        match sink {
            Sink::Partial(partial) => match &partial.journal.next {
                Next::Begin => Some(client.pages(range)),
                Next::After(token) => Some(client.pages_after(range, token)),
                Next::End => None,
            },
            Sink::Stdout | Sink::TempFile(_) => Some(client.pages(range)),
        }
    }

    /// Writes the pages and updates the progress bar, which shows a retry until the next response.
    async fn download(
        &self,
        pages: Pages,
        writer: PageWriter,
        stop: impl Future<Output = ()>,
    ) -> anyhow::Result<(PageWriter, Result<(), PullError>)> {
        let (bar, resumed, range) = (self.bar.clone(), writer.totals.batches, self.dates.range());
        let started = self.started;
        let (flag, is_retrying) = (self.service.is_retrying.clone(), self.service.is_retrying.clone());
        let pages = pages.inspect_ok(move |_| flag.store(false, Ordering::Relaxed));
        let on_page = move |totals: &Totals| {
            if !is_retrying.load(Ordering::Relaxed) {
                let percent = percent_done(range, totals, resumed > 0, Clock::system().now());
                show_progress(&bar, totals, resumed, started, percent);
            }
        };
        writer.run(Box::pin(pages), stop, on_page).await
    }

    /// Reports the error. Keeps the partial file if the pull can be resumed.
    fn abort(&self, writer: PageWriter, error: PullError) -> anyhow::Result<()> {
        self.bar.finish_and_clear();
        let batches = writer.totals.batches;
        let kept = match writer.sink {
            Sink::Partial(partial) if partial.len() == 0 || !error.can_resume() => {
                partial.remove();
                None
            }
            Sink::Partial(partial) => Some(partial.path().to_owned()),
            Sink::Stdout | Sink::TempFile(_) => None,
        };
        if matches!(error, PullError::BrokenPipe) {
            return Ok(());
        }
        let error = anyhow::Error::new(error);
        let Some(kept) = kept else { return Err(error) };
        let batches = count(batches, "batch is", "batches are");
        bail!("{error:#}; {batches} kept in {}: add --resume to continue", kept.display())
    }

    /// Writes the final file and prints the summary.
    async fn finish(
        self,
        writer: PageWriter,
        resumed: u64,
        stop: impl Future<Output = ()>,
    ) -> anyhow::Result<()> {
        let PageWriter { sink, totals, .. } = writer;
        let journal = match &sink {
            Sink::Partial(partial) => Some(partial.journal.clone()),
            _ => None,
        };
        let result = self.finalize(sink, stop).await;
        self.bar.finish_and_clear();
        let finished = match result {
            Err(PullError::BrokenPipe) => return Ok(()),
            Err(PullError::Interrupted) => bail!("interrupted; add --resume to write the file"),
            finished => finished?,
        };
        if let (Some(file), Some(journal)) = (&self.file, journal) {
            self.save_last_pull(file, journal)?;
        }
        self.print_summary(&totals, resumed, &finished)
    }

    async fn finalize(&self, sink: Sink, stop: impl Future<Output = ()>) -> Result<Finished, PullError> {
        if matches!(self.format, OutputFormat::Binary(_)) {
            self.bar.set_message(", download complete; writing file");
        }
        let cancelled = Arc::new(AtomicBool::new(false));
        let (flag, format, may_replace) = (cancelled.clone(), self.format, self.may_replace);
        let (columns, file) = (self.contents.columns.clone(), self.file.clone());
        let mut task = tokio::task::spawn_blocking(move || {
            finalize(sink, format, &columns, file.as_deref(), may_replace, &flag)
        });
        let result = tokio::select! {
            result = &mut task => result,
            () = stop => {
                cancelled.store(true, Ordering::Relaxed);
                task.await
            }
        };
        result.context("writing the file failed")?
    }

    /// Saves the state for the next `--if-changed`.
    fn save_last_pull(&self, file: &Path, mut journal: Journal) -> anyhow::Result<()> {
        if !self.command.if_changed {
            return Ok(());
        }
        let Some(etag) = journal.etag.take() else {
            LastPull::remove(file);
            note("note: the service sends no ETag, so --if-changed pulls every time");
            return Ok(());
        };
        LastPull::write(file, journal, etag)
    }

    fn print_unchanged(&self, batches: u64) -> anyhow::Result<()> {
        self.bar.finish_and_clear();
        let file = self.command.output.display().to_string();
        print(&match self.command.json {
            true => format!("{}\n", json!({ "changed": false, "batches": batches, "file": file })),
            false => format!("unchanged: {file} has {}\n", count(batches, "batch", "batches")),
        })
    }

    /// Prints notes and the summary. The summary goes to standard error if the batches went to standard output.
    fn print_summary(&self, totals: &Totals, resumed: u64, finished: &Finished) -> anyhow::Result<()> {
        let is_chosen = self.contents.columns != Columns::All;
        if !totals.unknown_fields.is_empty() && !is_chosen && self.format.drops_unknown_fields() {
            let name = |name: &String| truncate(&sanitize(name), UNKNOWN_COLUMNS_MAX);
            let names: Vec<String> = totals.unknown_fields.iter().map(name).collect();
            note(&format!("note: unknown fields are not in the file: {}", names.join(", ")));
        }
        if let Some(text) = finished.cut_texts.message() {
            note(&format!("note: {text}"));
        }
        if let Some(text) = self.service.plaintext_note() {
            note(&text);
        }
        let bytes = if finished.bytes > 0 { finished.bytes } else { totals.bytes };
        let text = if self.command.json {
            self.summary_json(totals, resumed, bytes)
        } else {
            self.summary_line(totals, resumed, bytes)
        };
        if self.file.is_some() {
            return print(&format!("{text}\n"));
        }
        note(&text);
        Ok(())
    }

    fn summary_line(&self, totals: &Totals, resumed: u64, bytes: u64) -> String {
        let output = self.output().unwrap_or_else(|| "standard output".to_owned());
        let earlier =
            if resumed > 0 { format!(" ({} of them earlier)", grouped(resumed)) } else { String::new() };
        let pulled = match totals.batches {
            0 => format!("{}; wrote {output}", self.contents.selection.no_match(&self.dates.to_string())),
            n => format!("pulled {}{earlier}, {}, into {output}", count(n, "batch", "batches"), self.dates),
        };
        format!(
            "{pulled}: {} in {:.1} s, {}",
            size(bytes),
            self.started.elapsed().as_secs_f64(),
            count(self.service.retries(), "retry", "retries"),
        )
    }

    /// The output file as it was given.
    fn output(&self) -> Option<String> {
        self.file.as_ref().map(|_| self.command.output.display().to_string())
    }

    fn summary_json(&self, totals: &Totals, resumed: u64, bytes: u64) -> String {
        let (from, to) = instants(self.dates.range());
        json!({
            "changed": true,
            "batches": totals.batches,
            "resumed_batches": resumed,
            "start_date": from,
            "end_date": to,
            "file": self.output(),
            "bytes": bytes,
            "seconds": self.started.elapsed().as_secs_f64(),
            "retries": self.service.retries(),
        })
        .to_string()
    }
}

/// How much of the date range is done. An open range starts with the first batch and ends now.
fn percent_done(range: DateRange, totals: &Totals, is_resumed: bool, now: UtcInstant) -> Option<i64> {
    // The first batch of a resumed pull is not the first one of the range.
    let first = totals.first_date.filter(|_| !is_resumed);
    let (start, last) = (range.start.or(first)?.secs(), totals.last_date?.secs());
    // The end of this year is in the future, where no batches are.
    let end = range.end.map_or(now, |end| end.min(now)).secs();
    let percent = (last - start).checked_mul(100)?.checked_div(end - start)?;
    Some(percent.clamp(0, 100))
}

fn show_progress(bar: &ProgressBar, totals: &Totals, resumed: u64, started: Instant, percent: Option<i64>) {
    let millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX).max(1);
    let rate = (totals.batches - resumed).saturating_mul(1_000) / millis;
    let last = totals.last_date.map(|date| format!(", up to {}", date.to_whole_secs())).unwrap_or_default();
    bar.set_position(totals.batches);
    let percent = percent.map(|percent| format!(", {percent} %")).unwrap_or_default();
    bar.set_message(format!(", {}/s{percent}{last}", grouped(rate)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_percentage_is_the_share_of_the_date_range() {
        let at = |secs: i64| UtcInstant::EPOCH.plus_secs(secs);
        let percent = |start: Option<i64>, end: Option<i64>, is_resumed| {
            let (first_date, last_date) = (Some(at(500)), Some(at(600)));
            let totals = Totals { first_date, last_date, ..Totals::default() };
            percent_done(DateRange { start: start.map(at), end: end.map(at) }, &totals, is_resumed, at(1_000))
        };
        assert_eq!(percent(Some(400), Some(800), false), Some(50));
        // An end in the future is now; without a start the first batch is it.
        assert_eq!(percent(Some(0), Some(9_000), false), Some(60));
        assert_eq!(percent(Some(0), None, true), Some(60));
        assert_eq!(percent(None, None, false), Some(20));
        assert_eq!(percent(None, None, true), None);
        assert_eq!(percent(Some(600), Some(600), false), None);
        let nothing = percent_done(DateRange::default(), &Totals::default(), false, at(1_000));
        assert_eq!(nothing, None);
    }
}
