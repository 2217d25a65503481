//! Fuzzing of dates, decimals and JSON batches. `cargo test` replays the corpus (docs/TESTING.md).

use bolero::check;

use crate::instant::DateInput;
use crate::{Batch, Hundredths, UtcInstant};

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

#[test]
fn a_date_that_is_read_is_written_and_read_again() {
    check!().for_each(|bytes: &[u8]| {
        if let Ok(instant) = UtcInstant::parse_any_offset(text(bytes)) {
            assert_eq!(UtcInstant::parse_any_offset(&instant.to_string()).unwrap(), instant);
        }
        let _ = DateInput::parse(text(bytes));
    });
}

#[test]
fn a_decimal_that_is_read_is_written_and_read_again() {
    check!().for_each(|bytes: &[u8]| {
        if let Ok(number) = Hundredths::parse(text(bytes)) {
            assert_eq!(Hundredths::parse(&number.to_string()).unwrap(), number);
        }
    });
}

#[test]
fn a_batch_that_is_read_is_written_and_read_again() {
    check!().for_each(|bytes: &[u8]| {
        if let Ok(batch) = Batch::from_json(text(bytes)) {
            assert_eq!(Batch::from_json(&batch.to_json()).unwrap().to_json(), batch.to_json());
        }
    });
}
