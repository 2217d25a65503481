//! Reads batches from files, one by one. Memory does not grow with the size of the file.
//!
//! | module | owns |
//! |---|---|
//! | `input` | [`Input`] and the limit of a record |
//! | `error` | [`ReadError`] and [`Location`] |
//! | `collector` | validates each record, collects batches and errors |
//! | `text_buffer` | the unread part of a text file, with line numbers |
//! | `json`, `ndjson`, `json_syntax` | JSON arrays and lines; syntax errors in plain words |
//! | `csv`, `csv_rows` | rows of cells |
//! | `parquet` | typed columns |
//! | `header` | which column has which field, for CSV and Parquet |

mod collector;
mod csv;
mod csv_rows;
mod error;
mod header;
mod input;
mod json;
mod json_syntax;
mod ndjson;
mod parquet;
#[cfg(test)]
mod tests;
mod text_buffer;

use std::sync::atomic::AtomicU64;

pub use collector::Accept;
pub use error::{ERRORS_SHOWN_MAX, LocatedError, Location, ReadError};
pub use input::{Input, RECORD_BYTES_MAX};

use crate::Format;
use collector::Collector;
use text_buffer::TextBuffer;

/// Reads a file to its end and passes each batch with its JSON text to `accept`, in file order. Returns the number of
/// batches.
///
/// `bytes_read` grows while reading, up to the length of the file. After the first error no batch is passed on, but
/// reading continues to find up to [`ERRORS_SHOWN_MAX`] errors.
pub fn read(
    format: Format,
    input: Input,
    bytes_read: &AtomicU64,
    accept: &mut Accept<'_>,
) -> Result<u64, ReadError> {
    let mut collector = Collector::new(accept);
    let outcome = match format {
        Format::Ndjson => ndjson::read(&mut TextBuffer::new(input, bytes_read), &mut collector),
        Format::Json => json::read(&mut TextBuffer::new(input, bytes_read), &mut collector),
        Format::Csv => csv::read(&mut TextBuffer::new(input, bytes_read), &mut collector),
        Format::Parquet => parquet::read(input, bytes_read, &mut collector),
        Format::Xlsx => return Err(ReadError::NotReadable(format)),
    };
    collector.finish(outcome)
}
