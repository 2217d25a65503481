//! Batches and helpers for the tests of all formats.

use std::fs::File;
use std::io::{Cursor, Read, Seek as _};
use std::ops::ControlFlow;
use std::sync::atomic::AtomicU64;

use batchscan_model::field::{COUNT_MAX, example_json};
use batchscan_model::{Batch, BatchId, Hundredths, UtcInstant};
use proptest::prelude::*;

use crate::Format;
use crate::read::{ReadError, ReadOptions, read, read_text};

/// A batch with only its required fields, as JSON.
pub(crate) fn small(id: &str) -> String {
    format!(
        r#"{{"batch_id":"{id}","batch_name":"n","batch_creation_date":"2026-01-31T09:00:00+01:00","number_of_images":1,"warnings":true}}"#
    )
}

/// A batch with only its required fields.
pub(crate) fn bare(id: &str) -> Batch {
    Batch::from_json(&small(id)).unwrap()
}

/// A batch with every field, and characters that formats must escape.
pub(crate) fn full() -> Batch {
    let example = Batch::from_json(&example_json()).unwrap();
    Batch {
        batch_name: "Tray 7 \"early\"".into(),
        batch_creation_date: UtcInstant::parse_any_offset("2026-01-31T08:00:00.5Z").unwrap(),
        avg_median_seedling_size_mm2: Hundredths::from_hundredths(-50),
        comment: Some("a, b; c\r\nd".into()),
        ..example
    }
}

/// The JSON texts of all batches of a file.
pub(crate) fn batches(format: Format, bytes: impl Into<Vec<u8>>) -> Vec<String> {
    read_all(format, Cursor::new(bytes.into())).unwrap()
}

/// The ids of all batches of a file.
pub(crate) fn ids(format: Format, bytes: impl Into<Vec<u8>>) -> Vec<String> {
    let id = |text: String| text.split('"').nth(3).unwrap().to_owned();
    batches(format, bytes).into_iter().map(id).collect()
}

/// The errors of a file, one per line.
pub(crate) fn errors(format: Format, bytes: impl Into<Vec<u8>>) -> String {
    match read_all(format, Cursor::new(bytes.into())) {
        Err(error @ ReadError::Invalid { .. }) => error.to_string(),
        other => panic!("expected errors, found {other:?}"),
    }
}

pub(crate) fn read_all(format: Format, stream: impl Read + 'static) -> Result<Vec<String>, ReadError> {
    read_with(format, stream, &ReadOptions::default())
}

pub(crate) fn read_with(
    format: Format,
    stream: impl Read + 'static,
    options: &ReadOptions,
) -> Result<Vec<String>, ReadError> {
    let (mut texts, bytes_read) = (Vec::new(), AtomicU64::new(0));
    let mut accept = |batch: Batch, text| {
        assert_eq!(batch.to_json(), text);
        texts.push(text);
        ControlFlow::Continue(())
    };
    let summary = match format {
        _ if format.is_text() => read_text(format, Box::new(stream), options, &bytes_read, &mut accept)?,
        _ => read(format, temporary_file(stream), options, &bytes_read, &mut accept)?,
    };
    assert_eq!(summary.batches, texts.len() as u64);
    Ok(texts)
}

/// A file with the content of a stream.
pub(crate) fn temporary_file(mut stream: impl Read) -> File {
    let mut file = tempfile::tempfile().unwrap();
    std::io::copy(&mut stream, &mut file).unwrap();
    file.rewind().unwrap();
    file
}

/// The batches of a file that was written.
pub(crate) fn read_back(format: Format, bytes: Vec<u8>) -> Vec<Batch> {
    batches(format, bytes).iter().map(|text| Batch::from_json(text).unwrap()).collect()
}

/// Texts that need escaping, and others.
fn any_text() -> impl Strategy<Value = String> {
    prop_oneof!["[-=+@\t\r\n\"';, a_x0]{0,8}", "(?s).{0,40}"]
}

/// In units of 0.01.
fn any_decimal() -> impl Strategy<Value = i64> {
    const MAX: i64 = 99_999_999_999_999;
    prop_oneof![-MAX..=MAX, -10_000i64..=10_000, Just(MAX), Just(-MAX)]
}

/// 0001-01-01T00:00:00Z and 9999-12-31T23:59:59.999999Z.
const FIRST_MICROS: i64 = -62_135_596_800_000_000;
const LAST_MICROS: i64 = 253_402_300_799_999_999;

prop_compose! {
    pub(crate) fn any_batch()(
        id in "[^\\p{Cc}]{1,32}", name in any_text(), crop_type in prop::option::of(any_text()),
        comment in prop::option::of(any_text()), email in prop::option::of(any_text()),
        micros in prop_oneof![FIRST_MICROS..=LAST_MICROS, Just(FIRST_MICROS), Just(LAST_MICROS)],
        unit in prop::sample::select(vec![1i64, 1_000, 1_000_000]),
        images in prop_oneof![0..=COUNT_MAX, Just(COUNT_MAX)], cells in prop::option::of(0..=COUNT_MAX),
        decimals in prop::array::uniform4(prop::option::of(any_decimal())),
        warnings: bool,
    ) -> Batch {
        let [a, b, c, d] = decimals.map(|count| count.and_then(Hundredths::from_hundredths));
        Batch {
            batch_id: BatchId::new(id).unwrap(),
            batch_name: if name.is_empty() { "n".into() } else { name },
            batch_creation_date: UtcInstant::from_micros(micros - micros.rem_euclid(unit)).unwrap(),
            crop_type,
            number_of_images: images,
            total_cells_per_tray: cells,
            avg_germinated_seedlings: a,
            avg_germination_rate: b,
            avg_usable_seedlings: c,
            avg_non_usable_cells: d,
            scanned_by_email: email,
            comment,
            warnings,
            ..full()
        }
    }
}
