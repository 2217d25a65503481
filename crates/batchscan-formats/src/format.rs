//! The file formats: by name, file extension and media type.

use std::path::Path;

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Rows of cells under a header.
    Csv,
    /// One JSON object per line.
    Ndjson,
    /// A JSON array of objects.
    Json,
    /// Apache Parquet.
    Parquet,
    /// An Excel workbook.
    Xlsx,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 5] = [Format::Csv, Format::Ndjson, Format::Json, Format::Parquet, Format::Xlsx];

    /// The name, as `--format` accepts it, and the file extension.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Csv => "csv",
            Format::Ndjson => "ndjson",
            Format::Json => "json",
            Format::Parquet => "parquet",
            Format::Xlsx => "xlsx",
        }
    }

    /// The format with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Format::ALL.into_iter().find(|format| format.name() == name)
    }

    /// The value of `Content-Type`.
    pub const fn media_type(self) -> &'static str {
        match self {
            Format::Csv => "text/csv; charset=utf-8; header=present",
            Format::Ndjson => "application/x-ndjson",
            Format::Json => "application/json",
            Format::Parquet => "application/vnd.apache.parquet",
            Format::Xlsx => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        }
    }

    /// The format of a body, by its `Content-Type` in any case and with any parameters.
    pub fn from_media_type(text: &str) -> Option<Self> {
        match &*essence(text).to_ascii_lowercase() {
            "text/tab-separated-values" => Some(Format::Csv),
            "application/ndjson" | "application/jsonl" => Some(Format::Ndjson),
            known => Format::ALL.into_iter().find(|format| essence(format.media_type()) == known),
        }
    }

    /// Whether it is text, which can be read and written from start to end.
    pub const fn is_text(self) -> bool {
        matches!(self, Format::Csv | Format::Ndjson | Format::Json)
    }

    /// The purpose, as a line of help.
    pub const fn description(self) -> &'static str {
        match self {
            Format::Csv => "Text table, for programs and spreadsheets",
            Format::Ndjson => "One JSON object per line",
            Format::Json => "JSON array",
            Format::Parquet => "Typed columns, for data frames and databases",
            Format::Xlsx => "Excel workbook",
        }
    }

    /// The format to read a file as, by its extension in any case.
    pub fn for_reading(path: &Path) -> Option<Self> {
        match extension(path)?.as_str() {
            "tsv" | "tab" | "txt" => Some(Format::Csv),
            // With macros, which are ignored.
            "xlsm" => Some(Format::Xlsx),
            _ => Self::for_writing(path),
        }
    }

    /// The format to write a file in, by its extension in any case.
    pub fn for_writing(path: &Path) -> Option<Self> {
        match extension(path)?.as_str() {
            "jsonl" => Some(Format::Ndjson),
            name => Self::from_name(name),
        }
    }
}

/// What to do with a file that people take for one that can be imported, by its extension; `None` for any other file.
pub fn unsupported_hint(path: &Path) -> Option<&'static str> {
    Some(match extension(path)?.as_str() {
        "xls" | "xlsb" | "ods" | "numbers" => "is another spreadsheet: save it as .xlsx and import that",
        "pdf" | "docx" => "is a document: export its table as .xlsx or .csv and import that",
        "gz" | "zst" | "zip" | "7z" => {
            "is compressed: decompress it first, such as `zcat FILE | batchscan import --format csv … -`"
        }
        _ => return None,
    })
}

/// A media type without its parameters.
fn essence(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or_default().trim()
}

fn extension(path: &Path) -> Option<String> {
    path.extension()?.to_str().map(str::to_ascii_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_found_by_its_name_media_type_and_file_extension() {
        for format in Format::ALL {
            assert_eq!(Format::from_name(format.name()), Some(format));
            assert_eq!(Format::from_media_type(format.media_type()), Some(format));
        }
        assert_eq!(Format::from_name("xml"), None);
        assert_eq!(Format::from_media_type("Text/CSV ; header=absent"), Some(Format::Csv));
        assert_eq!(Format::from_media_type("text/plain"), None);
        for (path, reading, writing) in [
            ("a.ndjson", Some(Format::Ndjson), Some(Format::Ndjson)),
            ("b/a.JSONL", Some(Format::Ndjson), Some(Format::Ndjson)),
            ("a.b.json", Some(Format::Json), Some(Format::Json)),
            ("a.Csv", Some(Format::Csv), Some(Format::Csv)),
            ("a.tsv", Some(Format::Csv), None),
            ("a.TXT", Some(Format::Csv), None),
            ("a.parquet", Some(Format::Parquet), Some(Format::Parquet)),
            ("a.xlsx", Some(Format::Xlsx), Some(Format::Xlsx)),
            ("a.XLSM", Some(Format::Xlsx), None),
            ("a.xls", None, None),
            ("a.csv.gz", None, None),
            ("csv", None, None),
            (".csv", None, None),
            ("a.", None, None),
            ("-", None, None),
        ] {
            let found = (Format::for_reading(Path::new(path)), Format::for_writing(Path::new(path)));
            assert_eq!(found, (reading, writing), "{path}");
        }
    }
}
