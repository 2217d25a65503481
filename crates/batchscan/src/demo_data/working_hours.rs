//! The working hours of the nursery over the year, in UTC.

use std::ops::{Range, RangeInclusive};

use batchscan_model::UtcInstant;
use jiff::ToSpan;
use jiff::civil::date;

const MICROS_PER_SEC: i64 = 1_000_000;
const SECS_PER_DAY: i64 = 86_400;
const DAYS_PER_YEAR: i64 = 365;

/// Work starts at 06:00, pauses from 11:30 to 12:15 and ends at 16:00.
const OPENS_SECS: i64 = 6 * 3_600;
const MORNING_SECS: i64 = 5 * 3_600 + 1_800;
const BREAK_SECS: i64 = 45 * 60;
const AFTERNOON_SECS: i64 = 3 * 3_600 + 2_700;

/// The 365 days that end with an instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Year {
    end: UtcInstant,
}

impl Year {
    pub(super) fn before(end: UtcInstant) -> Self {
        Self { end }
    }

    /// The days of the year, counted from 1970-01-01.
    pub(super) fn days(self) -> RangeInclusive<i64> {
        let last = self.end.secs().div_euclid(SECS_PER_DAY);
        last - DAYS_PER_YEAR..=last
    }

    /// The working seconds of a day that are within the year, from the first of the day.
    pub(super) fn opening(self, day: i64) -> Range<i64> {
        let midnight = day * SECS_PER_DAY;
        let end = self.end.secs();
        // One second later than exact, so that a fraction of the first second is not before it.
        let start = end - DAYS_PER_YEAR * SECS_PER_DAY + 1;
        worked_before(start - midnight)..worked_before(end - midnight)
    }

    /// The instant after this much working time of a day.
    pub(super) fn instant(self, day: i64, worked_micros: i64) -> UtcInstant {
        let is_morning = worked_micros < MORNING_SECS * MICROS_PER_SEC;
        let idle_secs = day * SECS_PER_DAY + OPENS_SECS + if is_morning { 0 } else { BREAK_SECS };
        let instant = UtcInstant::from_micros(idle_secs * MICROS_PER_SEC + worked_micros);
        // Before year 1 of the calendar: its first instant.
        instant.unwrap_or_else(|| self.end.plus_secs(i64::MIN))
    }
}

/// How many batches are scanned on a weekday, relative to Monday (100).
pub(super) fn weekday_weight(day: i64) -> u64 {
    const MONDAY_TO_SUNDAY: [u64; 7] = [100, 116, 110, 105, 84, 14, 1];
    // 1970-01-01 was a Thursday.
    MONDAY_TO_SUNDAY[(day + 3).rem_euclid(7) as usize]
}

/// The ISO 8601 week of a day, 1 to 53.
pub(super) fn week(day: i64) -> u64 {
    let date = date(1970, 1, 1).saturating_add(day.days());
    date.iso_week_date().week().unsigned_abs().into()
}

/// The working seconds before a second of the day, which may be outside the day.
fn worked_before(second: i64) -> i64 {
    let since_opening = second - OPENS_SECS;
    let afternoon = (since_opening - MORNING_SECS - BREAK_SECS).clamp(0, AFTERNOON_SECS);
    since_opening.clamp(0, MORNING_SECS) + afternoon
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instant(text: &str) -> UtcInstant {
        UtcInstant::parse_any_offset(text).unwrap()
    }

    fn day(date: &str) -> i64 {
        instant(&format!("{date}T00:00:00Z")).secs() / SECS_PER_DAY
    }

    #[test]
    fn weeks_are_those_of_iso_8601() {
        for (date, expected) in [("1970-01-01", 1), ("2021-01-03", 53), ("2021-01-04", 1), ("2026-04-01", 14)]
        {
            assert_eq!(week(day(date)), expected, "{date}");
        }
    }

    #[test]
    fn working_time_skips_the_break_and_the_night() {
        let year = Year::before(instant("2026-06-30T12:30:00Z"));
        let today = day("2026-06-30");
        assert_eq!(year.instant(today, 0), instant("2026-06-30T06:00:00Z"));
        assert_eq!(year.instant(today, (MORNING_SECS - 1) * MICROS_PER_SEC), instant("2026-06-30T11:29:59Z"));
        assert_eq!(year.instant(today, MORNING_SECS * MICROS_PER_SEC), instant("2026-06-30T12:15:00Z"));
        assert_eq!(year.opening(today), 0..MORNING_SECS + 900);
        assert_eq!(year.opening(today - 1), 0..MORNING_SECS + AFTERNOON_SECS);
        assert_eq!(year.opening(today - DAYS_PER_YEAR), MORNING_SECS + 901..MORNING_SECS + AFTERNOON_SECS);
    }
}
