//! Instants of the interface as microseconds since 1970, and back. Knows UTC alone.

const MICROS: i64 = 1_000_000;
const DAY_SECS: i64 = 86_400;

/// `2026-01-31T08:00:00Z` or `2026-01-31T08:00:00.405Z` as microseconds.
pub(crate) fn micros_of(text: &str) -> Option<i64> {
    let text = text.strip_suffix('Z').or_else(|| text.strip_suffix("+00:00"))?;
    let (date, time) = text.split_once(['T', ' '])?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
    let [year, month, day] = numbers(date, '-')?;
    let [hour, minute, second] = numbers(time, ':')?;
    let seconds = days_before(year, month, day) * DAY_SECS + hour * 3600 + minute * 60 + second;
    // Six digits, however many there are.
    let fraction: String = fraction.chars().chain("000000".chars()).take(6).collect();
    Some(seconds * MICROS + fraction.parse::<i64>().ok()?)
}

/// The second in which an instant lies, as `2026-01-31T08:00:00`: to be followed by a fraction or `Z`.
pub(crate) fn second_of(micros: i64) -> String {
    let seconds = micros.div_euclid(MICROS);
    let (day, time) = (seconds.div_euclid(DAY_SECS), seconds.rem_euclid(DAY_SECS));
    let (year, month, day) = date_of(day);
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

/// The first whole second after an instant, in microseconds.
pub(crate) fn next_second(micros: i64) -> i64 {
    (micros.div_euclid(MICROS) + 1) * MICROS
}

fn numbers(text: &str, separator: char) -> Option<[i64; 3]> {
    let parts: Vec<i64> = text.split(separator).map(|part| part.parse().ok()).collect::<Option<_>>()?;
    parts.try_into().ok()
}

/// Days from 1970 to the first day of a year.
fn days_before_year(year: i64) -> i64 {
    let leap_days = |year: i64| year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    (year - 1970) * 365 + leap_days(year - 1) - leap_days(1969)
}

fn days_before(year: i64, month: i64, day: i64) -> i64 {
    days_before_year(year) + (1..month).map(|month| days_in(year, month)).sum::<i64>() + day - 1
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn date_of(day: i64) -> (i64, i64, i64) {
    // At most a year too late, as no year has fewer than 365 days.
    let mut year = 1970 + day.div_euclid(365);
    while days_before_year(year) > day {
        year -= 1;
    }
    let (mut month, mut left) = (1, day - days_before_year(year));
    while left >= days_in(year, month) {
        left -= days_in(year, month);
        month += 1;
    }
    (year, month, left + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_read_with_and_without_fractions() {
        assert_eq!(micros_of("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(micros_of("1970-01-02T00:00:01.405Z"), Some(86_401_405_000));
        assert_eq!(micros_of("1970-01-02 00:00:01.405000+00:00"), Some(86_401_405_000));
        assert_eq!(micros_of("2199-01-01T00:00:00Z"), Some(7_226_582_400_000_000));
        assert_eq!(micros_of("2026-01-31T08:00:00"), None);
        assert_eq!(micros_of("2026-01-31"), None);
    }

    #[test]
    fn a_second_is_written_as_it_was_read() {
        for text in
            ["1970-01-01T00:00:00", "2024-02-29T23:59:59", "2025-12-31T23:59:59", "2100-03-01T00:00:00"]
        {
            assert_eq!(second_of(micros_of(&format!("{text}.25Z")).unwrap()), text);
        }
        assert_eq!(next_second(1), 1_000_000);
        assert_eq!(next_second(1_000_000), 2_000_000);
    }
}
