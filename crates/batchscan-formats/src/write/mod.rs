//! Writes batches to files.
//!
//! | module | owns |
//! |---|---|
//! | `text`, `csv` | formats written by appending: CSV, NDJSON, JSON |
//! | `parquet`, `xlsx` | formats written at once, from all batches |
//! | `table` | tables of other values, such as a summary |
//! | `columns` | which fields a file has |
//! | `output` | what [`write_file`] takes and returns |

mod columns;
mod csv;
mod output;
mod parquet;
mod table;
mod text;
mod xlsx;

use std::io::{self, Seek, Write};
use std::path::Path;

pub use columns::Columns;
pub use csv::CsvStyle;
pub use output::{Batches, BoxError, CELL_UNITS_MAX, CutTexts, WriteError};
pub use table::{table_to_csv, table_to_xlsx};
pub use text::TextWriter;

use crate::Format;

/// Writes a complete file in a format that is not text; [`TextWriter`] is for the others.
///
/// The sheets of a workbook are first written to `temp_dir`, about a kilobyte per batch.
pub fn write_file(
    format: Format,
    batches: &mut Batches<'_>,
    columns: &Columns,
    file: impl Write + Seek + Send,
    temp_dir: &Path,
) -> Result<CutTexts, WriteError> {
    match format {
        Format::Parquet => parquet::write(batches, columns, file),
        Format::Xlsx => xlsx::write(batches, columns, file, temp_dir),
        Format::Csv | Format::Ndjson | Format::Json => {
            Err(io::Error::from(io::ErrorKind::Unsupported).into())
        }
    }
}
