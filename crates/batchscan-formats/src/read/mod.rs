//! Reads batches from files, one by one. Memory does not grow with the size of the file, except for the
//! texts that Excel shares between cells, which have a limit.
//!
//! | module | owns |
//! |---|---|
//! | `error` | [`ReadError`] and [`Location`] |
//! | `collector` | validates each record, collects batches and errors |
//! | `text_buffer` | the unread part of a text file, with line numbers |
//! | `json`, `ndjson`, `json_syntax` | JSON arrays and lines; syntax errors in plain words |
//! | `csv` | rows of cells; numbers and dates as spreadsheets write them |
//! | `parquet` | typed columns |
//! | `xlsx` | sheets of typed cells |
//! | `header` | which column has which field, for CSV, Parquet and Excel |
//! | `catch_panic` | panics of libraries as errors |

mod catch_panic;
mod collector;
pub(crate) mod csv;
mod error;
mod header;
mod json;
mod json_syntax;
mod ndjson;
mod parquet;
#[cfg(test)]
mod tests;
mod text_buffer;
mod xlsx;

use std::fs::File;
use std::io::Read;
use std::sync::atomic::AtomicU64;

pub use collector::Accept;
pub use error::{
    ERRORS_SHOWN_MAX, Implausible, LocatedError, Location, ReadError, ReadSummary, WARNINGS_SHOWN_MAX,
    Warnings,
};
pub use text_buffer::RECORD_BYTES_MAX;

use crate::Format;
use collector::Collector;
use text_buffer::TextBuffer;

/// Reads a file to its end and passes each batch with its JSON text to `accept`, in file order.
///
/// `bytes_read` grows while reading, up to the length of the file. After the first error no batch is passed on, but
/// reading continues to find up to [`ERRORS_SHOWN_MAX`] errors.
pub fn read(
    format: Format,
    file: File,
    implausible: Implausible,
    bytes_read: &AtomicU64,
    accept: &mut Accept<'_>,
) -> Result<ReadSummary, ReadError> {
    if format.is_text() {
        return read_text(format, Box::new(file), implausible, bytes_read, accept);
    }
    let mut collector = Collector::new(implausible, accept);
    let outcome = match format {
        Format::Parquet => parquet::read(file, bytes_read, &mut collector),
        _ => xlsx::read(file, bytes_read, &mut collector),
    };
    collector.finish(outcome)
}

/// Reads a text format from a stream, since it needs no access to the end of the file first.
pub fn read_text(
    format: Format,
    source: Box<dyn Read>,
    implausible: Implausible,
    bytes_read: &AtomicU64,
    accept: &mut Accept<'_>,
) -> Result<ReadSummary, ReadError> {
    let mut collector = Collector::new(implausible, accept);
    let mut text = TextBuffer::new(source, bytes_read);
    let outcome = match format {
        Format::Ndjson => ndjson::read(&mut text, &mut collector),
        Format::Json => json::read(&mut text, &mut collector),
        Format::Csv => csv::read(&mut text, &mut collector),
        Format::Parquet | Format::Xlsx => return Err(ReadError::NotAStream(format)),
    };
    collector.finish(outcome)
}
