//! Instants in UTC, to the microsecond. Parses dates strictly for the API and leniently for files.

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

    /// From microseconds since 1970, if the year is 0001 to 9999.
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

    /// The instant this many seconds later, clamped to the valid range.
    pub fn plus_secs(self, secs: i64) -> Self {
        let micros = self.0.saturating_add(secs.saturating_mul(MICROS_PER_SEC));
        Self(micros.clamp(MICROS_MIN, MICROS_MAX))
    }

    /// Parses a date of a file: any offset, `T` or a space between date and time. Digits below the microsecond are
    /// dropped.
    pub fn parse_any_offset(text: &str) -> Result<Self, InvalidInstant> {
        // The usual form. It also covers the last day of the year 9999, which `Timestamp` does not.
        if let Ok(date) = DateInput::parse(text) {
            return Ok(date.floor);
        }
        if has_second_60(text) {
            return Err(InvalidInstant);
        }
        let timestamp: Timestamp = text.parse().map_err(|_| InvalidInstant)?;
        // Rounds down also before 1970, so that dropping digits never reorders two instants.
        let micros = i64::try_from(timestamp.as_nanosecond().div_euclid(1_000)).ok();
        micros.and_then(Self::from_micros).ok_or(InvalidInstant)
    }

    /// Appends the instant as [`Display`](fmt::Display) prints it.
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
    /// `YYYY-MM-DDTHH:MM:SSZ`, with a fraction without trailing zeros if there is one (decision 034).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.push_to(&mut text);
        f.write_str(&text)
    }
}

/// A date as the API accepts it, with its digits below the microsecond (decision 013).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DateInput {
    floor: UtcInstant,
    has_finer_digits: bool,
}

impl DateInput {
    /// Parses exactly `YYYY-MM-DDTHH:MM:SS`, an optional fraction of 1 to 9 digits, then `Z` or `+00:00`.
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

/// A text is not an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a date and time with a UTC offset, such as 2026-01-31T08:00:00Z")]
pub struct InvalidInstant;

/// Splits off `YYYY-MM-DD`.
fn split_date(text: &str) -> Option<(Date, &[u8])> {
    let bytes = text.as_bytes();
    let (head, rest) = bytes.split_at_checked(10)?;
    let [year, month, day] = numbers(head, b"0000-00-00")?;
    let (year, month, day) = (i16::try_from(year).ok()?, i8::try_from(month).ok()?, i8::try_from(day).ok()?);
    // jiff has a year 0; the API's first year is 1.
    (year >= 1).then(|| Date::new(year, month, day).ok())?.map(|date| (date, rest))
}

/// Whether the time has a leap second, which jiff would silently turn into second 59.
fn has_second_60(text: &str) -> bool {
    let time = text.split(['T', 't', ' ']).nth(1).unwrap_or_default();
    time.chars().filter(char::is_ascii_digit).skip(4).take(2).eq("60".chars())
}

/// Splits off `THH:MM:SS`. Rejects 24:00:00 and second 60.
fn split_time(bytes: &[u8]) -> Option<(Time, &[u8])> {
    let (head, rest) = bytes.split_at_checked(9)?;
    let [hour, minute, second] = numbers(head, b"T00:00:00")?;
    let (hour, minute, second) =
        (i8::try_from(hour).ok()?, i8::try_from(minute).ok()?, i8::try_from(second).ok()?);
    Time::new(hour, minute, second, 0).ok().map(|time| (time, rest))
}

/// Splits off an optional fraction of 1 to 9 digits, as nanoseconds.
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

/// Whether this is a well-formed offset. A space is a `+` that was not escaped in a URL.
fn is_offset(bytes: &[u8]) -> bool {
    let Some((b'+' | b'-' | b' ', clock)) = bytes.split_first() else { return false };
    matches!(numbers(clock, b"00:00"), Some([hour, minute]) if hour < 24 && minute < 60)
}

/// Parses the numbers of a text that has the shape of `shape`, in which `0` stands for any digit.
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

    /// Decision 013 (valid forms) and 014 (reasons for a rejection).
    #[test]
    fn the_api_accepts_utc_dates_and_names_the_reason_for_a_rejection() {
        let valid = [
            ("2026-01-31T08:00:00Z", "2026-01-31T08:00:00Z"),
            ("2026-01-31T08:00:00+00:00", "2026-01-31T08:00:00Z"),
            ("2026-01-31T08:00:00 00:00", "2026-01-31T08:00:00Z"),
            ("2026-01-31T08:00:00.120Z", "2026-01-31T08:00:00.12Z"),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
            ("9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59.999999Z"),
        ];
        for (text, printed) in valid {
            assert_eq!(DateInput::parse(text).unwrap().as_end().to_string(), printed);
        }
        let no_timezone = "2026-01-31T08:00:00|2026-01-31T08:00:00.5|2026-01-31";
        let not_utc = "2026-01-31T08:00:00+02:00|2026-01-31T08:00:00-05:30|2026-01-31T08:00:00-00:00\
            |2026-01-31T08:00:00 01:00|2026-01-31T08:00:00+23:59";
        let not_a_datetime = "|x|2026|2026-02-30|2026-02-30T00:00:00Z|2026-1-31T08:00:00Z|2026-01-31t08:00:00Z\
            |2026-01-31T08:00:00z|2026-01-31 08:00:00Z|2026-01-31T08:00Z|2026-01-31T24:00:00Z|2026-01-31T23:59:60Z\
            |0000-01-01T00:00:00Z|1769846400|2026-01-31T08:00:00.Z|2026-01-31T08:00:00.1234567890Z\
            |2026-01-31T08:00:00+0000|2026-01-31T08:00:00+00|2026-01-31T08:00:00+24:00|2026-01-31T08:00:00ZZ\
            |2026-01-31T08:00:00Z |+2026-01-31T08:00:00Z|２026-01-31T08:00:00Z|2026-01-31T|2026-01-31Z";
        for (texts, reason) in [
            (no_timezone, Reason::NoTimezone),
            (not_utc, Reason::NotUtc),
            (not_a_datetime, Reason::NotADatetime),
        ] {
            for text in texts.split('|') {
                assert_eq!(DateInput::parse(text), Err(reason), "{text}");
            }
        }
    }

    /// Decision 011: filters compare at the stored precision.
    #[test]
    fn digits_below_the_microsecond_narrow_the_range_on_both_sides() {
        let date = DateInput::parse("2026-01-31T08:00:00.0000005Z").unwrap();
        assert_eq!(date.as_start().to_string(), "2026-01-31T08:00:00.000001Z");
        assert_eq!(date.as_end().to_string(), "2026-01-31T08:00:00Z");
    }

    #[test]
    fn the_date_of_a_file_may_have_any_offset_but_needs_one() {
        for (text, printed) in [
            ("2026-01-31T09:00:00+01:00", Some("2026-01-31T08:00:00Z")),
            ("2026-01-31 08:00:00.1234567Z", Some("2026-01-31T08:00:00.123456Z")),
            ("1969-12-31T23:59:59.9999999Z", Some("1969-12-31T23:59:59.999999Z")),
            ("2026-01-31T08:00:00", None),
            ("2026-01-31T08:00:60+00:00", None),
            ("2026-01-31T080060Z", None),
            ("2026-01-31", None),
            ("31.01.2026", None),
            ("0001-01-01T00:00:00+01:00", None),
        ] {
            let parsed = UtcInstant::parse_any_offset(text).ok().map(|instant| instant.to_string());
            assert_eq!(parsed.as_deref(), printed, "{text}");
        }
    }

    proptest! {
        /// Decision 034.
        #[test]
        fn printing_and_parsing_round_trip(micros in MICROS_MIN..=MICROS_MAX) {
            let instant = UtcInstant::from_micros(micros).unwrap();
            let text = instant.to_string();
            prop_assert_eq!(DateInput::parse(&text).map(DateInput::as_end), Ok(instant));
            prop_assert_eq!(UtcInstant::parse_any_offset(&text), Ok(instant));
            prop_assert!(!text.contains('.') || !text.ends_with("0Z"));
        }

        #[test]
        fn no_text_causes_a_panic(text in "[-0-9T:.Z+ ]{0,32}|.{0,32}") {
            let _ = DateInput::parse(&text);
            let _ = UtcInstant::parse_any_offset(&text);
        }
    }
}
