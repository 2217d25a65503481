//! What is wrong with a file, and where.

use std::fmt;
use std::io;

use batchscan_model::FieldError;

/// How many faults are told at once: enough to see a pattern, few enough to read.
pub const FAULTS_SHOWN_MAX: usize = 20;

/// One thing that is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where it stands.
    pub place: Place,
    /// What stood there, and what was expected.
    pub fault: FieldError,
}

/// A place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line of a text file, from 1: the one in which the record begins.
    Line(u64),
    /// A row of a Parquet file, from 1.
    Row(u64),
    /// The columns of a Parquet file, before any row.
    Columns,
    /// The file as a whole.
    File,
}

/// Why a file was not read to its end, or was and is refused.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file has faults.
    #[error("{}", list(faults, *more))]
    Faulty {
        /// The first of them, in the order of the file; never empty.
        faults: Vec<Fault>,
        /// Whether there are others.
        more: bool,
    },
    /// Reading failed.
    #[error("reading failed: {0}")]
    Unreadable(#[from] io::Error),
    /// The taker of the batches asked to stop.
    #[error("stopped before the end")]
    Stopped,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.place, self.fault)
    }
}

impl fmt::Display for Place {
    /// As the beginning of a sentence about the place.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line(line) => write!(f, "line {line}: "),
            Place::Row(row) => write!(f, "row {row}: "),
            Place::Columns => f.write_str("columns: "),
            Place::File => Ok(()),
        }
    }
}

fn list(faults: &[Fault], more: bool) -> String {
    let mut lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
    if more {
        lines.push("there are more faults after these".into());
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_names_its_place_what_stood_there_and_what_was_expected() {
        let told = |place| {
            let (field, found) = ("avg_germination_rate".into(), "\"92,5\"".into());
            let fault = FieldError { field, found, expected: "a decimal number such as 92.50".into() };
            Fault { place, fault }.to_string()
        };
        let sentence = "avg_germination_rate: found \"92,5\", expected a decimal number such as 92.50";
        assert_eq!(told(Place::Line(7)), format!("line 7: {sentence}"));
        assert_eq!(told(Place::Row(7)), format!("row 7: {sentence}"));
        assert_eq!(told(Place::Columns), format!("columns: {sentence}"));
        assert_eq!(told(Place::File), sentence);
    }
}
