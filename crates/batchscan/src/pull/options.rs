//! The output format and checks of the options. No I/O.

use std::io::IsTerminal;
use std::path::Path;

use batchscan_formats::Format;
use batchscan_formats::write::Columns;

use crate::args::{Pull, usage_error};
use crate::selection::Selection;

/// The format given by `--format` or the file extension.
pub(crate) fn output_format(command: &Pull) -> Result<Format, clap::Error> {
    let Some(format) = command.format.or_else(|| Format::for_writing(&command.output)) else {
        let hint = "add '--format csv', ndjson, json, parquet or xlsx";
        return Err(unknown_extension("pull", &command.output, hint));
    };
    if command.excel.is_some() && format != Format::Csv {
        let text = "'--excel' is only for CSV; .xlsx files open in Excel without it";
        return Err(usage_error("pull", text));
    }
    Ok(format)
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
pub(crate) fn check_stdout(command: &Pull, format: Format) -> Result<(), clap::Error> {
    if command.output != Path::new("-") {
        return Ok(());
    }
    if !format.is_text() && std::io::stdout().is_terminal() {
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
