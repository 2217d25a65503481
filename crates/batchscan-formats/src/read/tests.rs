//! What all formats have in common.

use std::io::{self, Cursor, Read};
use std::ops::ControlFlow;
use std::sync::atomic::AtomicU64;

use batchscan_model::field::example_json;
use proptest::prelude::*;

use super::{Accept, Implausible, ReadError, ReadOptions, ReadSummary, read_text};
use crate::Format;
use crate::testing::{batches, errors, read_all, small};

const TEXT_FORMATS: [Format; 3] = [Format::Ndjson, Format::Json, Format::Csv];

/// A file of two records in each text format.
fn sample(format: Format) -> Vec<u8> {
    let (one, two) = (example_json(), small("b-2"));
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

/// The outcome and the number of bytes read.
fn read_counted(
    format: Format,
    bytes: Vec<u8>,
    accept: &mut Accept<'_>,
) -> (Result<ReadSummary, ReadError>, u64) {
    let bytes_read = AtomicU64::new(0);
    let source = Box::new(Cursor::new(bytes));
    (read_text(format, source, &ReadOptions::default(), &bytes_read, accept), bytes_read.into_inner())
}

#[test]
fn implausible_values_are_warnings_or_errors() {
    let wrong = example_json().replace("92.50", "250").replace("85.94", "-5");
    let file = format!("{}\n{wrong}\n{wrong}\n{wrong}\n", example_json());
    let read = |implausible| {
        let source = Box::new(Cursor::new(file.clone()));
        let options = ReadOptions { implausible, ..ReadOptions::default() };
        read_text(Format::Ndjson, source, &options, &AtomicU64::new(0), &mut |_, _| ControlFlow::Continue(()))
    };
    let summary = read(Implausible::Warn).unwrap();
    assert_eq!((summary.batches, summary.warnings.count, summary.warnings.first.len()), (4, 6, 6));
    let expected = "line 2: avg_germination_rate: expected a rate from 0 to 100, found 250.00";
    assert_eq!(summary.warnings.first[0].to_string(), expected);
    let error = read(Implausible::Reject).unwrap_err().to_string();
    assert!(error.starts_with(expected) && error.lines().count() == 6, "{error}");
}

#[test]
fn up_to_twenty_errors_are_reported() {
    for (count, has_more) in [(4, false), (5, true)] {
        let lines = (0..count).map(|line| format!("{{\"batch_id\":{line},\"batch_name\":{line},\"batch_creation_date\":{line},\"number_of_images\":-{line}.5,\"warnings\":{line}}}\n"));
        let file = format!("{}\n{}", small("a"), lines.collect::<String>());
        let outcome = read_all(Format::Ndjson, Cursor::new(file));
        assert!(
            matches!(outcome, Err(ReadError::Invalid { errors, more, .. }) if errors.len() == 20 && more == has_more)
        );
    }
}

#[test]
fn no_batch_is_passed_on_after_the_first_error() {
    let mut passed_on = 0;
    let file = format!("{}\n7\n{}\n", small("a"), small("b"));
    let outcome = read_counted(Format::Ndjson, file.into(), &mut |_, _| {
        passed_on += 1;
        ControlFlow::Continue(())
    });
    assert!(matches!(outcome.0, Err(ReadError::Invalid { .. })));
    assert_eq!(passed_on, 1);
}

#[test]
fn the_callback_can_stop_the_reading() {
    for format in TEXT_FORMATS {
        let (outcome, _) = read_counted(format, sample(format), &mut |_, _| ControlFlow::Break(()));
        assert!(matches!(outcome, Err(ReadError::Stopped)));
    }
}

#[test]
fn a_failing_stream_is_not_an_error_of_the_file() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::ConnectionReset.into())
        }
    }
    for format in TEXT_FORMATS {
        let half = Cursor::new(format!("[{}", small("a"))).chain(Failing);
        assert!(matches!(read_all(format, half), Err(ReadError::Io(_))));
    }
}

#[test]
fn a_workbook_is_not_read_from_a_stream() {
    let (outcome, _) = read_counted(Format::Xlsx, vec![], &mut |_, _| ControlFlow::Continue(()));
    assert_eq!(outcome.unwrap_err().to_string(), "xlsx files can only be read from a file");
}

#[test]
fn the_bytes_read_end_at_the_length_of_the_file() {
    for format in TEXT_FORMATS {
        let (_, bytes_read) = read_counted(format, sample(format), &mut |_, _| ControlFlow::Continue(()));
        assert_eq!(bytes_read, sample(format).len() as u64);
    }
}

#[test]
fn a_batch_too_long_to_be_served_is_an_error() {
    let long = small("a").replace("\"n\"", &format!("\"{}\"", "n".repeat(65_536)));
    let expected = "line 2: expected at most 65536 bytes of JSON, found 66011 bytes in batch \"a\"";
    assert_eq!(errors(Format::Ndjson, format!("{}\n{long}\n", small("b"))), expected);
}

#[test]
fn json_in_utf_16_is_rejected() {
    for format in [Format::Ndjson, Format::Json] {
        let expected = "line 1: expected UTF-8; save the file as UTF-8, found UTF-16";
        assert_eq!(errors(format, b"\xFF\xFE{\0".as_slice()), expected);
    }
}

/// A stream that arrives in pieces, as from a slow pipe.
struct Pieces {
    bytes: Cursor<Vec<u8>>,
    length: usize,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer.len().min(self.length);
        self.bytes.read(&mut buffer[..length])
    }
}

proptest! {
    #[test]
    fn the_pieces_of_a_stream_make_no_difference(length in 1usize..64) {
        for format in TEXT_FORMATS {
            let pieces = Pieces { bytes: Cursor::new(sample(format)), length };
            prop_assert_eq!(read_all(format, pieces).unwrap(), batches(format, sample(format)));
        }
    }

    #[test]
    fn no_bytes_cause_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        for format in Format::ALL {
            let _ = read_all(format, Cursor::new(bytes.clone()));
        }
    }

    #[test]
    fn no_text_of_special_characters_causes_a_panic(text in r#"([\[\]{}",;:\\\r\n\t ]|batch_id|null|1){0,60}"#) {
        for format in TEXT_FORMATS {
            let _ = read_all(format, Cursor::new(text.clone()));
        }
    }

    #[test]
    fn no_damage_to_a_file_causes_a_panic(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4), end: prop::sample::Index) {
        for format in TEXT_FORMATS {
            let mut bytes = sample(format);
            for (index, byte) in &changes {
                let at = index.index(bytes.len());
                bytes[at] = *byte;
            }
            let _ = read_all(format, Cursor::new(bytes[..end.index(bytes.len())].to_vec()));
            let _ = read_all(format, Cursor::new(bytes));
        }
    }
}
