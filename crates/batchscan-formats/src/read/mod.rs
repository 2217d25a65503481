//! Reads batches from files, one by one. Memory does not grow with the size of the file, except for the
//! texts that Excel shares between cells, which have a limit.
//!
//! | module | owns |
//! |---|---|
//! | `error` | [`ReadError`] and [`Location`] |
//! | `columns` | what the columns of a table are |
//! | `collector` | validates each record, collects batches and errors |
//! | `text_buffer` | the unread part of a text file, with line numbers |
//! | `json`, `ndjson`, `json_syntax` | JSON arrays and lines; syntax errors in plain words |
//! | `encoding` | text in other encodings than UTF-8 |
//! | `csv` | rows of cells |
//! | `parquet` | typed columns |
//! | `xlsx` | sheets of typed cells |
//! | `mapping` | [`Mapping`]: what a person states about a file |
//! | `title`, `header` | which column has which field, for CSV, Parquet and Excel |
//! | `convert`, `dates`, `number` | dates, numbers and flags as people and spreadsheets write them |
//! | `rates` | percent or fraction |
//! | `preview` | [`Preview`]: how a file is understood |
//! | `catch_panic` | panics of libraries as errors |

mod catch_panic;
mod collector;
mod columns;
mod convert;
pub(crate) mod csv;
mod dates;
mod encoding;
mod error;
#[cfg(test)]
mod foreign_files;
mod header;
mod json;
mod json_syntax;
mod mapping;
mod ndjson;
mod number;
mod parquet;
mod preview;
mod rates;
#[cfg(test)]
mod tests;
mod text_buffer;
mod title;
mod xlsx;

use std::fs::File;
use std::io::{self, Read, Seek};
use std::ops::ControlFlow;
use std::sync::atomic::AtomicU64;

use batchscan_model::{UtcInstant, Zone};
use encoding_rs::UTF_8;

pub use collector::Accept;
pub use error::{
    ERRORS_SHOWN_MAX, IdRules, Implausible, LocatedError, Location, ReadError, ReadSummary, RepeatedIds,
    WARNINGS_SHOWN_MAX, Warnings,
};
pub use mapping::{DecimalMark, IdTemplate, Mapping, MappingErrors, RateUnit, RateUnits};
pub use preview::{Preview, PreviewColumn};
pub use text_buffer::RECORD_BYTES_MAX;

use crate::Format;
use collector::Collector;
use preview::Notes;
use text_buffer::TextBuffer;

/// How to read a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// What to do with values that cannot be right, and with other warnings.
    pub implausible: Implausible,
    /// What a person states about the file.
    pub mapping: Mapping,
    /// The zone of times without one, before that of the mapping. A zone in a title comes first.
    pub timezone: Option<Zone>,
    /// Whether stored batches may lose values or be replaced by others.
    pub is_forced: bool,
    /// The time of the import: later batches cannot be right. `None` does not check that.
    pub now: Option<UtcInstant>,
}

impl ReadOptions {
    /// What to do with warnings, also as the mapping says.
    fn implausible(&self) -> Implausible {
        if self.mapping.strict { Implausible::Reject } else { self.implausible }
    }

    /// How to check the ids of a file.
    pub fn id_rules(&self, format: Format) -> IdRules {
        let repeated = match (format, self.implausible()) {
            (Format::Csv | Format::Xlsx, Implausible::Warn) => RepeatedIds::Warn,
            (Format::Csv | Format::Xlsx, Implausible::Reject) => RepeatedIds::Reject,
            (Format::Ndjson | Format::Json | Format::Parquet, _) => RepeatedIds::Accept,
        };
        IdRules { repeated, has_template: self.mapping.batch_id.is_some(), is_forced: self.is_forced }
    }

    /// The zone of times without one, unless a title has another.
    fn zone_name(&self) -> Option<&str> {
        self.timezone.as_ref().or(self.mapping.timezone.as_ref()).map(Zone::name)
    }
}

/// Reads a file to its end and passes each batch with its JSON text to `accept`, in file order.
///
/// `bytes_read` grows while reading, up to the length of the file. After the first error no batch is passed on, but
/// reading continues to find up to [`ERRORS_SHOWN_MAX`] errors. An error at the end of the file can reject all of it.
pub fn read(
    format: Format,
    file: File,
    options: &ReadOptions,
    bytes_read: &AtomicU64,
    accept: &mut Accept<'_>,
) -> Result<ReadSummary, ReadError> {
    read_with_notes(format, file, options, bytes_read, accept).0
}

/// Reads a text format from a stream, since it needs no access to the end of the file first.
pub fn read_text(
    format: Format,
    source: Box<dyn Read>,
    options: &ReadOptions,
    bytes_read: &AtomicU64,
    accept: &mut Accept<'_>,
) -> Result<ReadSummary, ReadError> {
    read_stream(format, source, options, bytes_read, accept).0
}

/// Reads a file to its end and describes how it is understood. What the store would reject, such as ids that are used twice,
/// is not known.
pub fn preview(format: Format, file: File, options: &ReadOptions) -> Preview {
    let read = |file, options: &ReadOptions| {
        let mut accept = |_, _| ControlFlow::Continue(());
        let (result, notes) = read_with_notes(format, file, options, &AtomicU64::new(0), &mut accept);
        Preview::new(notes, options, result)
    };
    let (again, third) = (file.try_clone(), file.try_clone());
    let mut preview = read(file, options);
    // A row without all required titles turns out to be the header only at the end. Its values are read now.
    if let Some(options) = preview.as_header(options)
        && let Ok(file) = again.and_then(rewound)
    {
        preview = read(file, &options).without_place_of(&preview);
    }
    // What else is wrong, so that a person can solve all of it at once.
    if let Some(options) = preview.as_suggested(options)
        && let Ok(file) = third.and_then(rewound)
    {
        preview.set_needed(read(file, &options));
    }
    preview
}

fn rewound(mut file: File) -> io::Result<File> {
    file.rewind().map(|()| file)
}

fn read_with_notes(
    format: Format,
    file: File,
    options: &ReadOptions,
    bytes_read: &AtomicU64,
    accept: &mut Accept<'_>,
) -> (Result<ReadSummary, ReadError>, Notes) {
    let mut collector = Collector::new(options, accept);
    let outcome = match format {
        Format::Parquet => parquet::read(file, options, bytes_read, &mut collector),
        Format::Xlsx => xlsx::read(file, options, bytes_read, &mut collector),
        Format::Csv | Format::Ndjson | Format::Json => {
            return read_stream(format, Box::new(file), options, bytes_read, accept);
        }
    };
    collector.finish(outcome)
}

fn read_stream(
    format: Format,
    source: Box<dyn Read>,
    options: &ReadOptions,
    bytes_read: &AtomicU64,
    accept: &mut Accept<'_>,
) -> (Result<ReadSummary, ReadError>, Notes) {
    let mut collector = Collector::new(options, accept);
    let mut text = TextBuffer::new(source, bytes_read);
    let outcome = match format {
        Format::Ndjson => ndjson::read(&mut text, &mut collector),
        Format::Json => json::read(&mut text, &mut collector),
        Format::Csv => csv::read(&mut text, options, &mut collector),
        Format::Parquet | Format::Xlsx => return (Err(ReadError::NotAStream(format)), Notes::default()),
    };
    collector.notes().set_encoding(text.encoding().unwrap_or(UTF_8));
    collector.finish(outcome)
}
