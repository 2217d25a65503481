//! Writes batches to files.
//!
//! | module | owns |
//! |---|---|
//! | `text`, `csv` | formats written by appending: CSV, NDJSON, JSON |
//! | `parquet`, `xlsx` | formats written at the end, from all batches |
//! | `output` | what those two take and return |

mod csv;
mod output;
mod parquet;
mod text;
mod xlsx;

pub use csv::CsvStyle;
pub use output::{Batches, BoxError, CELL_UNITS_MAX, CutTexts, WriteError};
pub use parquet::write as write_parquet;
pub use text::TextFormat;
pub use xlsx::write as write_xlsx;
