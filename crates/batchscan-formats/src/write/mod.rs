//! The formats a pull writes. Knows batches and bytes; of the service and of where a file lies it knows nothing.
//!
//! | module | owns |
//! |---|---|
//! | [`text`] | the formats that grow at their end, so that a pull that broke off goes on from a length in bytes |
//! | [`csv`] | a batch as a line of cells, for programs and for Excel |
//! | [`parquet`], [`xlsx`] | the formats that are made at the end, from all batches in their order |
//! | [`cells`] | a batch as eighteen cells, which is all that tables need to know of it |

mod cells;
mod csv;
pub mod parquet;
#[cfg(test)]
mod testing;
pub mod text;
pub mod xlsx;

use std::path::Path;

use batchscan_model::{Batch, BatchId, Field};

/// How a file holds its batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// A table as text, for programs and spreadsheets
    Csv,
    /// One JSON object a line, as the service sent it
    Ndjson,
    /// A JSON array, as the service sent it
    Json,
    /// Typed columns, for data frames and databases
    Parquet,
    /// An Excel workbook
    Xlsx,
}

impl Format {
    /// The format that a file's ending tells, in any case.
    pub fn by_ending(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "csv" => Some(Format::Csv),
            "ndjson" | "jsonl" => Some(Format::Ndjson),
            "json" => Some(Format::Json),
            "parquet" => Some(Format::Parquet),
            "xlsx" => Some(Format::Xlsx),
            _ => None,
        }
    }
}

/// For whom a CSV file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CsvStyle {
    /// Programs: RFC 4180, every value as the interface prints it.
    Plain,
    /// Excel where the decimal sign is a comma: it then wants semicolons between cells.
    ExcelSemicolon,
    /// Excel where the decimal sign is a point.
    ExcelComma,
}

/// All batches of a pull, in their order. Reading them back can fail.
pub type Batches<'a> = dyn Iterator<Item = anyhow::Result<Batch>> + 'a;

/// What a reader of the file should know that the file itself does not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remarks {
    /// How many texts were longer than the format can hold.
    pub cut_texts: u64,
    /// Where the first of them stands.
    pub first_cut: Option<(BatchId, Field)>,
}

impl Remarks {
    /// The remarks in a sentence, if there is anything to say.
    pub fn sentence(&self) -> Option<String> {
        let (id, field) = self.first_cut.as_ref()?;
        let (count, id) = (self.cut_texts, id.as_str());
        let (which, length) = (if count == 1 { "text is" } else { "texts are" }, xlsx::CELL_UNITS_MAX);
        let place = if count == 1 { "namely" } else { "the first one" };
        Some(format!(
            "{count} {which} cut after {length} characters, all that a cell of Excel holds: {place} {field} of batch \
             {id:?}; the other formats hold all of it"
        ))
    }

    fn cut(&mut self, id: &BatchId, field: Field) {
        self.cut_texts += 1;
        self.first_cut.get_or_insert_with(|| (id.clone(), field));
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    #[test]
    fn a_format_is_known_by_its_name_and_by_a_files_ending_in_any_case() {
        for format in Format::value_variants() {
            let name = format.to_possible_value().unwrap().get_name().to_owned();
            assert_eq!(Format::from_str(&name, false).as_ref(), Ok(format));
            let path = format!("a.b/scans.{}", name.to_ascii_uppercase());
            assert_eq!(Format::by_ending(Path::new(&path)), Some(*format));
        }
        assert_eq!(Format::by_ending(Path::new("scans.jsonl")), Some(Format::Ndjson));
        for path in ["csv", ".csv", "scans.xls", "scans.csv.gz", "scans."] {
            assert_eq!(Format::by_ending(Path::new(path)), None, "{path}");
        }
    }

    #[test]
    fn remarks_tell_how_many_texts_were_cut_and_where_the_first_is() {
        let mut remarks = Remarks::default();
        assert_eq!(remarks.sentence(), None);
        remarks.cut(&BatchId::new("b-1").unwrap(), Field::Comment);
        assert_eq!(
            remarks.sentence().unwrap(),
            "1 text is cut after 32767 characters, all that a cell of Excel holds: namely comment of batch \"b-1\"; \
             the other formats hold all of it"
        );
        remarks.cut(&BatchId::new("b-2").unwrap(), Field::BatchName);
        let told = remarks.sentence().unwrap();
        assert!(
            told.starts_with("2 texts are cut") && told.contains("the first one comment of batch \"b-1\"")
        );
    }
}
