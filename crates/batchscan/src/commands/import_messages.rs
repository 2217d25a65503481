//! What `import`, its preview and `watch` print about a file.

use std::path::Path;

use batchscan_formats::read::ReadError;
use batchscan_formats::unsupported_hint;

use crate::numbers::{count, grouped};
use crate::terminal::note;

/// What to do with a file whose extension is not known.
pub(super) fn format_hint(file: &Path) -> &'static str {
    match unsupported_hint(file) {
        _ if file.is_dir() => "is a folder: name the files in it",
        Some(hint) => hint,
        None => "cannot infer the format: add --format ndjson, json, csv, parquet or xlsx",
    }
}

/// The name of a file in messages.
pub(super) fn display_name(file: &Path) -> String {
    if file == Path::new("-") { "standard input".into() } else { file.display().to_string() }
}

/// Why a file was rejected: a line for each error, and the summary.
pub(super) fn describe_rejection(
    name: &str,
    error: &ReadError,
    nothing: &str,
    advice: &str,
) -> (Vec<String>, String) {
    let (errors, more, only_implausible) = match error {
        ReadError::Invalid { errors, more, only_implausible } => (errors, more, only_implausible),
        ReadError::Io(error) => return (Vec::new(), format!("cannot read {name}: {error}. {nothing}")),
        other => return (Vec::new(), other.to_string()),
    };
    let lines = errors.iter().map(|error| format!("{name}: {error}")).collect();
    let hint = if errors.iter().any(|error| error.error.is_unknown_field()) {
        " (`batchscan import --help` lists the fields)"
    } else {
        ""
    };
    let more = if *more { " or more" } else { "" };
    if *only_implausible {
        let warnings = count(errors.len() as u64, "warning", "warnings");
        let them = if errors.len() == 1 { "it" } else { "them" };
        return (
            lines,
            format!(
                "{name} has {warnings}{more}, and --strict or strict = true in the mapping rejects {them}. {nothing}"
            ),
        );
    }
    let errors = count(errors.len() as u64, "error", "errors");
    (lines, format!("{name} has {errors}{more}. {nothing}; {advice}{hint}"))
}

/// `batchscan imports` lists more.
const WARNINGS_PRINTED_MAX: usize = 5;

/// Prints the first warnings, each on its own line.
pub(super) fn print_warnings(file: &Path, total: u64, first: &[String]) {
    let name = display_name(file);
    for warning in first.iter().take(WARNINGS_PRINTED_MAX) {
        note(&format!("warning: {name}: {warning}"));
    }
    let more = total.saturating_sub(WARNINGS_PRINTED_MAX as u64);
    if more > 0 {
        note(&format!("warning: {name}: {} more", grouped(more)));
    }
}
