//! What the tests of every format share: a batch, and short ways to read a file.

use std::io::{self, Cursor, Read};
use std::ops::ControlFlow;
use std::sync::atomic::AtomicU64;

use super::{Format, Input, ReadError, read};

/// A batch with every field, as its JSON text.
pub(super) const FULL: &str = r#"{"batch_id":"b-1","batch_name":"Tray 7 \"early\"","batch_creation_date":"2026-01-31T08:00:00.5Z","crop_type":"Fußball-Salat","number_of_images":12,"total_cells_per_tray":128,"avg_germinated_seedlings":"118.40","avg_non_germinated_seedlings":"9.60","avg_germination_rate":"92.50","avg_usable_seedlings":"110.00","avg_non_usable_cells":"18.00","avg_usable_seedling_rate":"85.94","avg_coefficient_of_variation":"0.07","avg_median_seedling_size_mm2":"-0.50","scanned_by_email":"ann@example.org","analysis_link":"https://example.org/a?b=1","comment":"a } ] , \\ brace","warnings":false}"#;

/// A batch with its required fields alone, as a record of a JSON file.
pub(super) fn small(id: &str) -> String {
    format!(
        r#"{{"batch_id":"{id}","batch_name":"n","batch_creation_date":"2026-01-31T09:00:00+01:00","number_of_images":1,"warnings":true}}"#
    )
}

/// The texts of all batches of a file.
pub(super) fn batches(format: Format, bytes: impl Into<Vec<u8>>) -> Vec<String> {
    read_all(format, Cursor::new(bytes.into())).unwrap()
}

/// The ids of all batches of a file.
pub(super) fn ids(format: Format, bytes: impl Into<Vec<u8>>) -> Vec<String> {
    let id = |text: String| text.split('"').nth(3).unwrap().to_owned();
    batches(format, bytes).into_iter().map(id).collect()
}

/// The faults of a file, one a line.
pub(super) fn faults(format: Format, bytes: impl Into<Vec<u8>>) -> String {
    match read_all(format, Cursor::new(bytes.into())) {
        Err(error @ ReadError::Faulty { .. }) => error.to_string(),
        other => panic!("expected faults, not {other:?}"),
    }
}

/// Reads a stream to its end.
pub(super) fn read_all(format: Format, stream: impl Read + Send + 'static) -> Result<Vec<String>, ReadError> {
    let mut texts = Vec::new();
    let count = read(format, Input::Stream(Box::new(stream)), &AtomicU64::new(0), &mut |batch, text| {
        assert_eq!(batch.to_json(), text);
        texts.push(text);
        ControlFlow::Continue(())
    })?;
    assert_eq!(count, texts.len() as u64);
    Ok(texts)
}

/// A stream that comes in pieces of so many bytes, as a slow pipe gives them.
pub(super) struct Trickle {
    pub(super) bytes: Cursor<Vec<u8>>,
    pub(super) piece: usize,
}

impl Read for Trickle {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer.len().min(self.piece);
        self.bytes.read(&mut buffer[..length])
    }
}
