//! Date ranges as people type them: `2026-01`, `yesterday`, `30d`. All dates are UTC. Reads no clock.

use std::fmt;

use batchscan_model::instant::DateInput;
use batchscan_model::{DateRange, UtcInstant};
use jiff::civil::{Date, DateTime, datetime};
use jiff::{SignedDuration, Span};

const FORMATS: &str = "expected 2026-01-31, 2026-01-31T08:00:00Z, 2026-01, 2026, now, today, yesterday, \
    a time before today: 30d, 12w, 6m (months), 1y, \
    or hours before now: 6h";

/// Bounds a number before it is parsed. The calendar has fewer days.
const AGO_DIGITS_MAX: usize = 7;

const EPOCH: DateTime = datetime(1970, 1, 1, 0, 0, 0, 0);
const MICROS_PER_HOUR: i64 = 3_600_000_000;
const MICROS_PER_DAY: i64 = 24 * MICROS_PER_HOUR;

pub(crate) fn day_of(instant: UtcInstant) -> Date {
    EPOCH.saturating_add(SignedDuration::from_secs(instant.secs())).date()
}

/// The first instant of a day, if it can be stored.
pub(crate) fn start_of(day: Date) -> Option<UtcInstant> {
    UtcInstant::from_micros(day.duration_since(EPOCH.date()).as_secs() * 1_000_000)
}

/// One end of a date range: the text, and the instant it meant when it was typed. `30d` is another day tomorrow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DateArg {
    pub(crate) text: String,
    pub(crate) instant: UtcInstant,
}

impl DateArg {
    /// The first instant of a day, month or year.
    pub(crate) fn parse_start(text: &str, now: UtcInstant) -> Result<Self, String> {
        let (first, _) = parse(text, now).ok_or_else(|| invalid(text, now))?;
        Ok(Self { text: text.to_owned(), instant: first })
    }

    /// The last microsecond of a day, month or year.
    pub(crate) fn parse_end(text: &str, now: UtcInstant) -> Result<Self, String> {
        let (_, last) = parse(text, now).ok_or_else(|| invalid(text, now))?;
        Ok(Self { text: text.to_owned(), instant: last })
    }
}

/// A date range with the texts it was typed as. Its end is never before its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DateArgRange {
    pub(crate) start: Option<DateArg>,
    pub(crate) end: Option<DateArg>,
}

impl DateArgRange {
    /// A range of both ends; an error if they are in the wrong order.
    pub(crate) fn new(start: Option<DateArg>, end: Option<DateArg>) -> Result<Self, String> {
        if let (Some(start), Some(end)) = (&start, &end)
            && start.instant > end.instant
        {
            return Err(format!("the date range ends before it starts: from {start} to {end}"));
        }
        Ok(Self { start, end })
    }

    pub(crate) fn range(&self) -> DateRange {
        let instant = |end: &Option<DateArg>| end.as_ref().map(|date| date.instant);
        DateRange { start: instant(&self.start), end: instant(&self.end) }
    }
}

impl fmt::Display for DateArgRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.range() {
            DateRange { start: Some(start), end: Some(end) } => write!(f, "{start} to {end}"),
            DateRange { start: Some(start), end: None } => write!(f, "from {start}"),
            DateRange { start: None, end: Some(end) } => write!(f, "up to {end}"),
            DateRange { start: None, end: None } => f.write_str("all dates"),
        }
    }
}

impl fmt::Display for DateArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let instant = self.instant.to_string();
        if self.text == instant { f.write_str(&instant) } else { write!(f, "{} ({instant})", self.text) }
    }
}

/// What is expected instead of an invalid date.
fn invalid(text: &str, now: UtcInstant) -> String {
    match text.strip_prefix('-') {
        Some(rest) if parse(rest, now).is_some() => format!("write {rest}, without the minus"),
        _ => FORMATS.to_owned(),
    }
}

/// The first and the last instant of a date.
fn parse(text: &str, now: UtcInstant) -> Option<(UtcInstant, UtcInstant)> {
    if text.eq_ignore_ascii_case("now") {
        return Some((now, now));
    }
    if let Ok(date) = DateInput::parse(text) {
        // None for a start after the last instant that can be stored.
        return Some((UtcInstant::from_micros(date.as_start().micros())?, date.as_end()));
    }
    if let Some(hours) = text.strip_suffix(['h', 'H']).and_then(ago_count) {
        let then = UtcInstant::from_micros(now.micros().checked_sub(hours.checked_mul(MICROS_PER_HOUR)?)?)?;
        return Some((then, then));
    }
    let (first, last) = days(&text.to_ascii_lowercase(), day_of(now))?;
    let last_micros = start_of(last)?.micros() + MICROS_PER_DAY - 1;
    Some((start_of(first)?, UtcInstant::from_micros(last_micros)?))
}

/// The first and the last day of a text.
fn days(text: &str, today: Date) -> Option<(Date, Date)> {
    let one = |day: Date| (day, day);
    match text {
        "today" => return Some(one(today)),
        "yesterday" => return today.yesterday().ok().map(one),
        _ => {}
    }
    let parts: Vec<&str> = text.split('-').collect();
    match parts[..] {
        [year, month, day] => Date::new(number(year, 4)?, number(month, 2)?, number(day, 2)?).ok().map(one),
        [year, month] => {
            let first = Date::new(number(year, 4)?, number(month, 2)?, 1).ok()?;
            Some((first, first.last_of_month()))
        }
        [year] if year.len() == 4 && year.bytes().all(|byte| byte.is_ascii_digit()) => {
            let first = Date::new(number(year, 4)?, 1, 1).ok()?;
            Some((first, first.last_of_year()))
        }
        [ago] => days_ago(ago, today).map(one),
        _ => None,
    }
}

/// `30d` before today. In a shorter month it is the last day.
fn days_ago(text: &str, today: Date) -> Option<Date> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let count = ago_count(digits)?;
    let span = match unit {
        "d" => Span::new().try_days(count),
        "w" => Span::new().try_weeks(count),
        "m" => Span::new().try_months(count),
        "y" => Span::new().try_years(count),
        _ => return None,
    };
    today.checked_sub(span.ok()?).ok()
}

fn ago_count(digits: &str) -> Option<i64> {
    let is_number =
        (1..=AGO_DIGITS_MAX).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}

/// A number of exactly this many digits.
fn number<N: std::str::FromStr>(text: &str, digits: usize) -> Option<N> {
    let is_valid = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    is_valid.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn instant(text: &str) -> UtcInstant {
        DateInput::parse(text).unwrap().as_end()
    }

    fn now() -> UtcInstant {
        instant("2026-03-31T15:04:05.678Z")
    }

    fn start(text: &str, now: UtcInstant) -> Result<UtcInstant, String> {
        DateArg::parse_start(text, now).map(|date| date.instant)
    }

    fn end(text: &str, now: UtcInstant) -> Result<UtcInstant, String> {
        DateArg::parse_end(text, now).map(|date| date.instant)
    }

    fn both(text: &str) -> (String, String) {
        (start(text, now()).unwrap().to_string(), end(text, now()).unwrap().to_string())
    }

    fn typed(start: Option<&str>, end: Option<&str>) -> Result<DateArgRange, String> {
        let start = start.map(|text| DateArg::parse_start(text, now())).transpose()?;
        let end = end.map(|text| DateArg::parse_end(text, now())).transpose()?;
        DateArgRange::new(start, end)
    }

    fn assert_days(text: &str, first: &str, last: &str) {
        assert_eq!(both(text), (format!("{first}T00:00:00Z"), format!("{last}T23:59:59.999999Z")), "{text}");
    }

    #[test]
    fn a_day_a_month_and_a_year_span_their_first_to_their_last_instant() {
        assert_days("2026-01-31", "2026-01-31", "2026-01-31");
        assert_days("2024-02", "2024-02-01", "2024-02-29");
        assert_days("2026", "2026-01-01", "2026-12-31");
        assert_days("today", "2026-03-31", "2026-03-31");
        assert_days("yesterday", "2026-03-30", "2026-03-30");
        assert_days("9999", "9999-01-01", "9999-12-31");
    }

    #[test]
    fn a_time_before_today_is_a_whole_day_and_month_ends_clamp() {
        assert_days("0d", "2026-03-31", "2026-03-31");
        assert_days("30d", "2026-03-01", "2026-03-01");
        assert_days("12w", "2026-01-06", "2026-01-06");
        assert_days("1m", "2026-02-28", "2026-02-28");
        assert_days("25m", "2024-02-29", "2024-02-29");
        assert_days("1y", "2025-03-31", "2025-03-31");
        let leap_day = instant("2024-02-29T12:00:00Z");
        assert_eq!(start("1y", leap_day).unwrap().to_string(), "2023-02-28T00:00:00Z");
    }

    #[test]
    fn an_instant_is_itself_at_both_ends() {
        let same = |text: &str| (text.to_owned(), text.to_owned());
        assert_eq!(both("2026-01-31T08:00:00Z"), same("2026-01-31T08:00:00Z"));
        assert_eq!(both("2026-01-31T08:00:00.5+00:00"), same("2026-01-31T08:00:00.5Z"));
        assert_eq!(both("now"), same("2026-03-31T15:04:05.678Z"));
        assert_eq!(both("6h"), same("2026-03-31T09:04:05.678Z"));
        assert_eq!((both("Now"), both("30D"), both("Today")), (both("now"), both("30d"), both("today")));
    }

    #[test]
    fn invalid_dates_are_rejected_with_the_accepted_formats() {
        let invalid = "|x|d|30|30 d|-30 d|+30d|1.5d|1.5h|99999999d|3000y| today|2026-1|2026-13|2026-02-30\
            |26-01-31|0000|0000-01|31.01.2026|2026-01-31T08:00:00|2026-01-31T08:00:00+02:00|2026-01-31T08:00Z\
            |2026-01-31Z|2026-|2026-01-|２026|9999-12-31T23:59:59.9999999Z";
        for text in invalid.split('|') {
            assert_eq!(start(text, now()), Err(FORMATS.to_owned()), "{text}");
        }
        assert_eq!(end("-30d", now()), Err("write 30d, without the minus".to_owned()));
    }

    #[test]
    fn a_range_that_ends_before_it_starts_is_rejected() {
        let error = typed(Some("today"), Some("2026-01-31T08:00:00Z")).unwrap_err();
        assert_eq!(
            error,
            "the date range ends before it starts: from today (2026-03-31T00:00:00Z) to 2026-01-31T08:00:00Z"
        );
        assert!(typed(Some("now"), Some("now")).is_ok());
    }

    #[test]
    fn a_range_is_printed_as_its_instants() {
        let shown = |start, end| typed(start, end).unwrap().to_string();
        assert_eq!(
            shown(Some("2026-01"), Some("2026-01")),
            "2026-01-01T00:00:00Z to 2026-01-31T23:59:59.999999Z"
        );
        assert_eq!(shown(Some("2026"), None), "from 2026-01-01T00:00:00Z");
        assert_eq!(shown(None, Some("2025")), "up to 2025-12-31T23:59:59.999999Z");
        assert_eq!(shown(None, None), "all dates");
    }

    #[test]
    fn the_typed_text_is_kept_with_its_instant() {
        let start = typed(Some("1m"), None).unwrap().start.unwrap();
        assert_eq!((start.text.as_str(), start.instant), ("1m", instant("2026-02-28T00:00:00Z")));
    }

    proptest! {
        #[test]
        fn no_text_panics_and_parsed_dates_print_in_the_format_of_the_api(
            text in "[-0-9dwmyT:.Z+ ]{0,32}|[0-9]{1,8}[dwmy]|.{0,16}",
            micros in -62_135_596_800_000_000i64..253_402_300_800_000_000,
        ) {
            let now = UtcInstant::from_micros(micros).unwrap();
            for parsed in [start(&text, now), end(&text, now)].into_iter().flatten() {
                prop_assert_eq!(instant(&parsed.to_string()), parsed);
            }
        }

        #[test]
        fn dates_span_whole_days(
            text in "today|yesterday|[0-9]{1,4}[dwmy]|20[0-9]{2}|20[0-9]{2}-0[1-9]|20[0-9]{2}-1[0-2]-[0-2][1-8]",
            secs in 1_600_000_000i64..4_000_000_000,
        ) {
            let now = UtcInstant::EPOCH.plus_secs(secs);
            // The calendar starts in year 1.
            if let Ok(start) = start(&text, now) {
                let length = end(&text, now).unwrap().micros() - start.micros() + 1;
                prop_assert!(length > 0 && length % MICROS_PER_DAY == 0, "{text}: {length}");
            }
        }
    }
}
