//! Dates and times as people and spreadsheets write them, and the setting that most likely reads a date that is not
//! recognised. Knows no time zones.

use std::borrow::Cow;

use batchscan_model::printable::clip;
use batchscan_model::{Field, FieldError, UtcInstant};
use jiff::fmt::strtime::BrokenDownTime;

use super::mapping::{formats_to_toml, quoted};

/// 1900, in seconds since 1970. Older dates are mistakes of a form.
const SECS_MIN: i64 = -2_208_988_800;

/// A date without its time would be midnight.
pub(super) const ONE_OF_TWO: &str = "a value in only one of the two columns for date and time";

/// The text of a date and a time of day, whichever comes first.
pub(super) fn join_date_and_time(first: &str, second: &str) -> String {
    let (first, second) = (first.trim(), second.trim());
    let is_time = |text: &str| text.contains(':') && !text.contains(['-', '/', ' ']);
    let digits = |text: &str| text.bytes().filter(u8::is_ascii_digit).count();
    let is_time_first = match (is_time(first), is_time(second)) {
        (false, false) => digits(first) < digits(second),
        (is_first, is_second) => is_first && !is_second,
    };
    if is_time_first { format!("{second} {first}") } else { format!("{first} {second}") }.trim().to_owned()
}

/// Parses a time without a zone as UTC's clocks would show it: `2026-11-16 08:00`, `16.11.2026 08:00:00`, `16.11.2026`.
pub(super) fn parse_local(cell: &str) -> Option<UtcInstant> {
    UtcInstant::parse_any_offset(&local_text(cell)?).ok()
}

/// Whether it has the form of a date, which then does not exist.
pub(super) fn is_date_form(cell: &str) -> bool {
    local_text(cell).is_some()
}

/// A time without a zone in the form of the API.
fn local_text(cell: &str) -> Option<String> {
    let (date, time) = cell.split_once(['T', ' ']).unwrap_or((cell, "00:00"));
    let (year, month, day) = match split_three(date, '-') {
        Some((year, month, day)) if month.len() == 2 && day.len() == 2 => (year, month, day),
        Some(_) => return None,
        None => split_three(date, '.').map(|(day, month, year)| (year, month, day))?,
    };
    let (clock, fraction) = time.trim_start().split_once(['.', ',']).unwrap_or((time.trim_start(), "0"));
    let (hour, minute, second) = split_three(clock, ':').or_else(|| {
        let (hour, minute) = clock.split_once(':')?;
        Some((hour, minute, "00"))
    })?;
    let is_number = |text: &str, digits: usize| {
        (1..=digits).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_valid = year.len() == 4
        && is_number(year, 4)
        && [month, day, hour].iter().all(|text| is_number(text, 2))
        && [minute, second].iter().all(|text| text.len() == 2 && is_number(text, 2))
        && is_number(fraction, 9);
    is_valid.then(|| format!("{year}-{month:0>2}-{day:0>2}T{hour:0>2}:{minute}:{second}.{fraction}Z"))
}

fn split_three(text: &str, separator: char) -> Option<(&str, &str, &str)> {
    let mut parts = text.split(separator);
    let found = (parts.next()?, parts.next()?, parts.next()?);
    parts.next().is_none().then_some(found)
}

/// An instant if the form has an offset, or else the time that clocks show.
pub(super) type InstantOrClock = Result<UtcInstant, UtcInstant>;

/// Reads a date in the one of the stated forms that it has.
pub(super) fn parse_with_formats(
    formats: &[String],
    field: Field,
    cell: &str,
) -> Result<InstantOrClock, FieldError> {
    let mut read: Vec<InstantOrClock> =
        formats.iter().filter_map(|format| parse_with_format(format, cell)).collect();
    let has_dates = !read.is_empty();
    // `%Y` also reads two digits, which must not become a year of antiquity.
    read.retain(|(Ok(time) | Err(time))| time.secs() >= SECS_MIN);
    read.dedup();
    let stated = formats_to_toml(formats).unwrap_or_default();
    let expected = match read.as_slice() {
        [one] => return Ok(*one),
        [_, ..] => format!("a date with one meaning: date_format = {stated} in the mapping allows several"),
        [] if has_dates => {
            "a year with four digits from 1900; if all years have two, date_format in a mapping has %y instead of %Y".into()
        }
        [] => {
            let with = |format| formats_to_toml(&[formats, &[format][..]].concat());
            let lists: Vec<String> = likely_formats(cell).into_iter().filter_map(with).collect();
            let more = match lists.is_empty() {
                true => String::new(),
                false => format!(
                    "; if there are several forms, list them: date_format = {}",
                    lists.join(" or date_format = ")
                ),
            };
            format!("a date as date_format = {stated} in the mapping says{more}")
        }
    };
    Err(FieldError::new(field.name(), quoted(&clip(cell)), expected))
}

fn parse_with_format(format: &str, cell: &str) -> Option<InstantOrClock> {
    let (format, cell) = match format.contains("%b") || format.contains("%B") {
        true => (Cow::Owned(format.replace("%B", "%b")), Cow::Owned(with_english_month(cell)?)),
        false => (Cow::Borrowed(format), Cow::Borrowed(cell)),
    };
    let parsed = BrokenDownTime::parse(&*format, &*cell).ok()?;
    if parsed.offset().is_some() {
        let instant = parsed.to_timestamp().ok()?;
        return UtcInstant::from_micros(instant.as_microsecond()).map(Ok);
    }
    let date = parsed.to_date().ok()?;
    // Without an hour it is midnight.
    let time = parsed.to_time().unwrap_or_default();
    UtcInstant::parse_any_offset(&format!("{}Z", date.to_datetime(time))).ok().map(Err)
}

/// Replaces the name of a month by the English one of three letters.
fn with_english_month(cell: &str) -> Option<String> {
    let is_end = |c: char| !c.is_alphabetic();
    let word = cell.split(is_end).find(|word| month(word).is_some())?;
    Some(cell.replacen(word, month(word)?, 1))
}

/// The month of a name or of its first letters, in English, German, French, Dutch, Spanish, Italian and Polish. A longer
/// word is not one: Finnish "marraskuuta" is in November.
fn month(word: &str) -> Option<&'static str> {
    const MONTHS: [(&str, &str); 12] = [
        ("Jan", "january januar jänner janvier januari enero gennaio styczeń stycznia"),
        ("Feb", "february februar feber février fevrier februari febrero febbraio luty lutego"),
        ("Mar", "march märz mrz mars maart mrt marzo marzec marca"),
        ("Apr", "april avril abril aprile kwiecień kwietnia"),
        ("May", "may mai mei mayo maggio maj maja"),
        ("Jun", "june juni juin junio giugno czerwiec czerwca"),
        ("Jul", "july juli juillet julio luglio lipiec lipca"),
        ("Aug", "august août aout augustus agosto sierpień sierpnia"),
        ("Sep", "september septembre septiembre setiembre settembre wrzesień września wrzesnia"),
        ("Oct", "october oktober octobre octubre ottobre październik października pazdziernika"),
        ("Nov", "november novembre noviembre listopad listopada"),
        ("Dec", "december dezember décembre decembre diciembre dicembre grudzień grudnia"),
    ];
    const LETTERS_MIN: usize = 3;
    let word = word.to_lowercase();
    let is_it = |names: &str| names.split(' ').any(|name| name.starts_with(&word));
    let mut months = MONTHS.iter().filter(|(_, names)| is_it(names)).map(|(name, _)| *name);
    // French "jui" may be June or July.
    let (month, other) = (months.next(), months.next());
    month.filter(|_| word.chars().count() >= LETTERS_MIN && other.is_none())
}

/// The date that was expected, with the most likely setting.
pub(super) fn expected_date(cell: &str) -> String {
    let formats = likely_formats(cell);
    let setting = match formats.as_slice() {
        [] => "another form stated in a mapping, such as date_format = \"%d.%m.%y %H:%M\"".into(),
        formats => {
            let forms: Vec<String> =
                formats.iter().map(|format| format!("date_format = {}", quoted(format))).collect();
            let years = match formats[0].contains("%y") {
                true => format!(
                    ", or [{}, {}] if other years have four digits",
                    quoted(&formats[0]),
                    quoted(&formats[0].replace("%y", "%Y"))
                ),
                false => String::new(),
            };
            format!("{} in a mapping{years}", forms.join(" or "))
        }
    };
    format!("a date such as 2026-11-16T08:00:00Z, 2026-11-16 08:00 or 16.11.2026 08:00, or {setting}")
}

/// Whether a text is a date in some form.
pub(super) fn is_like_date(cell: &str) -> bool {
    is_date_form(cell) || UtcInstant::parse_any_offset(cell).is_ok() || !likely_formats(cell).is_empty()
}

/// The forms that a date may have. Two if the day and the month may be either way round.
fn likely_formats(cell: &str) -> Vec<String> {
    /// Words that are the same in every row. Others may be zones.
    const WORDS: [&str; 14] =
        ["T", "h", "u", "Uhr", "uur", "à", "um", "om", "at", "a", "las", "de", "del", "godz"];
    let runs = runs(cell);
    let is_digits = |run: &str| run.starts_with(|c: char| c.is_ascii_digit());
    let numbers: Vec<&str> = runs.iter().copied().filter(|run| is_digits(run)).collect();
    let words: Vec<&str> = runs.iter().copied().filter(|run| run.starts_with(char::is_alphabetic)).collect();
    let named = words.iter().find(|word| month(word).is_some());
    let half = words.iter().find(|word| ["AM", "PM"].contains(&&*word.to_uppercase()));
    let is_known = |word: &&str| Some(word) == named || Some(word) == half || WORDS.contains(word);
    let year_of = |number: &str| match number.len() {
        4 => Some("%Y"),
        2 => Some("%y"),
        _ => None,
    };
    let (hour, is_day) =
        (if half.is_some() { "%I" } else { "%H" }, |text: &str| text.parse().is_ok_and(|day: u32| day > 12));
    let orders: Vec<Vec<&str>> = match (named, numbers.as_slice()) {
        (Some(_), [_, year, ..]) => year_of(year).map(|year| vec!["%d", year]).into_iter().collect(),
        (None, [year, ..]) if year.len() == 4 => vec![vec!["%Y", "%m", "%d"]],
        (None, [first, second, year, ..]) => year_of(year).map_or(Vec::new(), |year| {
            let (day_first, month_first) = (vec!["%d", "%m", year], vec!["%m", "%d", year]);
            match (is_day(first), is_day(second)) {
                (false, true) => vec![month_first],
                (true, _) => vec![day_first],
                _ if cell.contains('.') && !cell.contains('/') => vec![day_first],
                _ => vec![day_first, month_first],
            }
        }),
        _ => Vec::new(),
    };
    // Other texts are too long for a message, or unprintable.
    let is_plain = words.iter().all(is_known) && !cell.contains('+') && clip(cell) == cell;
    let literal = |run: &str| match run {
        _ if Some(&run) == named => "%b".to_owned(),
        _ if Some(&run) == half => "%p".to_owned(),
        _ => run.replace('%', "%%"),
    };
    let format = |order: Vec<&str>| {
        let mut marks = order.into_iter().chain([hour, "%M", "%S"]);
        let mut before = "";
        let text = |run| match (is_digits(run), std::mem::replace(&mut before, run)) {
            (false, _) => Some(literal(run)),
            (true, before) => {
                // Behind a space it would be an offset.
                let mark =
                    marks.next().filter(|mark| !matches!(*mark, "%M" | "%S") || before.trim() == before);
                mark.map(str::to_owned)
            }
        };
        runs.iter().copied().map(text).collect::<Option<String>>()
    };
    let formats = orders.into_iter().filter(|_| is_plain).filter_map(format);
    // `03.04. 08:00` has no year.
    let is_time_read_as_date =
        |format: &String| ["%d:", "%m:", "%y:", "%y.%H"].iter().any(|part| format.contains(part));
    let formats = formats.filter(|format| !is_time_read_as_date(format));
    // Only those that read it.
    formats.filter(|format| parse_with_format(format, cell).is_some()).collect()
}

/// The numbers of a text, its words, and what stands between them.
fn runs(cell: &str) -> Vec<&str> {
    let mut runs: Vec<&str> = Vec::new();
    let mut rest = cell;
    while let Some(first) = rest.chars().next() {
        let is_same = |c: char| {
            c.is_ascii_digit() == first.is_ascii_digit() && c.is_alphabetic() == first.is_alphabetic()
        };
        let (run, after) = rest.split_at(rest.find(|c| !is_same(c)).unwrap_or(rest.len()));
        runs.push(run);
        rest = after;
    }
    runs
}
