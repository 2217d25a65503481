//! The result of reading a file: warnings, or why it was rejected, and where.

use std::fmt;
use std::io;

use batchscan_model::printable::clip;
use batchscan_model::{Field, FieldError};

use crate::Format;

/// How many errors are reported: enough to see a pattern, few enough to read.
pub const ERRORS_SHOWN_MAX: usize = 20;

/// How many warnings are reported.
pub const WARNINGS_SHOWN_MAX: usize = 100;

/// What to do with values that are valid but cannot be right, such as a rate of 250.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Implausible {
    /// Accept them with a warning.
    #[default]
    Warn,
    /// Reject the file.
    Reject,
}

/// What to do with an id that several batches have: the last one of the file counts, and replaces the one in the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RepeatedIds {
    /// Nothing: a program may write each version of a batch.
    #[default]
    Accept,
    /// Accept the file with a warning: people may have typed one of them wrongly.
    Warn,
    /// Reject the file, as it does with its other warnings.
    Reject,
}

/// How to check the ids of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IdRules {
    /// What to do with an id that several batches have.
    pub repeated: RepeatedIds,
    /// Whether a template makes ids. Equal ones are an error: it has too few fields.
    pub has_template: bool,
    /// Whether stored batches may lose values, be replaced by others or get a twin with other leading zeros. If not, files
    /// for which ids are checked are rejected.
    pub is_forced: bool,
}

/// A file that was read to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadSummary {
    /// The number of batches.
    pub batches: u64,
    /// Values that cannot be right.
    pub warnings: Warnings,
    /// The fields that a table has no column or no values for.
    pub missing: Vec<Field>,
    /// The fields that a table has values for, but not in every row.
    pub incomplete: Vec<Field>,
}

/// Values that were accepted although they cannot be right.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Warnings {
    /// Their number.
    pub count: u64,
    /// The first ones, in file order: at most [`WARNINGS_SHOWN_MAX`].
    pub first: Vec<LocatedError>,
}

/// One error in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocatedError {
    /// Where it is.
    pub location: Location,
    /// What was found and what was expected.
    pub error: FieldError,
}

/// A location in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// A line of a text file, from 1: the first one of the record.
    Line(u64),
    /// A row of a Parquet file, from 1.
    Row(u64),
    /// A row of a sheet of a workbook, both from 1.
    SheetRow(usize, u64),
    /// The schema of a Parquet file.
    Columns,
    /// The file as a whole.
    File,
}

impl Location {
    /// The line of a text file, or the row of a sheet.
    pub(super) fn row(self) -> Option<u64> {
        match self {
            Location::Line(row) | Location::SheetRow(_, row) => Some(row),
            Location::Row(_) | Location::Columns | Location::File => None,
        }
    }
}

/// Why a file was not read, or is rejected.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file has errors.
    #[error("{}", list(errors, *more))]
    Invalid {
        /// The first errors, in file order; never empty.
        errors: Vec<LocatedError>,
        /// Whether there are more.
        more: bool,
        /// Whether all of them are values that are accepted without [`Implausible::Reject`].
        only_implausible: bool,
    },
    /// Reading failed.
    #[error("reading failed: {0}")]
    Io(#[from] io::Error),
    /// The callback stopped the reading.
    #[error("stopped before the end")]
    Stopped,
    /// The format cannot be read from a stream.
    #[error("{} files can only be read from a file", .0.name())]
    NotAStream(Format),
}

impl IdRules {
    /// Whether the ids of a file are to be checked.
    pub fn is_checked(self) -> bool {
        self.has_template || self.repeated != RepeatedIds::Accept
    }

    /// The warning about an id that several batches of a file have, or the error.
    pub fn check_repeated(self, id: &str) -> Result<Option<LocatedError>, ReadError> {
        if self.has_template {
            let error = about_id(format!(
                "two batches get the id \"{}\" from the template in the mapping: add fields to batch_id until each has its own",
                clip(id)
            ));
            return Err(ReadError::Invalid { errors: vec![error], more: false, only_implausible: false });
        }
        self.warn(about_id(format!("\"{}\" is the id of several rows; the last one counts", clip(id))))
    }

    /// The error about an id that belonged to a batch with another name and time, or at least a day away, or the warning.
    pub fn check_replaced(self, id: &str) -> Result<Option<LocatedError>, ReadError> {
        self.lose(about_id(format!(
            "\"{}\" replaces a batch that has a different name and time, or a time at least a day away",
            clip(id)
        )))
    }

    /// The error about an id that differs from a stored one in its leading zeros only, or the warning.
    pub fn check_shortened(self, id: &str, stored: &str) -> Result<Option<LocatedError>, ReadError> {
        self.lose(about_id(format!(
            "\"{}\" differs from the stored \"{}\" only in leading zeros, which a spreadsheet may have changed",
            clip(id),
            clip(stored)
        )))
    }

    /// The error about a stored batch that loses values because the file has none for these fields, or the warning.
    pub fn check_emptied(self, id: &str, fields: &[Field]) -> Result<Option<LocatedError>, ReadError> {
        let mut loss = lost_values("no column or no values in the file", id, fields);
        loss.error.found += "; import a file with all values instead";
        self.lose(loss)
    }

    /// The warning about a stored batch that loses values because the file has none in its row.
    pub fn check_incomplete(self, id: &str, fields: &[Field]) -> Result<Option<LocatedError>, ReadError> {
        self.warn(lost_values("empty cells", id, fields))
    }

    /// What stored batches would lose is an error, unless the import is forced.
    fn lose(self, mut loss: LocatedError) -> Result<Option<LocatedError>, ReadError> {
        if self.repeated == RepeatedIds::Accept {
            return Ok(None);
        }
        if self.is_forced {
            return Ok(Some(loss));
        }
        loss.error.found += "; if the file is right, use batchscan import --force";
        Err(ReadError::Invalid { errors: vec![loss], more: false, only_implausible: false })
    }

    fn warn(self, warning: LocatedError) -> Result<Option<LocatedError>, ReadError> {
        match self.repeated {
            RepeatedIds::Accept => Ok(None),
            RepeatedIds::Warn => Ok(Some(warning)),
            RepeatedIds::Reject => {
                Err(ReadError::Invalid { errors: vec![warning], more: false, only_implausible: true })
            }
        }
    }
}

fn lost_values(cause: &str, id: &str, fields: &[Field]) -> LocatedError {
    let names: Vec<&str> = fields.iter().map(|field| field.name()).collect();
    let values = if fields.len() == 1 { "this value" } else { "these values" };
    let problem = format!("{cause}: batches that it corrects lose {values}, \"{}\" for example", clip(id));
    let error = FieldError::problem(&names.join(", "), problem);
    LocatedError { location: Location::File, error }
}

fn about_id(problem: String) -> LocatedError {
    LocatedError { location: Location::File, error: FieldError::problem("batch_id", problem) }
}

impl fmt::Display for LocatedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.location {
            Location::Line(line) => write!(f, "line {line}: ")?,
            Location::Row(row) | Location::SheetRow(_, row) => write!(f, "row {row}: ")?,
            Location::Columns => f.write_str("columns: ")?,
            Location::File => {}
        }
        self.error.fmt(f)
    }
}

pub(super) fn list(errors: &[LocatedError], more: bool) -> String {
    let mut lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    if more {
        lines.push("there are more errors".into());
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_its_location_and_what_was_expected() {
        for (location, prefix) in [
            (Location::Line(7), "line 7: "),
            (Location::Row(7), "row 7: "),
            (Location::SheetRow(1, 7), "row 7: "),
            (Location::Columns, "columns: "),
            (Location::File, ""),
        ] {
            let error = FieldError::new("avg_germination_rate", "\"n/a\"", "a decimal such as 92.5");
            let text = "avg_germination_rate: expected a decimal such as 92.5, found \"n/a\"";
            assert_eq!(LocatedError { location, error }.to_string(), format!("{prefix}{text}"));
        }
    }
}
