//! The output format and checks of the options. No I/O.

use std::io::IsTerminal;
use std::path::Path;

use batchscan_formats::Format;
use batchscan_formats::write::{Columns, CsvStyle, TextFormat};

use crate::args::{Pull, usage_error};
use crate::selection::Selection;

/// The format of the output file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputFormat {
    /// Written row by row.
    Text(TextFormat),
    /// Converted when all rows are there.
    Binary(BinaryFormat),
}

/// A format that is converted from NDJSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BinaryFormat {
    Parquet,
    Xlsx,
}

impl OutputFormat {
    /// The format given by `--format` or the file extension.
    pub(crate) fn from_args(command: &Pull) -> Result<Self, clap::Error> {
        let Some(format) = command.format.or_else(|| Format::for_writing(&command.output)) else {
            let hint = "add '--format csv', ndjson, json, parquet or xlsx";
            return Err(unknown_extension("pull", &command.output, hint));
        };
        if command.excel.is_some() && format != Format::Csv {
            let text = "'--excel' is only for CSV; .xlsx files open in Excel without it";
            return Err(usage_error("pull", text));
        }
        let style = command.excel.unwrap_or(CsvStyle::Plain);
        Ok(match format {
            Format::Csv => OutputFormat::Text(TextFormat::Csv(style)),
            Format::Ndjson => OutputFormat::Text(TextFormat::Ndjson),
            Format::Json => OutputFormat::Text(TextFormat::Json),
            Format::Parquet => OutputFormat::Binary(BinaryFormat::Parquet),
            Format::Xlsx => OutputFormat::Binary(BinaryFormat::Xlsx),
        })
    }

    /// Whether fields that are not in the API contract are lost.
    pub(crate) fn drops_unknown_fields(self) -> bool {
        !matches!(self, OutputFormat::Text(TextFormat::Ndjson | TextFormat::Json))
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            OutputFormat::Text(TextFormat::Csv(CsvStyle::Plain)) => "csv",
            OutputFormat::Text(TextFormat::Csv(CsvStyle::ExcelSemicolon)) => "csv for Excel with semicolons",
            OutputFormat::Text(TextFormat::Csv(CsvStyle::ExcelComma)) => "csv for Excel with commas",
            OutputFormat::Text(TextFormat::Ndjson) => "ndjson",
            OutputFormat::Text(TextFormat::Json) => "json",
            OutputFormat::Binary(BinaryFormat::Parquet) => "parquet",
            OutputFormat::Binary(BinaryFormat::Xlsx) => "xlsx",
        }
    }
}

/// A usage error if a file's extension is not that of a format.
pub(crate) fn unknown_extension(command: &str, output: &Path, hint: &str) -> clap::Error {
    let is_old_excel = output.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("xls"));
    let hint = if is_old_excel { "did you mean .xlsx?" } else { hint };
    usage_error(command, format!("cannot infer the format from '{}'; {hint}", output.display()))
}

/// Which batches and fields are written.
#[derive(Clone, Debug)]
pub(crate) struct Contents {
    pub(crate) selection: Selection,
    pub(crate) columns: Columns,
}

/// Rejects options that do not work with standard output.
pub(crate) fn check_stdout(command: &Pull, format: OutputFormat) -> Result<(), clap::Error> {
    if command.output != Path::new("-") {
        return Ok(());
    }
    if matches!(format, OutputFormat::Binary(_)) && std::io::stdout().is_terminal() {
        let text = format!("cannot write {} to a terminal; use a file or a pipe", format.name());
        return Err(usage_error("pull", text));
    }
    let flags = [("--if-changed", command.if_changed), ("--force", command.force)];
    match flags.into_iter().find(|(_, is_set)| *is_set) {
        Some((flag, _)) => {
            Err(usage_error("pull", format!("'{flag}' needs a file; it does not work with '--output -'")))
        }
        None => Ok(()),
    }
}
