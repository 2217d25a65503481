//! `batchscan summary`.

use std::path::{Path, PathBuf};

use anyhow::Context;
use batchscan_client::TryStreamExt;
use batchscan_formats::Format;

use super::context::date_range;
use crate::args::{SUMMARY_START, Summary};
use crate::atomic_file;
use crate::connection;
use crate::date_range::{DateArgRange, day_of};
use crate::numbers::count;
use crate::progress::progress_bar;
use crate::pull::options::unknown_extension;
use crate::reports::summary::Summary as Report;
use crate::selection::Selection;
use crate::terminal::{Screen, print};

pub(crate) async fn run(command: Summary) -> anyhow::Result<()> {
    let dates = date_range("summary", &command.dates);
    let output = command.output.as_deref().map(OutputFile::new);
    if let Some(output) = &output {
        atomic_file::check_free(&output.path, command.force)?;
    }
    let selection = command.selection.selection();
    let profile = connection::resolve(&command.connection)?;
    let bar = progress_bar("", "reading: {human_pos} batches{wide_msg}");
    let service = connection::connect(&profile, &command.connection, &bar)?;
    let mut report = Report::default();
    let mut batches = service.client.batches(dates.range());
    while let Some(received) = batches.try_next().await? {
        bar.inc(1);
        if selection.includes(&received.batch) {
            report.add(&received.batch)?;
        }
    }
    bar.finish_and_clear();
    let period = Period::new(&dates);
    print(&match output {
        Some(output) => output.write(&report, &selection, &period, command.force)?,
        None if command.json => report.json(),
        None if report.batches() == 0 => format!("{}{}\n", selection.no_match(&period.text), period.hint),
        None => format!("{}{}\n{}", period.text, period.hint, report.table(Screen::stdout())),
    })
}

/// The date range as text.
struct Period {
    text: String,
    /// How to change it if it is the default.
    hint: &'static str,
}

impl Period {
    fn new(dates: &DateArgRange) -> Self {
        match dates {
            DateArgRange { start: Some(start), end: None } if start.text == SUMMARY_START => Self {
                text: format!("the last 12 weeks (from {})", day_of(start.instant)),
                hint: "; --start-date selects another period",
            },
            _ => Self { text: dates.to_string(), hint: "" },
        }
    }
}

/// The file of `--output`.
struct OutputFile {
    path: PathBuf,
    is_workbook: bool,
}

impl OutputFile {
    /// Exits with a usage error if the extension is not that of a table.
    fn new(path: &Path) -> Self {
        let is_workbook = match Format::for_writing(path) {
            Some(Format::Xlsx) => true,
            Some(Format::Csv) => false,
            _ => unknown_extension("summary", path, "use .xlsx or .csv").exit(),
        };
        Self { path: path.to_owned(), is_workbook }
    }

    /// Writes the file. Returns a line for the user.
    fn write(
        &self,
        report: &Report,
        selection: &Selection,
        period: &Period,
        may_replace: bool,
    ) -> anyhow::Result<String> {
        let bytes = if self.is_workbook { report.xlsx()? } else { report.csv().into_bytes() };
        let file = self.path.display();
        // It may have appeared while the batches were read.
        atomic_file::check_free(&self.path, may_replace)?;
        atomic_file::write(&self.path, &bytes).with_context(|| format!("cannot write {file}"))?;
        let Period { text, hint } = period;
        let batches = count(report.batches(), "batch", "batches");
        Ok(match report.batches() {
            0 => format!("{}; wrote {file}{hint}\n", selection.no_match(text)),
            _ if hint.is_empty() => format!("wrote the summary of {batches} ({text}) to {file}\n"),
            _ => format!("wrote the summary of {batches} of {text} to {file}{hint}\n"),
        })
    }
}
