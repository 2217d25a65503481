//! How a cell becomes a value: dates, numbers and flags as people and spreadsheets write them. What could have two
//! meanings is an error that names the setting that decides.

use std::borrow::Cow;

use batchscan_model::printable::clip;
use batchscan_model::{Field, FieldError, Kind, LocalTimeError, UtcInstant, Value, Zone};
use jiff::fmt::strtime::BrokenDownTime;

use super::ReadOptions;
use super::error::{LocatedError, Location};
use super::mapping::{DecimalMark, Mapping, quoted};
use super::number::Number;

const TRUE_WORDS: [&str; 9] = ["true", "1", "yes", "y", "ja", "oui", "x", "wahr", "vrai"];
const FALSE_WORDS: [&str; 9] = ["false", "0", "no", "n", "nein", "nee", "non", "falsch", "faux"];

/// Converts the cells of a file, and remembers what they show about it.
pub(super) struct Converter<'o> {
    mapping: &'o Mapping,
    zone: Option<Zone>,
    is_zone_missing: bool,
    /// Whether a number shows that the decimal mark is a point. Set by the fast path, too.
    pub(super) has_point: bool,
    comma: Option<Seen>,
    /// Numbers whose mark may separate thousands: with a point, with a comma.
    ambiguous: [Option<Seen>; 2],
}

/// The first number of a kind.
struct Seen {
    location: Location,
    field: Field,
    text: String,
}

impl<'o> Converter<'o> {
    /// `zone` is the one in the header.
    pub(super) fn new(options: &'o ReadOptions, zone: Option<Zone>) -> Self {
        let zone = zone.or_else(|| options.timezone.clone()).or_else(|| options.mapping.timezone.clone());
        let (is_zone_missing, has_point, comma) = (false, false, None);
        Self { mapping: &options.mapping, zone, is_zone_missing, has_point, comma, ambiguous: [None, None] }
    }

    /// The zone of times without one.
    pub(super) fn zone(&self) -> Option<&Zone> {
        self.zone.as_ref()
    }

    /// The value of a text.
    pub(super) fn text<'t>(
        &mut self,
        field: Field,
        cell: Cow<'t, str>,
        location: Location,
    ) -> Result<Value<'t>, FieldError> {
        match field.kind() {
            _ if self.mapping.is_empty_word(&cell) => self.empty(field),
            Kind::Id | Kind::Name | Kind::Text | Kind::Link => Ok(Value::Cell(cell)),
            _ if cell.trim().is_empty() => self.empty(field),
            Kind::Instant => self.time(field, cell.trim()),
            Kind::Count | Kind::Decimal => self.number(field, cell.trim(), location),
            Kind::Flag => self.flag(field, cell.trim()),
        }
    }

    /// Whether a cell means the same as an empty one.
    pub(super) fn is_empty_word(&self, cell: &str) -> bool {
        self.mapping.is_empty_word(cell)
    }

    pub(super) fn ignores_rows(&self) -> bool {
        !self.mapping.ignore_rows.is_empty()
    }

    /// Whether a row that begins with this text is to be ignored.
    pub(super) fn is_ignored_row(&self, first: &str) -> bool {
        self.mapping.is_ignored_row(first)
    }

    /// The value of an empty cell.
    pub(super) fn empty(&self, field: Field) -> Result<Value<'static>, FieldError> {
        if field.kind() != Kind::Flag {
            return Ok(Value::Null);
        }
        let is_word = |words: &Option<Vec<String>>| words.iter().flatten().any(|word| word.trim().is_empty());
        match (is_word(&self.mapping.true_words), is_word(&self.mapping.false_words)) {
            (true, _) => Ok(Value::Bool(true)),
            (false, true) => Ok(Value::Bool(false)),
            (false, false) => {
                let text =
                    "required field is null; if an empty cell means false, add false = [\"\"] to a mapping";
                Err(FieldError::problem(field.name(), text))
            }
        }
    }

    /// The instant at which clocks in the zone of the file show this time.
    pub(super) fn clock(&mut self, field: Field, clock: UtcInstant) -> Result<Value<'static>, FieldError> {
        let shown = clock.to_string().replace('T', " ");
        self.local(field, clock, shown.trim_end_matches('Z'))
    }

    fn local(&mut self, field: Field, clock: UtcInstant, shown: &str) -> Result<Value<'static>, FieldError> {
        let Some(zone) = &self.zone else { return self.without_zone(field, shown) };
        zone.instant(clock).map(Value::Instant).map_err(|error| {
            let problem = match error {
                LocalTimeError::OutOfRange => format!("{} is out of range", quoted(&clip(shown))),
                _ => format!(
                    "{} {error} in {}, because the clocks change; write it with a UTC offset, such as 2026-01-31T08:00:00+01:00",
                    quoted(&clip(shown)),
                    zone.name(),
                ),
            };
            FieldError::problem(field.name(), problem)
        })
    }

    /// One error per file: the setting solves all of them.
    fn without_zone(&mut self, field: Field, shown: &str) -> Result<Value<'static>, FieldError> {
        if std::mem::replace(&mut self.is_zone_missing, true) {
            return Ok(Value::Rejected);
        }
        let expected = "a time with a UTC offset, such as 2026-01-31T08:00:00Z, or the time zone of the file \
                        (--timezone Europe/Berlin, or timezone = \"Europe/Berlin\" in a mapping)";
        Err(FieldError::new(field.name(), quoted(&clip(shown)), expected))
    }

    fn time(&mut self, field: Field, cell: &str) -> Result<Value<'static>, FieldError> {
        if let Some(format) = &self.mapping.date_format {
            let expected = || {
                FieldError::new(
                    field.name(),
                    quoted(&clip(cell)),
                    format!("a date as date_format = {} in the mapping says", quoted(format)),
                )
            };
            return match parse_with_format(format, cell).ok_or_else(expected)? {
                Ok(instant) => require_year(field, instant, cell).map(Value::Instant),
                Err(clock) => self.local(field, require_year(field, clock, cell)?, cell),
            };
        }
        if let Ok(instant) = UtcInstant::parse_any_offset(cell) {
            return Ok(Value::Instant(instant));
        }
        match parse_local(cell) {
            Some(clock) => self.local(field, clock, cell),
            None if is_date_form(cell) => {
                let problem = format!("{}: there is no such day or time", quoted(&clip(cell)));
                Err(FieldError::problem(field.name(), problem))
            }
            None => Err(FieldError::new(field.name(), quoted(&clip(cell)), expected_date(cell))),
        }
    }

    fn number<'t>(&mut self, field: Field, cell: &str, location: Location) -> Result<Value<'t>, FieldError> {
        let is_rate = field.unit() == Some("percent");
        let (text, has_sign) = match cell.strip_suffix('%') {
            Some(number) if is_rate => (number.trim_end(), true),
            _ => (cell, false),
        };
        let Some(number) = Number::parse(text, self.mapping.decimal) else {
            return Err(self.not_a_number(field, cell));
        };
        if number.is_ambiguous && field.kind() == Kind::Count && !number.text.ends_with(".000") {
            return Err(ambiguous(field, cell));
        }
        self.remember(field, cell, &number, location);
        let text = Cow::Owned(number.text);
        Ok(if has_sign { Value::Percent(text) } else { Value::Cell(text) })
    }

    fn not_a_number(&self, field: Field, cell: &str) -> FieldError {
        let expected = match self.mapping.decimal {
            Some(mark) => format!("a number, with decimal = \"{}\" as in the mapping", mark.text()),
            None => field.kind().expected(),
        };
        let cell = quoted(&clip(cell));
        let hint = match !field.is_nullable() || cell.contains(|c: char| c.is_ascii_digit()) {
            true => String::new(),
            false => format!(" (if that means \"not measured\", add empty = [{cell}] to a mapping)"),
        };
        FieldError::new(field.name(), format!("{cell}{hint}"), expected)
    }

    fn remember(&mut self, field: Field, cell: &str, number: &Number, location: Location) {
        let slot = match (number.mark, number.is_ambiguous) {
            _ if self.mapping.decimal.is_some() => return,
            (None, _) => return,
            (Some(DecimalMark::Point), false) => {
                self.has_point = true;
                return;
            }
            (Some(DecimalMark::Comma), false) => &mut self.comma,
            (Some(DecimalMark::Point), true) => &mut self.ambiguous[0],
            (Some(DecimalMark::Comma), true) => &mut self.ambiguous[1],
        };
        slot.get_or_insert_with(|| Seen { location, field, text: cell.to_owned() });
    }

    fn flag(&self, field: Field, cell: &str) -> Result<Value<'static>, FieldError> {
        let word = cell.to_lowercase();
        let is_stated = |words: &Option<Vec<String>>| {
            words.iter().flatten().any(|stated| stated.trim().to_lowercase() == word)
        };
        let has = |words: &Option<Vec<String>>, usual: &[&str]| {
            words.iter().flatten().any(|word| usual.contains(&&*word.trim().to_lowercase()))
        };
        // If "nein" means true, then "ja" must be stated, too.
        let is_turned =
            has(&self.mapping.true_words, &FALSE_WORDS) || has(&self.mapping.false_words, &TRUE_WORDS);
        match (is_stated(&self.mapping.true_words), is_stated(&self.mapping.false_words)) {
            (true, _) => return Ok(Value::Bool(true)),
            (false, true) => return Ok(Value::Bool(false)),
            (false, false) if is_turned => {}
            (false, false) if TRUE_WORDS.contains(&&*word) => return Ok(Value::Bool(true)),
            (false, false) if FALSE_WORDS.contains(&&*word) => return Ok(Value::Bool(false)),
            (false, false) => {}
        }
        let cell = quoted(&clip(cell));
        let usual = if is_turned { Vec::new() } else { [TRUE_WORDS, FALSE_WORDS].concat() };
        let stated = [&self.mapping.true_words, &self.mapping.false_words].into_iter().flatten().flatten();
        let known: Vec<&str> = usual.into_iter().chain(stated.map(String::as_str)).collect();
        let expected = format!(
            "{}; for other words add true = [{cell}] or false = [{cell}] to a mapping",
            known.join(", ")
        );
        Err(FieldError::new(field.name(), cell, expected))
    }

    /// The errors of numbers that were read in a way that the other numbers do not confirm.
    pub(super) fn finish(&self) -> Vec<LocatedError> {
        if let Some(comma) = self.comma.as_ref().filter(|_| self.has_point) {
            let found = format!("{} and decimal points in other numbers", quoted(&clip(&comma.text)));
            let expected =
                "one decimal mark in all numbers, or decimal = \",\" or decimal = \".\" in a mapping";
            let error = FieldError::new(comma.field.name(), found, expected);
            return vec![LocatedError { location: comma.location, error }];
        }
        let mut errors = Vec::new();
        for (seen, is_confirmed) in self.ambiguous.iter().zip([self.has_point, self.comma.is_some()]) {
            let is_alone = !(self.has_point && self.comma.is_some()) && is_confirmed;
            if let Some(seen) = seen.as_ref().filter(|_| !is_alone) {
                let error = ambiguous(seen.field, &seen.text);
                errors.push(LocatedError { location: seen.location, error });
            }
        }
        errors
    }

    /// The decimal mark, if it is stated or a comma.
    pub(super) fn decimal(&self) -> Option<DecimalMark> {
        self.mapping.decimal.or(self.comma.as_ref().map(|_| DecimalMark::Comma))
    }
}

/// Both readings of a number such as `1.234`.
fn ambiguous(field: Field, cell: &str) -> FieldError {
    let read = |mark| {
        Number::parse(cell.trim_end_matches('%').trim_end(), Some(mark))
            .map_or_else(String::new, |number| number.text)
    };
    let (point, comma) = (read(DecimalMark::Point), read(DecimalMark::Comma));
    let expected = format!("decimal = \".\" ({point}) or decimal = \",\" ({comma}) in a mapping");
    FieldError::new(field.name(), quoted(&clip(cell)), expected)
}

/// A date without its time would be midnight.
pub(super) const ONE_OF_TWO: &str = "a value in only one of the two columns for date and time";

/// The text of a date and a time of day, whichever comes first.
pub(super) fn join_date_and_time(first: &str, second: &str) -> String {
    let (first, second) = (first.trim(), second.trim());
    let is_time = |text: &str| text.contains(':') && !text.contains(['-', '/', ' ']);
    if is_time(first) && !is_time(second) { format!("{second} {first}") } else { format!("{first} {second}") }
        .trim()
        .to_owned()
}

/// Parses a time without a zone as UTC's clocks would show it: `2026-11-16 08:00`, `16.11.2026 08:00:00`, `16.11.2026`.
fn parse_local(cell: &str) -> Option<UtcInstant> {
    UtcInstant::parse_any_offset(&local_text(cell)?).ok()
}

/// Whether it has the form of a date, which then does not exist.
fn is_date_form(cell: &str) -> bool {
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
fn parse_with_format(format: &str, cell: &str) -> Option<Result<UtcInstant, UtcInstant>> {
    let parsed = BrokenDownTime::parse(format, cell).ok()?;
    if parsed.offset().is_some() {
        let instant = parsed.to_timestamp().ok()?;
        return UtcInstant::from_micros(instant.as_microsecond()).map(Ok);
    }
    let date = parsed.to_date().ok()?;
    // Without an hour it is midnight.
    let time = parsed.to_time().unwrap_or_default();
    UtcInstant::parse_any_offset(&format!("{}Z", date.to_datetime(time))).ok().map(Err)
}

/// `%Y` also reads two digits, which must not become a year of antiquity.
fn require_year(field: Field, clock: UtcInstant, cell: &str) -> Result<UtcInstant, FieldError> {
    /// 1900, in seconds since 1970.
    const SECS_MIN: i64 = -2_208_988_800;
    if clock.secs() >= SECS_MIN {
        return Ok(clock);
    }
    let expected = "a year with four digits from 1900; if all years have two, date_format in a mapping has %y instead of %Y";
    Err(FieldError::new(field.name(), quoted(&clip(cell)), expected))
}

/// The date that was expected, with the most likely setting.
fn expected_date(cell: &str) -> String {
    let at = cell.find([' ', 'T']).unwrap_or(cell.len());
    let (date, time) = cell.split_at(at);
    let (between, time) = time.split_at_checked(1).unwrap_or_default();
    let time = time.trim();
    let upper = time.to_ascii_uppercase();
    // Not the end of a word such as Europe/Amsterdam.
    let is_half_day = (upper.strip_suffix("AM").or(upper.strip_suffix("PM")))
        .is_some_and(|clock| clock.trim_end().ends_with(|last: char| last.is_ascii_digit()));
    let hour = if is_half_day { "%I" } else { "%H" };
    let (digits, word) = time.split_once(' ').unwrap_or((time, ""));
    let is_french =
        digits.split_once('h').is_some_and(|(hour, _)| hour.bytes().all(|byte| byte.is_ascii_digit()));
    let clock = match (digits.matches(':').count(), digits.matches('.').count()) {
        (0, _) if is_french => "%Hh%M".into(),
        (0, 1) => format!("{hour}.%M"),
        (0, 2) => format!("{hour}.%M.%S"),
        (0, _) => String::new(),
        (1, _) => format!("{hour}:%M"),
        _ => format!("{hour}:%M:%S"),
    };
    let suffix = match word {
        _ if is_half_day => Some(" %p"),
        "" => Some(""),
        "Uhr" => Some(" Uhr"),
        "uur" => Some(" uur"),
        // Perhaps an offset or a zone: no text that is the same in every row.
        _ => None,
    };
    let time = suffix.map(|suffix| match &*clock {
        "" => String::new(),
        clock => format!("{between}{clock}{suffix}"),
    });
    let separator = ['/', '-', '.'].into_iter().find(|separator| date.matches(*separator).count() == 2);
    let parts = separator.and_then(|separator| Some((separator, split_three(date, separator)?)));
    let setting = match parts.zip(time) {
        Some(((mark, (year, ..)), time)) if year.len() == 4 => {
            format!("date_format = \"%Y{mark}%m{mark}%d{time}\" in a mapping")
        }
        Some(((mark, (first, second, last)), time)) => {
            let (year, end) = match last.len() {
                2 => ("%y", " in a mapping if all years have two digits; if only some have, correct those"),
                _ => ("%Y", " in a mapping"),
            };
            let day_first = format!("date_format = \"%d{mark}%m{mark}{year}{time}\"");
            let month_first = format!("date_format = \"%m{mark}%d{mark}{year}{time}\"");
            let is_day = |part: &str| part.parse::<u32>().is_ok_and(|number| number > 12);
            match (is_day(first), is_day(second), mark) {
                (false, true, _) => format!("{month_first}{end}"),
                (true, ..) | (.., '.') => format!("{day_first}{end}"),
                _ => format!("{day_first} or {month_first}{end}"),
            }
        }
        None => "another form stated in a mapping, such as date_format = \"%d.%m.%y %H:%M\"".into(),
    };
    format!("a date such as 2026-11-16T08:00:00Z, 2026-11-16 08:00 or 16.11.2026 08:00, or {setting}")
}
