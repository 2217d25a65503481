//! `batchscan pull`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, bail};
use batchscan_client::{DateRange, Freshness, TryStreamExt, UtcInstant};
use batchscan_formats::Format;
use batchscan_formats::write::{Columns, CsvStyle, CutTexts, TextWriter};
use batchscan_server::clock::Clock;
use indicatif::ProgressBar;
use serde_json::json;

use super::context::{columns, date_range, shutdown_signal};
use crate::args::Pull;
use crate::atomic_file;
use crate::connection::{self, Service};
use crate::date_range::DateArgRange;
use crate::numbers::{count, grouped, size};
use crate::progress::progress_bar;
use crate::pull::download::{PageWriter, RowFormat, Totals};
use crate::pull::last_pull::{LastPull, Settings};
use crate::pull::options::{self, Contents};
use crate::pull::output::{Output, PullError};
use crate::table::{sanitize, truncate};
use crate::terminal::{note, print};

/// Length of an unknown field's name in a note.
const UNKNOWN_COLUMNS_MAX: usize = 40;

pub(crate) async fn run(command: Pull) -> anyhow::Result<()> {
    let dates = date_range("pull", &command.dates);
    if command.output.is_dir() {
        bail!("{} is a folder; name a file in it", command.output.display());
    }
    let format = options::output_format(&command).unwrap_or_else(|error| error.exit());
    let columns = columns("pull", &command.columns);
    let contents = Contents { selection: command.selection.selection(), columns };
    options::check_stdout(&command, format).unwrap_or_else(|error| error.exit());
    let file = file_of(&command.output)?;
    let last = match file.as_deref().filter(|_| command.if_changed).map(LastPull::read) {
        Some(Err(_)) if command.force => None,
        last => last.transpose()?.flatten(),
    };
    let may_replace = command.force || last.is_some();
    if let Some(file) = &file {
        if command.if_changed && !may_replace && LastPull::exists(file) {
            bail!("{} was changed since the last pull; use --force to replace it", file.display());
        }
        atomic_file::check_free(file, may_replace)?;
    }
    let profile = connection::resolve(&command.connection)?;
    let bar = progress_bar("", "{human_pos} batches{wide_msg}");
    let service = connection::connect(&profile, &command.connection, &bar)?;
    let started = Instant::now();
    PullTask { command, dates, format, contents, file, may_replace, service, bar, started }.run(last).await
}

/// The file of `--output`, unless it is standard output. A symbolic link is followed, so that the link stays a link.
fn file_of(output: &Path) -> anyhow::Result<Option<PathBuf>> {
    if output == Path::new("-") {
        return Ok(None);
    }
    if output.is_symlink() {
        let cannot = || format!("cannot follow the link {}", output.display());
        return std::fs::canonicalize(output).map(Some).with_context(cannot);
    }
    Ok(Some(output.to_owned()))
}

struct PullTask {
    command: Pull,
    dates: DateArgRange,
    format: Format,
    contents: Contents,
    /// The output file; `None` for standard output.
    file: Option<PathBuf>,
    may_replace: bool,
    service: Service,
    bar: ProgressBar,
    started: Instant,
}

impl PullTask {
    async fn run(self, last: Option<LastPull>) -> anyhow::Result<()> {
        let mut stop = std::pin::pin!(shutdown_signal()?);
        let checked = tokio::select! {
            checked = self.check_changes(last.as_ref()) => checked?,
            () = &mut stop => bail!("interrupted; run the command again"),
        };
        let Freshness::Changed { etag } = checked else {
            return self.print_unchanged(last.map_or(0, |last| last.batches));
        };
        let columns = &self.contents.columns;
        let output = Output::create(self.file.as_deref(), self.may_replace, self.format, columns)?;
        let result = match self.download(output, &mut stop).await {
            Ok(PageWriter { output, totals, .. }) => {
                self.finish(output, stop).await.map(|(bytes, cut_texts)| (totals, bytes, cut_texts))
            }
            Err(error) => Err(error),
        };
        self.bar.finish_and_clear();
        match result {
            Ok((totals, bytes, cut_texts)) => {
                self.save_last_pull(etag, totals.batches)?;
                self.print_summary(&totals, bytes, &cut_texts)
            }
            Err(PullError::BrokenPipe) => Ok(()),
            Err(PullError::Interrupted) => bail!("interrupted; no file was written: run the command again"),
            Err(PullError::Failed(error)) => Err(error),
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
        let Contents { selection, columns } = &self.contents;
        let columns = match columns {
            Columns::All => None,
            Columns::Chosen(fields) => {
                Some(fields.iter().map(|field| field.name()).collect::<Vec<_>>().join(","))
            }
        };
        let format = match self.command.excel {
            Some(CsvStyle::ExcelSemicolon) => "csv for Excel with semicolons",
            Some(CsvStyle::ExcelComma) => "csv for Excel with commas",
            Some(CsvStyle::Plain) | None => self.format.name(),
        };
        Settings {
            url: self.service.url.clone(),
            client_id: self.service.client_id.clone(),
            start_date: self.dates.start.as_ref().map(|start| start.text.clone()),
            end_date: self.dates.end.as_ref().map(|end| end.text.clone()),
            format: format.to_owned(),
            selection: selection.description(),
            columns,
        }
    }

    fn row_format(&self) -> RowFormat {
        let Contents { selection, columns } = self.contents.clone();
        let style = self.command.excel.unwrap_or(CsvStyle::Plain);
        RowFormat { writer: TextWriter::new(self.format, style, columns), selection }
    }

    /// Writes the pages and updates the progress bar, which shows a retry until the next response.
    async fn download(
        &self,
        output: Output,
        stop: impl Future<Output = ()>,
    ) -> Result<PageWriter, PullError> {
        let (bar, range, started) = (self.bar.clone(), self.dates.range(), self.started);
        let (flag, is_retrying) = (self.service.is_retrying.clone(), self.service.is_retrying.clone());
        let pages = self.service.client.pages(range);
        let pages = pages.inspect_ok(move |_| flag.store(false, Ordering::Relaxed));
        let on_page = move |totals: &Totals| {
            if !is_retrying.load(Ordering::Relaxed) {
                let percent = percent_done(range, totals, Clock::system().now());
                show_progress(&bar, totals, started, percent);
            }
        };
        PageWriter::new(self.row_format(), output).run(Box::pin(pages), stop, on_page).await
    }

    /// Completes the output. Returns its size.
    async fn finish(
        &self,
        output: Output,
        stop: impl Future<Output = ()>,
    ) -> Result<(u64, CutTexts), PullError> {
        if !self.format.is_text() {
            self.bar.set_message(", download complete; writing file");
        }
        let cancelled = Arc::new(AtomicBool::new(false));
        let flag = cancelled.clone();
        let mut task = tokio::task::spawn_blocking(move || output.finish(&flag));
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
    fn save_last_pull(&self, etag: Option<String>, batches: u64) -> anyhow::Result<()> {
        let Some(file) = self.file.as_deref().filter(|_| self.command.if_changed) else { return Ok(()) };
        let Some(etag) = etag else {
            LastPull::remove(file);
            note("note: the service sends no ETag, so --if-changed pulls every time");
            return Ok(());
        };
        LastPull::write(file, self.settings(), instants(self.dates.range()), etag, batches)
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
    fn print_summary(&self, totals: &Totals, bytes: u64, cut_texts: &CutTexts) -> anyhow::Result<()> {
        let is_chosen = self.contents.columns != Columns::All;
        if !totals.unknown_fields.is_empty()
            && !is_chosen
            && !matches!(self.format, Format::Ndjson | Format::Json)
        {
            let name = |name: &String| truncate(&sanitize(name), UNKNOWN_COLUMNS_MAX);
            let names: Vec<String> = totals.unknown_fields.iter().map(name).collect();
            note(&format!("note: unknown fields are not in the file: {}", names.join(", ")));
        }
        if let Some(text) = cut_texts.message() {
            note(&format!("note: {text}"));
        }
        if let Some(text) = self.service.plaintext_note() {
            note(&text);
        }
        let text = if self.command.json {
            self.summary_json(totals, bytes)
        } else {
            self.summary_line(totals, bytes)
        };
        if self.file.is_some() {
            return print(&format!("{text}\n"));
        }
        note(&text);
        Ok(())
    }

    fn summary_line(&self, totals: &Totals, bytes: u64) -> String {
        let output = self.output().unwrap_or_else(|| "standard output".to_owned());
        let pulled = match totals.batches {
            0 => format!("{}; wrote {output}", self.contents.selection.no_match(&self.dates.to_string())),
            n => format!("pulled {}, {}, into {output}", count(n, "batch", "batches"), self.dates),
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

    fn summary_json(&self, totals: &Totals, bytes: u64) -> String {
        let (from, to) = instants(self.dates.range());
        json!({
            "changed": true,
            "batches": totals.batches,
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

/// The instants of a range, as text.
fn instants(range: DateRange) -> (Option<String>, Option<String>) {
    let text = |end: Option<UtcInstant>| end.map(|instant| instant.to_string());
    (text(range.start), text(range.end))
}

/// How much of the date range is done. An open range starts with the first batch and ends now.
fn percent_done(range: DateRange, totals: &Totals, now: UtcInstant) -> Option<i64> {
    let (start, last) = (range.start.or(totals.first_date)?.secs(), totals.last_date?.secs());
    // The end of this year is in the future, where no batches are.
    let end = range.end.map_or(now, |end| end.min(now)).secs();
    let percent = (last - start).checked_mul(100)?.checked_div(end - start)?;
    Some(percent.clamp(0, 100))
}

fn show_progress(bar: &ProgressBar, totals: &Totals, started: Instant, percent: Option<i64>) {
    let millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX).max(1);
    let rate = totals.batches.saturating_mul(1_000) / millis;
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
        let percent = |start: Option<i64>, end: Option<i64>| {
            let (first_date, last_date) = (Some(at(500)), Some(at(600)));
            let totals = Totals { first_date, last_date, ..Totals::default() };
            percent_done(DateRange { start: start.map(at), end: end.map(at) }, &totals, at(1_000))
        };
        assert_eq!(percent(Some(400), Some(800)), Some(50));
        // An end in the future is now; without a start the first batch is it.
        assert_eq!(percent(Some(0), Some(9_000)), Some(60));
        assert_eq!(percent(Some(0), None), Some(60));
        assert_eq!(percent(None, None), Some(20));
        assert_eq!(percent(Some(600), Some(600)), None);
        assert_eq!(percent_done(DateRange::default(), &Totals::default(), at(1_000)), None);
    }
}
