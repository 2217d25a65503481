//! The dates people type for a window of batches: `2026-01`, `yesterday`, `30d`. All of them are in UTC.
//! Reads no clock, and refuses whatever could be read in two ways.

use std::fmt;

use batchscan_model::instant::DateInput;
use batchscan_model::{DateRange, UtcInstant};
use jiff::civil::{Date, DateTime, date, datetime};
use jiff::{SignedDuration, Span};

/// What can be typed, in the one line that a wrong date is answered with.
const FORMS: &str = "write 2026-01-31, 2026-01-31T08:00:00Z, 2026-01, 2026, now, today, yesterday, \
    or a time before today: 30d, 12w, 6m (months), 1y";

/// No window reaches back further than the calendar does; it bounds the number before it is one.
const AGO_DIGITS_MAX: usize = 7;

const EPOCH: DateTime = datetime(1970, 1, 1, 0, 0, 0, 0);
const MICROS_PER_DAY: i64 = 86_400_000_000;

/// A window's first instant: of a day, month or year that is its beginning.
pub(crate) fn parse_start(text: &str, now: UtcInstant) -> Result<UtcInstant, String> {
    meant(text, now).map(|meant| meant.first).ok_or_else(|| FORMS.to_owned())
}

/// A window's last instant: of a day, month or year that is its last microsecond.
pub(crate) fn parse_end(text: &str, now: UtcInstant) -> Result<UtcInstant, String> {
    meant(text, now).map(|meant| meant.last).ok_or_else(|| FORMS.to_owned())
}

/// The day of an instant, in UTC.
pub(crate) fn day_of(instant: UtcInstant) -> Date {
    EPOCH.saturating_add(SignedDuration::from_secs(instant.secs())).date()
}

/// One end of a window: what was typed, and what it meant then. `30d` means another day tomorrow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Typed {
    /// As typed.
    pub(crate) text: String,
    /// What it meant when it was typed.
    pub(crate) instant: UtcInstant,
}

/// Which batches are asked for, by the dates somebody typed. Its end is never before its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Window {
    start: Option<Typed>,
    end: Option<Typed>,
}

impl Window {
    /// Reads both ends.
    pub(crate) fn typed(start: Option<&str>, end: Option<&str>, now: UtcInstant) -> Result<Self, String> {
        let read = |text: &str, parse: fn(&str, UtcInstant) -> Result<UtcInstant, String>| {
            let instant = parse(text, now).map_err(|forms| format!("{text:?} is no date: {forms}"))?;
            Ok::<_, String>(Typed { text: text.to_owned(), instant })
        };
        let start = start.map(|text| read(text, parse_start)).transpose()?;
        let end = end.map(|text| read(text, parse_end)).transpose()?;
        Self::between(start, end)
    }

    /// Takes both ends as they were read before.
    pub(crate) fn between(start: Option<Typed>, end: Option<Typed>) -> Result<Self, String> {
        if let (Some(start), Some(end)) = (&start, &end)
            && start.instant > end.instant
        {
            return Err(format!("the window ends before it begins: it is from {start} to {end}"));
        }
        Ok(Self { start, end })
    }

    /// Its beginning.
    pub(crate) fn start(&self) -> Option<&Typed> {
        self.start.as_ref()
    }

    /// Its end.
    pub(crate) fn end(&self) -> Option<&Typed> {
        self.end.as_ref()
    }

    /// Its two instants.
    pub(crate) fn range(&self) -> DateRange {
        let instant = |end: &Option<Typed>| end.as_ref().map(|typed| typed.instant);
        DateRange { start: instant(&self.start), end: instant(&self.end) }
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.range() {
            DateRange { start: Some(start), end: Some(end) } => write!(f, "{start} to {end}"),
            DateRange { start: Some(start), end: None } => write!(f, "from {start}"),
            DateRange { start: None, end: Some(end) } => write!(f, "up to {end}"),
            DateRange { start: None, end: None } => f.write_str("all time"),
        }
    }
}

impl fmt::Display for Typed {
    /// The instant, with the words for it if they are others.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let instant = self.instant.to_string();
        if self.text == instant { f.write_str(&instant) } else { write!(f, "{} ({instant})", self.text) }
    }
}

/// The first and the last stored instant that a text means.
struct Meant {
    first: UtcInstant,
    last: UtcInstant,
}

fn meant(text: &str, now: UtcInstant) -> Option<Meant> {
    if text.eq_ignore_ascii_case("now") {
        return Some(Meant { first: now, last: now });
    }
    if let Ok(date) = DateInput::parse(text) {
        // The first instant after the last one there is: nothing can be on or after it.
        let first = UtcInstant::from_micros(date.as_start().micros())?;
        return Some(Meant { first, last: date.as_end() });
    }
    let (first, last) = days(&text.to_ascii_lowercase(), day_of(now))?;
    let first_micros = day_number(first).checked_mul(MICROS_PER_DAY)?;
    let last_micros = (day_number(last) + 1).checked_mul(MICROS_PER_DAY)? - 1;
    Some(Meant { first: UtcInstant::from_micros(first_micros)?, last: UtcInstant::from_micros(last_micros)? })
}

/// The first and the last day that a text means.
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
        [ago] => before(ago, today).map(one),
        _ => None,
    }
}

/// The day that lies so long before today. A month or year ends on its last day if it has no such day.
fn before(text: &str, today: Date) -> Option<Date> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if !(1..=AGO_DIGITS_MAX).contains(&digits.len()) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let count: i64 = digits.parse().ok()?;
    let span = match unit {
        "d" => Span::new().try_days(count),
        "w" => Span::new().try_weeks(count),
        "m" => Span::new().try_months(count),
        "y" => Span::new().try_years(count),
        _ => return None,
    };
    today.checked_sub(span.ok()?).ok()
}

/// Exactly so many digits.
fn number<N: std::str::FromStr>(text: &str, digits: usize) -> Option<N> {
    let right = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    right.then(|| text.parse().ok()).flatten()
}

/// Days since 1970-01-01.
fn day_number(day: Date) -> i64 {
    day.duration_since(date(1970, 1, 1)).as_secs() / 86_400
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

    fn both(text: &str) -> (String, String) {
        let (start, end) = (parse_start(text, now()).unwrap(), parse_end(text, now()).unwrap());
        (start.to_string(), end.to_string())
    }

    fn assert_days(text: &str, first: &str, last: &str) {
        assert_eq!(both(text), (format!("{first}T00:00:00Z"), format!("{last}T23:59:59.999999Z")), "{text}");
    }

    #[test]
    fn a_day_a_month_and_a_year_reach_from_their_first_to_their_last_instant() {
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
        assert_eq!(parse_start("1y", leap_day).unwrap().to_string(), "2023-02-28T00:00:00Z");
    }

    #[test]
    fn an_instant_is_itself_at_both_ends() {
        let same = |text: &str| (text.to_owned(), text.to_owned());
        assert_eq!(both("2026-01-31T08:00:00Z"), same("2026-01-31T08:00:00Z"));
        assert_eq!(both("2026-01-31T08:00:00.5+00:00"), same("2026-01-31T08:00:00.5Z"));
        assert_eq!(both("now"), same("2026-03-31T15:04:05.678Z"));
        assert_eq!((both("Now"), both("30D"), both("Today")), (both("now"), both("30d"), both("today")));
    }

    #[test]
    fn all_else_is_answered_with_the_accepted_forms_in_one_line() {
        let others = "|x|d|30|30 d|-30d|+30d|1.5d|1h|99999999d|3000y| today|2026-1|2026-13|2026-02-30\
            |26-01-31|0000|0000-01|31.01.2026|2026-01-31T08:00:00|2026-01-31T08:00:00+02:00|2026-01-31T08:00Z\
            |2026-01-31Z|2026-|-2026|2026-01-|２026|9999-12-31T23:59:59.9999999Z";
        for text in others.split('|') {
            assert_eq!(parse_start(text, now()), Err(FORMS.to_owned()), "{text}");
        }
        assert!(!FORMS.contains('\n') && FORMS.len() < 160);
        let told = Window::typed(Some("31.01.\u{1b}[2J"), None, now()).unwrap_err();
        assert!(told.starts_with("\"31.01.\\u{1b}[2J\" is no date: write 2026-01-31"), "{told}");
    }

    #[test]
    fn a_window_that_ends_before_it_begins_names_both_ends() {
        let told = Window::typed(Some("today"), Some("2026-01-31T08:00:00Z"), now()).unwrap_err();
        assert_eq!(
            told,
            "the window ends before it begins: it is from today (2026-03-31T00:00:00Z) to 2026-01-31T08:00:00Z"
        );
        assert!(Window::typed(Some("now"), Some("now"), now()).is_ok());
    }

    #[test]
    fn a_window_reads_as_the_instants_it_spans() {
        let shown = |start, end| Window::typed(start, end, now()).unwrap().to_string();
        assert_eq!(
            shown(Some("2026-01"), Some("2026-01")),
            "2026-01-01T00:00:00Z to 2026-01-31T23:59:59.999999Z"
        );
        assert_eq!(shown(Some("2026"), None), "from 2026-01-01T00:00:00Z");
        assert_eq!(shown(None, Some("2025")), "up to 2025-12-31T23:59:59.999999Z");
        assert_eq!(shown(None, None), "all time");
    }

    #[test]
    fn what_was_typed_is_kept_beside_what_it_means() {
        let window = Window::typed(Some("1m"), None, now()).unwrap();
        let start = window.start().unwrap();
        assert_eq!((start.text.as_str(), start.instant), ("1m", instant("2026-02-28T00:00:00Z")));
        assert_eq!(window.end(), None);
        assert_eq!(Window::between(Some(start.clone()), None), Ok(window));
    }

    proptest! {
        #[test]
        fn no_text_panics_and_what_is_read_prints_as_the_interface_reads_it(
            text in "[-0-9dwmyT:.Z+ ]{0,32}|[0-9]{1,8}[dwmy]|.{0,16}",
            micros in -62_135_596_800_000_000i64..253_402_300_800_000_000,
        ) {
            let now = UtcInstant::from_micros(micros).unwrap();
            for read in [parse_start(&text, now), parse_end(&text, now)].into_iter().flatten() {
                prop_assert_eq!(instant(&read.to_string()), read);
            }
        }

        #[test]
        fn whole_days_begin_before_they_end(
            text in "today|yesterday|[0-9]{1,4}[dwmy]|20[0-9]{2}|20[0-9]{2}-0[1-9]|20[0-9]{2}-1[0-2]-[0-2][1-8]",
            secs in 1_600_000_000i64..4_000_000_000,
        ) {
            let now = UtcInstant::EPOCH.plus_secs(secs);
            // 2000 years and more before today there may be no calendar.
            if let Ok(start) = parse_start(&text, now) {
                let length = parse_end(&text, now).unwrap().micros() - start.micros() + 1;
                prop_assert!(length > 0 && length % MICROS_PER_DAY == 0, "{text}: {length}");
            }
        }
    }
}
