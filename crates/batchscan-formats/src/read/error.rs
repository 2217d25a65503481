//! Why a file was rejected, and where the errors are.

use std::fmt;
use std::io;

use batchscan_model::FieldError;

use crate::Format;

/// How many errors are reported: enough to see a pattern, few enough to read.
pub const ERRORS_SHOWN_MAX: usize = 20;

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
    /// The schema of a Parquet file.
    Columns,
    /// The file as a whole.
    File,
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
    },
    /// Reading failed.
    #[error("reading failed: {0}")]
    Io(#[from] io::Error),
    /// The callback stopped the reading.
    #[error("stopped before the end")]
    Stopped,
    /// The format can only be written.
    #[error("{} files cannot be read", .0.name())]
    NotReadable(Format),
}

impl fmt::Display for LocatedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.location {
            Location::Line(line) => write!(f, "line {line}: ")?,
            Location::Row(row) => write!(f, "row {row}: ")?,
            Location::Columns => f.write_str("columns: ")?,
            Location::File => {}
        }
        self.error.fmt(f)
    }
}

fn list(errors: &[LocatedError], more: bool) -> String {
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
            (Location::Columns, "columns: "),
            (Location::File, ""),
        ] {
            let error = FieldError::new("avg_germination_rate", "\"n/a\"", "a decimal such as 92.5");
            let text = "avg_germination_rate: expected a decimal such as 92.5, found \"n/a\"";
            assert_eq!(LocatedError { location, error }.to_string(), format!("{prefix}{text}"));
        }
    }
}
