//! Reads batches from files, one by one. Memory does not grow with the size of the file.
//!
//! | module | owns |
//! |---|---|
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
mod json;
mod json_syntax;
mod ndjson;
mod parquet;
#[cfg(test)]
mod tests;
mod text_buffer;

use std::fs::File;
use std::io::Read;
use std::sync::atomic::AtomicU64;

pub use collector::Accept;
pub use error::{ERRORS_SHOWN_MAX, LocatedError, Location, ReadError};
pub use text_buffer::RECORD_BYTES_MAX;

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
    file: File,
    bytes_read: &AtomicU64,
    accept: &mut Accept<'_>,
) -> Result<u64, ReadError> {
    if format != Format::Parquet {
        return read_text(format, Box::new(file), bytes_read, accept);
    }
    let mut collector = Collector::new(accept);
    let outcome = parquet::read(file, bytes_read, &mut collector);
    collector.finish(outcome)
}

/// Reads a text format, which needs no access to the end of the file first.
pub(crate) fn read_text(
    format: Format,
    source: Box<dyn Read>,
    bytes_read: &AtomicU64,
    accept: &mut Accept<'_>,
) -> Result<u64, ReadError> {
    let mut collector = Collector::new(accept);
    let mut text = TextBuffer::new(source, bytes_read);
    let outcome = match format {
        Format::Ndjson => ndjson::read(&mut text, &mut collector),
        Format::Json => json::read(&mut text, &mut collector),
        Format::Csv => csv::read(&mut text, &mut collector),
        Format::Parquet | Format::Xlsx => return Err(ReadError::NotReadable(format)),
    };
    collector.finish(outcome)
}
