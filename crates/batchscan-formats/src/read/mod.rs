//! Turns files into batches: a stream of records, each with its place in the file, judged and rendered one by one.
//! Only `carry` knows the store; to all else, what becomes of a batch is the caller's business.
//!
//! | module | owns |
//! |---|---|
//! | `format` | [`Format`]: the formats by name and by a file's ending |
//! | [`fault`] | what is wrong with a file, and where |
//! | `intake` | the way of one record: judged, rendered, handed out; faults are collected |
//! | `window` | the held part of a text file, with the line it stands in |
//! | `ndjson`, `json` | one object a line; an array, or objects one after another |
//! | `syntax` | what is wrong with a text as JSON, in words |
//! | `csv`, `rows` | the rows of a spreadsheet, under a header of field names; where rows and cells end |
//! | `parquet` | columns by name, a few rows of each at a time |
//! | `carry` | one file, read on a thread of its own, into the store |
//! | `columns` | which column holds which field, for both kinds of tables |
//!
//! Memory does not grow with the file: a record has a limit, and no more than a few of them are held.

mod columns;
mod csv;
pub mod fault;
mod format;
mod intake;
mod json;
mod ndjson;
mod parquet;
mod rows;
mod syntax;
#[cfg(test)]
mod testing;
mod window;

use std::fs::File;
use std::io::Read;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicU64;

use batchscan_model::Batch;

pub use fault::{FAULTS_SHOWN_MAX, Fault, Place, ReadError};
pub use format::{Format, UnknownFormat};

use intake::Intake;
use window::Window;

/// The longest record of a text file. An honest one is below 2 KiB and even the longest batch there may be takes
/// 64 KiB; without a limit, one lost newline or one open quote would draw the rest of the file into memory.
pub const RECORD_BYTES_MAX: usize = 1024 * 1024;

/// What is read.
pub enum Input {
    /// An open file. If it turns out to be a pipe or a device, it is read as a stream.
    File(File),
    /// Standard input or a pipe: read once, from its beginning to its end.
    Stream(Box<dyn Read + Send>),
}

/// Takes a batch and its JSON text, and says whether to go on.
pub type Accept<'a> = dyn FnMut(Batch, String) -> ControlFlow<()> + 'a;

/// Reads a file to its end, and hands each batch with its JSON text to `accept`, in the order of the file.
///
/// `bytes_read` is raised while reading, to at most the file's length. After the first fault nothing is handed out
/// any more, but reading goes on to tell up to [`FAULTS_SHOWN_MAX`] faults at once. Returns the number of batches.
pub fn read(
    format: Format,
    input: Input,
    bytes_read: &AtomicU64,
    accept: &mut Accept<'_>,
) -> Result<u64, ReadError> {
    let mut intake = Intake::new(accept);
    let outcome = match format {
        Format::Ndjson => ndjson::read(&mut Window::new(input, bytes_read), &mut intake),
        Format::Json => json::read(&mut Window::new(input, bytes_read), &mut intake),
        Format::Csv => csv::read(&mut Window::new(input, bytes_read), &mut intake),
        Format::Parquet => parquet::read(input, bytes_read, &mut intake),
    };
    intake.finish(outcome)
}

#[cfg(test)]
mod tests {
    use std::io::{self, Cursor};
    use std::sync::atomic::Ordering;

    use proptest::prelude::*;

    use super::testing::{FULL, Trickle, batches, faults, read_all, small};
    use super::*;

    const TEXT_FORMATS: [Format; 3] = [Format::Ndjson, Format::Json, Format::Csv];

    /// A file of several records in each text format.
    fn sample(format: Format) -> Vec<u8> {
        let (one, two) = (FULL, small("b-2"));
        match format {
            Format::Ndjson => format!("{one}\r\n\n{two}\n"),
            Format::Json => format!("[{one},\n {two}]\n"),
            _ => "batch_id;batch_name;batch_creation_date;number_of_images;warnings;comment\r\n\
                  b-1;n;2026-01-31T08:00:00Z;1;true;\"a \"\"b\"\"\r\nc\"\r\n\r\n\
                  b-2;n;2026-01-31T08:00:00Z;2;0;\r\n"
                .into(),
        }
        .into_bytes()
    }

    #[test]
    fn up_to_twenty_faults_are_told_and_no_batch_is_handed_out_after_the_first() {
        let lines = |count: usize| format!("{}\n{}", small("a"), "{}\n".repeat(count));
        let outcome = read_all(Format::Ndjson, Cursor::new(lines(4)));
        assert!(matches!(outcome, Err(ReadError::Faulty { faults, more: false }) if faults.len() == 20));
        let outcome = read_all(Format::Ndjson, Cursor::new(lines(5)));
        assert!(matches!(outcome, Err(ReadError::Faulty { faults, more: true }) if faults.len() == 20));

        let mut handed_out = 0;
        let file = format!("{}\n7\n{}\n", small("a"), small("b"));
        let input = Input::Stream(Box::new(Cursor::new(file)));
        let outcome = read(Format::Ndjson, input, &AtomicU64::new(0), &mut |_, _| {
            handed_out += 1;
            ControlFlow::Continue(())
        });
        assert!(matches!(outcome, Err(ReadError::Faulty { .. })));
        assert_eq!(handed_out, 1);
    }

    #[test]
    fn the_taker_of_the_batches_can_stop_the_reading() {
        for format in TEXT_FORMATS {
            let input = Input::Stream(Box::new(Cursor::new(sample(format))));
            let outcome = read(format, input, &AtomicU64::new(0), &mut |_, _| ControlFlow::Break(()));
            assert!(matches!(outcome, Err(ReadError::Stopped)));
        }
    }

    #[test]
    fn a_stream_that_fails_is_no_fault_of_the_file() {
        struct Failing;
        impl Read for Failing {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::ErrorKind::ConnectionReset.into())
            }
        }
        for format in Format::ALL {
            let half = Cursor::new(format!("[{}", small("a"))).chain(Failing);
            assert!(matches!(read_all(format, half), Err(ReadError::Unreadable(_))));
        }
    }

    #[test]
    fn the_bytes_read_end_at_the_length_of_the_file() {
        for format in TEXT_FORMATS {
            let bytes = sample(format);
            let (length, bytes_read) = (bytes.len() as u64, AtomicU64::new(0));
            let input = Input::Stream(Box::new(Cursor::new(bytes)));
            read(format, input, &bytes_read, &mut |_, _| ControlFlow::Continue(())).unwrap();
            assert_eq!(bytes_read.load(Ordering::Relaxed), length);
        }
    }

    #[test]
    fn a_batch_too_long_to_be_served_is_a_fault_of_its_record() {
        let long = small("a").replace("\"n\"", &format!("\"{}\"", "n".repeat(65_536)));
        let told = faults(Format::Ndjson, format!("{}\n{long}\n", small("b")));
        assert!(told.starts_with("line 2: found 66011 bytes of JSON for batch \"a\""), "{told}");
        assert!(told.ends_with("expected at most 65536 bytes for a batch"), "{told}");
    }

    #[test]
    fn utf_16_is_refused_by_its_mark() {
        for format in TEXT_FORMATS {
            let told = faults(format, b"\xFF\xFE{\0".as_slice());
            assert!(told.starts_with("line 1: found text in UTF-16, expected UTF-8"), "{told}");
        }
    }

    proptest! {
        #[test]
        fn how_a_stream_is_cut_into_pieces_changes_nothing(piece in 1usize..64) {
            for format in TEXT_FORMATS {
                let trickle = Trickle { bytes: Cursor::new(sample(format)), piece };
                prop_assert_eq!(read_all(format, trickle).unwrap(), batches(format, sample(format)));
            }
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            for format in Format::ALL {
                let _ = read_all(format, Cursor::new(bytes.clone()));
            }
        }

        #[test]
        fn no_text_made_of_the_formats_own_marks_makes_it_panic(text in r#"([\[\]{}",;:\\\r\n\t ]|batch_id|null|1){0,60}"#) {
            for format in TEXT_FORMATS {
                let _ = read_all(format, Cursor::new(text.clone()));
            }
        }

        #[test]
        fn no_damage_to_a_file_makes_it_panic(places in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4), end: prop::sample::Index) {
            for format in TEXT_FORMATS {
                let mut bytes = sample(format);
                for (place, byte) in &places {
                    let at = place.index(bytes.len());
                    bytes[at] = *byte;
                }
                let _ = read_all(format, Cursor::new(bytes[..end.index(bytes.len())].to_vec()));
                let _ = read_all(format, Cursor::new(bytes));
            }
        }
    }
}
