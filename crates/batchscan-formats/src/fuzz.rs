//! Fuzzing of the readers: whatever a file contains, they end, and batches that they accept are valid. `cargo test`
//! replays the corpus (docs/TESTING.md).

use std::io::Cursor;

use batchscan_model::Batch;
use bolero::check;

use crate::Format;
use crate::testing::read_all;

fn read_and_check(format: Format, bytes: &[u8]) {
    for text in read_all(format, Cursor::new(bytes.to_vec())).unwrap_or_default() {
        assert_eq!(Batch::from_json(&text).unwrap().to_json(), text);
    }
}

#[test]
fn csv() {
    check!().for_each(|bytes: &[u8]| read_and_check(Format::Csv, bytes));
}

#[test]
fn ndjson() {
    check!().for_each(|bytes: &[u8]| read_and_check(Format::Ndjson, bytes));
}

#[test]
fn json() {
    check!().for_each(|bytes: &[u8]| read_and_check(Format::Json, bytes));
}

#[test]
fn parquet() {
    check!().for_each(|bytes: &[u8]| read_and_check(Format::Parquet, bytes));
}

#[test]
fn xlsx() {
    check!().for_each(|bytes: &[u8]| read_and_check(Format::Xlsx, bytes));
}
