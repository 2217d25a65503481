//! Writes batches to files.
//!
//! | module | owns |
//! |---|---|
//! | `text`, `csv` | formats written by appending: CSV, NDJSON, JSON |
//! | `parquet`, `xlsx` | formats written at the end, from all batches |
//! | `table` | tables of other values, such as a summary |
//! | `columns` | which fields a file has |
//! | `output` | what those two take and return |

mod columns;
mod csv;
mod output;
mod parquet;
mod table;
mod text;
mod xlsx;

pub use columns::Columns;
pub use csv::CsvStyle;
pub use output::{Batches, BoxError, CELL_UNITS_MAX, CutTexts, WriteError};
pub use parquet::write as write_parquet;
pub use table::{table_to_csv, table_to_xlsx};
pub use text::TextFormat;
pub use xlsx::write as write_xlsx;
