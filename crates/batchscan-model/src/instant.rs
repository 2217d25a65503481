//! Instants in UTC, to the microsecond. Reads dates in two ways: strictly for the interface, widely for files.

use std::fmt;

use jiff::civil::{Date, DateTime, Time, datetime};
use jiff::{SignedDuration, Timestamp};

use crate::digits::push_digits;
use crate::invalid::Reason;

/// An instant as microseconds since 1970 in UTC, in the years 0001 to 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UtcInstant(i64);

const EPOCH: DateTime = datetime(1970, 1, 1, 0, 0, 0, 0);
const MICROS_PER_SEC: i64 = 1_000_000;
/// 0001-01-01T00:00:00Z.
const MICROS_MIN: i64 = -62_135_596_800 * MICROS_PER_SEC;
/// 9999-12-31T23:59:59.999999Z.
const MICROS_MAX: i64 = 253_402_300_799 * MICROS_PER_SEC + 999_999;

impl UtcInstant {
    /// 1970-01-01T00:00:00Z.
    pub const EPOCH: UtcInstant = UtcInstant(0);

    /// From microseconds since 1970, if the year has four digits.
    pub fn from_micros(micros: i64) -> Option<Self> {
        (MICROS_MIN..=MICROS_MAX).contains(&micros).then_some(Self(micros))
    }

    /// Microseconds since 1970.
    pub fn micros(self) -> i64 {
        self.0
    }

    /// Whole seconds since 1970.
    pub fn secs(self) -> i64 {
        self.0.div_euclid(MICROS_PER_SEC)
    }

    /// The instant without its fraction of a second.
    pub fn to_whole_secs(self) -> Self {
        Self(self.secs() * MICROS_PER_SEC)
    }

    /// The instant so many seconds later, at most the last one there is.
    pub fn plus_secs(self, secs: i64) -> Self {
        let micros = self.0.saturating_add(secs.saturating_mul(MICROS_PER_SEC));
        Self(micros.clamp(MICROS_MIN, MICROS_MAX))
    }

    /// Reads a date of a file: any offset, `T` or a space between date and time.
    ///
    /// Digits below the microsecond are cut off. A date without an offset names no instant and is refused.
    pub fn parse_any_offset(text: &str) -> Result<Self, NotAnInstant> {
        // The form most files have; also the one that reaches to the last day of the year 9999.
        if let Ok(date) = DateInput::parse(text) {
            return Ok(date.floor);
        }
        match text.parse::<Timestamp>() {
            Ok(stamp) => Self::from_micros(floor_micros(stamp)).ok_or(NotAnInstant::Malformed),
            Err(_) if text.parse::<DateTime>().is_ok() => Err(NotAnInstant::NoOffset),
            Err(_) => Err(NotAnInstant::Malformed),
        }
    }

    /// Appends the instant as it is printed.
    pub fn push_to(self, text: &mut String) {
        let civil = EPOCH.saturating_add(SignedDuration::from_secs(self.secs()));
        let mut push = |mark: &str, number: i64, width: usize| {
            text.push_str(mark);
            push_digits(text, number.unsigned_abs(), width);
        };
        push("", civil.year().into(), 4);
        push("-", civil.month().into(), 2);
        push("-", civil.day().into(), 2);
        push("T", civil.hour().into(), 2);
        push(":", civil.minute().into(), 2);
        push(":", civil.second().into(), 2);
        let micros = self.0.rem_euclid(MICROS_PER_SEC);
        if micros != 0 {
            push(".", micros, 6);
            text.truncate(text.trim_end_matches('0').len());
        }
        text.push('Z');
    }
}

impl fmt::Display for UtcInstant {
    /// `YYYY-MM-DDTHH:MM:SSZ`; a fraction is kept without its trailing zeros (decision 034).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.push_to(&mut text);
        f.write_str(&text)
    }
}

/// A date as the interface takes it, with what it holds below the microsecond (decision 013).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DateInput {
    floor: UtcInstant,
    has_finer_digits: bool,
}

impl DateInput {
    /// Exactly `YYYY-MM-DDTHH:MM:SS`, a fraction of 1 to 9 digits or none, then `Z` or `+00:00`.
    pub fn parse(text: &str) -> Result<Self, Reason> {
        let Some((date, rest)) = split_date(text) else { return Err(Reason::NotADatetime) };
        if rest.is_empty() {
            return Err(Reason::NoTimezone);
        }
        let (time, rest) = split_time(rest).ok_or(Reason::NotADatetime)?;
        let (nanos, offset) = split_fraction(rest).ok_or(Reason::NotADatetime)?;
        match offset {
            b"" => return Err(Reason::NoTimezone),
            b"Z" | b"+00:00" | b" 00:00" => {}
            other if is_offset(other) => return Err(Reason::NotUtc),
            _ => return Err(Reason::NotADatetime),
        }
        let secs = DateTime::from_parts(date, time).duration_since(EPOCH).as_secs();
        let micros = secs * MICROS_PER_SEC + nanos / 1_000;
        Ok(Self { floor: UtcInstant(micros), has_finer_digits: nanos % 1_000 != 0 })
    }

    /// The first stored instant on or after this date.
    pub fn as_start(self) -> UtcInstant {
        UtcInstant(self.floor.0 + i64::from(self.has_finer_digits))
    }

    /// The last stored instant on or before this date.
    pub fn as_end(self) -> UtcInstant {
        self.floor
    }
}

/// Why a file's text is no instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAnInstant {
    /// It is not a date and time.
    #[error("a date and time with its offset, such as 2026-01-31T08:00:00Z")]
    Malformed,
    /// It has no offset, so it could be any of two dozen instants.
    #[error(
        "a date and time with an offset at the end, such as 2026-01-31T08:00:00Z or 2026-01-31T09:00:00+01:00"
    )]
    NoOffset,
}

/// Towards the past also before 1970, so that cutting digits never reorders two instants.
fn floor_micros(stamp: Timestamp) -> i64 {
    i64::try_from(stamp.as_nanosecond().div_euclid(1_000)).unwrap_or(i64::MAX)
}

/// `YYYY-MM-DD` of a day that exists, and what follows it.
fn split_date(text: &str) -> Option<(Date, &[u8])> {
    let bytes = text.as_bytes();
    let (head, rest) = bytes.split_at_checked(10)?;
    let [year, month, day] = numbers(head, b"0000-00-00")?;
    let (year, month, day) = (i16::try_from(year).ok()?, i8::try_from(month).ok()?, i8::try_from(day).ok()?);
    // jiff knows a year 0; the interface's calendar begins at 1.
    (year >= 1).then(|| Date::new(year, month, day).ok())?.map(|date| (date, rest))
}

/// `THH:MM:SS` of a second that exists (no 24:00:00, no second 60), and what follows it.
fn split_time(bytes: &[u8]) -> Option<(Time, &[u8])> {
    let (head, rest) = bytes.split_at_checked(9)?;
    let [hour, minute, second] = numbers(head, b"T00:00:00")?;
    let (hour, minute, second) =
        (i8::try_from(hour).ok()?, i8::try_from(minute).ok()?, i8::try_from(second).ok()?);
    Time::new(hour, minute, second, 0).ok().map(|time| (time, rest))
}

/// A fraction of 1 to 9 digits as nanoseconds, or none, and what follows it.
fn split_fraction(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let Some(fraction) = bytes.strip_prefix(b".") else { return Some((0, bytes)) };
    let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !(1..=9).contains(&digits) {
        return None;
    }
    let (digits, offset) = fraction.split_at(digits);
    let zeros = std::iter::repeat(&b'0');
    let nanos =
        digits.iter().chain(zeros).take(9).fold(0, |nanos, digit| nanos * 10 + i64::from(digit - b'0'));
    Some((nanos, offset))
}

/// A well-formed offset. A space stands where a `+` in a URL was not escaped.
fn is_offset(bytes: &[u8]) -> bool {
    let Some((b'+' | b'-' | b' ', clock)) = bytes.split_first() else { return false };
    matches!(numbers(clock, b"00:00"), Some([hour, minute]) if hour < 24 && minute < 60)
}

/// Reads the numbers of a text that has the shape of `shape`: `0` stands for a digit, all else for itself.
fn numbers<const N: usize>(text: &[u8], shape: &[u8]) -> Option<[u16; N]> {
    let mut found = [0u16; N];
    let mut slot = 0;
    let mut inside = false;
    if text.len() != shape.len() {
        return None;
    }
    for (byte, expected) in text.iter().zip(shape) {
        if *expected == b'0' {
            let digit = byte.is_ascii_digit().then(|| u16::from(byte - b'0'))?;
            found[slot] = found[slot] * 10 + digit;
            inside = true;
        } else {
            slot += usize::from(std::mem::take(&mut inside));
            if byte != expected {
                return None;
            }
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn input(text: &str) -> Result<String, Reason> {
        DateInput::parse(text).map(|date| date.as_end().to_string())
    }

    /// Decision 013.
    #[test]
    fn the_interfaces_form_is_read_with_z_or_a_zero_offset() {
        assert_eq!(input("2026-01-31T08:00:00Z").unwrap(), "2026-01-31T08:00:00Z");
        assert_eq!(input("2026-01-31T08:00:00+00:00").unwrap(), "2026-01-31T08:00:00Z");
        assert_eq!(input("2026-01-31T08:00:00 00:00").unwrap(), "2026-01-31T08:00:00Z");
        assert_eq!(input("2026-01-31T08:00:00.120Z").unwrap(), "2026-01-31T08:00:00.12Z");
        assert_eq!(input("0001-01-01T00:00:00Z").unwrap(), "0001-01-01T00:00:00Z");
        assert_eq!(input("9999-12-31T23:59:59.999999999Z").unwrap(), "9999-12-31T23:59:59.999999Z");
    }

    /// Decision 014.
    #[test]
    fn a_naive_datetime_or_a_date_alone_lacks_its_timezone() {
        for text in ["2026-01-31T08:00:00", "2026-01-31T08:00:00.5", "2026-01-31"] {
            assert_eq!(input(text), Err(Reason::NoTimezone), "{text}");
        }
    }

    /// Decision 014.
    #[test]
    fn a_well_formed_offset_other_than_zero_is_named_as_such() {
        for offset in ["+02:00", "-05:30", "-00:00", " 01:00", "+23:59"] {
            assert_eq!(input(&format!("2026-01-31T08:00:00{offset}")), Err(Reason::NotUtc), "{offset}");
        }
    }

    /// Decisions 013, 014.
    #[test]
    fn all_else_is_no_datetime() {
        let others = "x|2026|2026-02-30|2026-02-30T00:00:00Z|2026-1-31T08:00:00Z|2026-01-31t08:00:00Z\
            |2026-01-31T08:00:00z|2026-01-31 08:00:00Z|2026-01-31T08:00Z|2026-01-31T24:00:00Z|2026-01-31T23:59:60Z\
            |0000-01-01T00:00:00Z|1769846400|2026-01-31T08:00:00.Z|2026-01-31T08:00:00.1234567890Z\
            |2026-01-31T08:00:00+0000|2026-01-31T08:00:00+00|2026-01-31T08:00:00+24:00|2026-01-31T08:00:00ZZ\
            |2026-01-31T08:00:00Z |+2026-01-31T08:00:00Z|２026-01-31T08:00:00Z|2026-01-31T|2026-01-31Z";
        for text in others.split('|').chain([""]) {
            assert_eq!(input(text), Err(Reason::NotADatetime), "{text}");
        }
    }

    /// Decision 011: the filters compare at the stored precision.
    #[test]
    fn digits_below_the_microsecond_narrow_the_window_from_both_sides() {
        let date = DateInput::parse("2026-01-31T08:00:00.0000005Z").unwrap();
        assert_eq!(date.as_start().to_string(), "2026-01-31T08:00:00.000001Z");
        assert_eq!(date.as_end().to_string(), "2026-01-31T08:00:00Z");
    }

    #[test]
    fn a_files_date_may_have_any_offset_but_must_have_one() {
        let read = |text: &str| UtcInstant::parse_any_offset(text).map(|instant| instant.to_string());
        assert_eq!(read("2026-01-31T09:00:00+01:00").unwrap(), "2026-01-31T08:00:00Z");
        assert_eq!(read("2026-01-31 08:00:00.1234567Z").unwrap(), "2026-01-31T08:00:00.123456Z");
        assert_eq!(read("1969-12-31T23:59:59.9999999Z").unwrap(), "1969-12-31T23:59:59.999999Z");
        assert_eq!(read("2026-01-31T08:00:00"), Err(NotAnInstant::NoOffset));
        assert_eq!(read("2026-01-31"), Err(NotAnInstant::NoOffset));
        assert_eq!(read("31.01.2026"), Err(NotAnInstant::Malformed));
        assert_eq!(read("0001-01-01T00:00:00+01:00"), Err(NotAnInstant::Malformed));
    }

    proptest! {
        /// Decision 034.
        #[test]
        fn what_is_printed_reads_back_as_itself(micros in MICROS_MIN..=MICROS_MAX) {
            let instant = UtcInstant::from_micros(micros).unwrap();
            let text = instant.to_string();
            prop_assert_eq!(DateInput::parse(&text).map(DateInput::as_end), Ok(instant));
            prop_assert_eq!(UtcInstant::parse_any_offset(&text), Ok(instant));
            prop_assert!(!text.contains('.') || !text.ends_with("0Z"));
        }

        #[test]
        fn no_text_makes_it_panic(text in "[-0-9T:.Z+ ]{0,32}|.{0,32}") {
            let _ = DateInput::parse(&text);
            let _ = UtcInstant::parse_any_offset(&text);
        }
    }
}
