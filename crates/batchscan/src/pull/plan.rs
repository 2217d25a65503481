//! A pull as it will be done: where to, in which shape, of which window. Reads no file and asks nobody.

use std::io::IsTerminal;
use std::path::Path;

use anyhow::anyhow;
use batchscan_client::DateRange;
use batchscan_model::UtcInstant;
use batchscan_model::instant::DateInput;

use super::Settings;
use super::partial::Journal;
use super::place::Place;
use crate::args::{Pull, Separator, misuse};
use crate::window::{Typed, Window};
use batchscan_formats::Format;
use batchscan_formats::write::{CsvStyle, TextFormat};

/// What the rows become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A text that grows.
    Text(TextFormat),
    /// A file that is made at the end.
    Made(Made),
}

/// A file that is made at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Made {
    Parquet,
    Xlsx,
}

impl Shape {
    /// The shape that was asked for, or that the file's ending tells.
    pub(crate) fn of(command: &Pull) -> Result<Self, clap::Error> {
        let Some(format) = command.format.or_else(|| Format::for_writing(&command.output)) else {
            let output = command.output.display();
            return Err(misuse(
                "pull",
                format!(
                    "'{output}' does not tell a format; add '--format csv', ndjson, json, parquet or xlsx"
                ),
            ));
        };
        if command.excel.is_some() && format != Format::Csv {
            return Err(misuse(
                "pull",
                "'--excel' is for CSV; a file called .xlsx is Excel's own format already",
            ));
        }
        let style = match command.excel {
            None => CsvStyle::Plain,
            Some(Separator::Semicolon) => CsvStyle::ExcelSemicolon,
            Some(Separator::Comma) => CsvStyle::ExcelComma,
        };
        Ok(match format {
            Format::Csv => Shape::Text(TextFormat::Csv(style)),
            Format::Ndjson => Shape::Text(TextFormat::Ndjson),
            Format::Json => Shape::Text(TextFormat::Json),
            Format::Parquet => Shape::Made(Made::Parquet),
            Format::Xlsx => Shape::Made(Made::Xlsx),
        })
    }

    /// How rows are written while they come.
    pub(crate) fn growing_form(self) -> TextFormat {
        match self {
            Shape::Text(form) => form,
            Shape::Made(_) => TextFormat::Ndjson,
        }
    }

    /// Whether a field that the interface does not name gets lost.
    pub(crate) fn drops_unknown_fields(self) -> bool {
        !matches!(self, Shape::Text(TextFormat::Ndjson | TextFormat::Json))
    }

    fn name(self) -> &'static str {
        match self {
            Shape::Text(TextFormat::Csv(CsvStyle::Plain)) => "csv",
            Shape::Text(TextFormat::Csv(CsvStyle::ExcelSemicolon)) => "csv for Excel with semicolons",
            Shape::Text(TextFormat::Csv(CsvStyle::ExcelComma)) => "csv for Excel with commas",
            Shape::Text(TextFormat::Ndjson) => "ndjson",
            Shape::Text(TextFormat::Json) => "json",
            Shape::Made(Made::Parquet) => "parquet",
            Shape::Made(Made::Xlsx) => "xlsx",
        }
    }
}

/// What is asked for, as typed.
pub(crate) fn settings(shape: Shape, window: &Window, url: &str, client_id: &str) -> Settings {
    Settings {
        url: url.to_owned(),
        client_id: client_id.to_owned(),
        start_date: window.start().map(|start| start.text.clone()),
        end_date: window.end().map(|end| end.text.clone()),
        format: shape.name().to_owned(),
    }
}

/// The instants of a window, as text.
pub(crate) fn ends(range: DateRange) -> (Option<String>, Option<String>) {
    let text = |end: Option<UtcInstant>| end.map(|instant| instant.to_string());
    (text(range.start), text(range.end))
}

/// The window that a journal's pull began with.
pub(crate) fn window_of(journal: &Journal) -> anyhow::Result<Window> {
    let typed = |text: &Option<String>, instant: &Option<String>| match (text, instant) {
        (None, None) => Ok(None),
        (Some(text), Some(instant)) => {
            let read = DateInput::parse(instant).map(DateInput::as_end);
            let instant =
                read.map_err(|_| anyhow!("the journal of the pull is damaged: {instant:?} is no date"))?;
            Ok(Some(Typed { text: text.clone(), instant }))
        }
        _ => Err(anyhow!("the journal of the pull is damaged: a date without its meaning")),
    };
    let start = typed(&journal.settings.start_date, &journal.from)?;
    let end = typed(&journal.settings.end_date, &journal.to)?;
    Window::between(start, end).map_err(anyhow::Error::msg)
}

/// Refuses what goes to standard output and cannot.
pub(crate) fn check_flags(command: &Pull, shape: Shape) -> Result<(), clap::Error> {
    if command.output != Path::new("-") {
        return Ok(());
    }
    if matches!(shape, Shape::Made(_)) && std::io::stdout().is_terminal() {
        return Err(misuse(
            "pull",
            format!("{} is not for a terminal; name a file, or pipe it on", shape.name()),
        ));
    }
    let flags =
        [("--resume", command.resume), ("--if-changed", command.if_changed), ("--force", command.force)];
    match flags.into_iter().find(|(_, is_set)| *is_set) {
        Some((flag, _)) => Err(misuse("pull", format!("'{flag}' needs a file; '--output -' is none"))),
        None => Ok(()),
    }
}

/// The file that a place is.
pub(crate) fn file_of(place: &Place) -> Option<&Path> {
    match place {
        Place::Stdout => None,
        Place::File(path) => Some(path),
    }
}
