//! Every form of a date that this project refuses, and the word it refuses it with.

use super::{Rule, decided, rule};
use crate::ask::Version;
use crate::probe::Probe;
use crate::verdict::Checked;

#[rustfmt::skip]
pub(super) const RULES: &[Rule] = &[
    rule(decided(14), "form-date-alone", "A date alone is of type timezone_aware.", form::<0>),
    rule(decided(14), "form-no-offset", "A datetime without an offset is of type timezone_aware.", form::<1>),
    rule(decided(14), "form-other-offset", "An offset other than UTC is of type timezone_offset.", form::<2>),
    rule(decided(14), "form-minus-zero", "The offset -00:00 is of type timezone_offset.", form::<3>),
    rule(decided(13), "form-lower-case-t", "A lower-case t is refused as datetime_from_date_parsing.", form::<4>),
    rule(decided(13), "form-lower-case-z", "A lower-case z is refused as datetime_from_date_parsing.", form::<5>),
    rule(decided(13), "form-unix-number", "A Unix number is refused as datetime_from_date_parsing.", form::<6>),
    rule(decided(13), "form-no-seconds", "A time without seconds is refused as datetime_from_date_parsing.", form::<7>),
    rule(decided(13), "form-hour-24", "24:00:00 is refused as datetime_from_date_parsing.", form::<8>),
    rule(decided(13), "form-second-60", "Second 60 is refused as datetime_from_date_parsing.", form::<9>),
    rule(decided(13), "form-year-0000", "Year 0000 is refused as datetime_from_date_parsing.", form::<10>),
    rule(decided(13), "form-ten-digit-fraction", "A fraction of ten digits is refused as datetime_from_date_parsing.", form::<11>),
    rule(decided(13), "form-empty-fraction", "A fraction without digits is refused as datetime_from_date_parsing.", form::<12>),
    rule(decided(13), "form-space-for-t", "A space between date and time is refused as datetime_from_date_parsing.", form::<13>),
    rule(decided(13), "form-empty", "An empty date is refused as datetime_from_date_parsing.", form::<14>),
    rule(decided(13), "form-month-13", "Month 13 is refused as datetime_from_date_parsing.", form::<15>),
];

#[rustfmt::skip]
const FORMS: [(&str, &str); 16] = [
    ("2024-05-01", "timezone_aware"),
    ("2024-05-01T00:00:00", "timezone_aware"),
    ("2024-05-01T00:00:00+02:00", "timezone_offset"),
    ("2024-05-01T00:00:00-00:00", "timezone_offset"),
    ("2024-05-01t00:00:00Z", PARSING),
    ("2024-05-01T00:00:00z", PARSING),
    ("1714521600", PARSING),
    ("2024-05-01T00:00Z", PARSING),
    ("2024-05-01T24:00:00Z", PARSING),
    ("2024-05-01T23:59:60Z", PARSING),
    ("0000-05-01T00:00:00Z", PARSING),
    ("2024-05-01T00:00:00.1234567890Z", PARSING),
    ("2024-05-01T00:00:00.Z", PARSING),
    ("2024-05-01 00:00:00Z", PARSING),
    ("", PARSING),
    ("2024-13-01T00:00:00Z", PARSING),
];

const PARSING: &str = "datetime_from_date_parsing";

fn form<const INDEX: usize>(probe: &mut Probe) -> Checked {
    let (date, kind) = FORMS[INDEX];
    // One place on each version: the rules of the interface have shown that both places are read alike.
    for (version, name) in [(Version::V1, "start_date"), (Version::V2, "end_date")] {
        let answer = probe.get_batches(version, &[(name, date)])?;
        answer.must_list("query", &[name], kind)?;
    }
    Ok(())
}
