//! The formats an import reads, by name and by a file's ending.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// How a file holds its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One JSON object a line.
    Ndjson,
    /// A JSON array of objects.
    Json,
    /// Rows of cells under a header, as spreadsheets write them; separated by comma, semicolon or tab.
    Csv,
    /// Apache Parquet.
    Parquet,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 4] = [Format::Ndjson, Format::Json, Format::Csv, Format::Parquet];

    /// The name, as `--format` takes it.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Ndjson => "ndjson",
            Format::Json => "json",
            Format::Csv => "csv",
            Format::Parquet => "parquet",
        }
    }

    /// The format that a file's ending tells, in any case.
    pub fn of_path(path: &Path) -> Option<Format> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "ndjson" | "jsonl" => Some(Format::Ndjson),
            "json" => Some(Format::Json),
            "csv" | "tsv" => Some(Format::Csv),
            "parquet" => Some(Format::Parquet),
            _ => None,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        Format::ALL.into_iter().find(|format| format.name() == name).ok_or(UnknownFormat)
    }
}

/// A name that is no format's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected ndjson, json, csv or parquet")]
pub struct UnknownFormat;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_tells_the_format_in_any_case() {
        let of = |path: &str| Format::of_path(Path::new(path));
        assert_eq!(of("a.ndjson"), Some(Format::Ndjson));
        assert_eq!(of("b/a.JSONL"), Some(Format::Ndjson));
        assert_eq!(of("a.b.json"), Some(Format::Json));
        assert_eq!(of("a.Csv"), Some(Format::Csv));
        assert_eq!(of("a.tsv"), Some(Format::Csv));
        assert_eq!(of("a.parquet"), Some(Format::Parquet));
        assert_eq!((of("a.xlsx"), of("json"), of("-")), (None, None, None));
    }

    #[test]
    fn every_format_is_found_by_its_name() {
        for format in Format::ALL {
            assert_eq!(format.to_string().parse(), Ok(format));
        }
        assert_eq!("xml".parse::<Format>(), Err(UnknownFormat));
    }
}
