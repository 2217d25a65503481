//! How a cell becomes a value: dates, numbers and flags as people and spreadsheets write them. What could have two
//! meanings is an error that names the setting that decides.

use std::borrow::Cow;

use batchscan_model::printable::clip;
use batchscan_model::{Field, FieldError, Kind, LocalTimeError, UtcInstant, Value, Zone};

use super::ReadOptions;
use super::columns::Role;
use super::dates::{expected_date, is_date_form, parse_local, parse_with_formats};
use super::error::{LocatedError, Location};
use super::mapping::{DecimalMark, Mapping, quoted};
use super::number::Number;

const TRUE_WORDS: [&str; 10] = ["true", "1", "yes", "y", "ja", "oui", "sí", "x", "wahr", "vrai"];
const FALSE_WORDS: [&str; 9] = ["false", "0", "no", "n", "nein", "nee", "non", "falsch", "faux"];

/// Converts the cells of a file, and remembers what they show about it.
pub(super) struct Converter<'o> {
    mapping: &'o Mapping,
    zone: Option<Zone>,
    is_zone_missing: bool,
    /// Whether dates and their times are in two columns.
    is_joined: bool,
    /// Whether a number shows that the decimal mark is a point. Set by the fast path, too.
    pub(super) has_point: bool,
    /// The first numbers with a decimal comma.
    comma: Vec<Seen>,
    /// The first numbers whose mark may separate thousands: with a point, with a comma.
    ambiguous: [Vec<Seen>; 2],
}

/// Numbers of a kind that are remembered: more than the rows of a preview have.
const SEEN_MAX: usize = 64;

/// A number.
struct Seen {
    location: Location,
    field: Field,
    text: String,
}

impl<'o> Converter<'o> {
    /// `zone` is the one in the header.
    pub(super) fn new(options: &'o ReadOptions, zone: Option<Zone>, roles: &[Role]) -> Self {
        let is_joined = roles.contains(&Role::DateOrTime);
        let zone = zone.or_else(|| options.timezone.clone()).or_else(|| options.mapping.timezone.clone());
        let (is_zone_missing, has_point, comma, ambiguous) = (false, false, Vec::new(), Default::default());
        Self { mapping: &options.mapping, zone, is_zone_missing, is_joined, has_point, comma, ambiguous }
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
            Kind::Instant => self.time(field, cell.trim()).map_err(|error| self.name_columns(error)),
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

    /// A form of dates must read what two columns have, as the error shows it.
    fn name_columns(&self, mut error: FieldError) -> FieldError {
        if self.is_joined && !error.expected.is_empty() {
            error.found += ", joined from the two columns";
        }
        error
    }

    fn time(&mut self, field: Field, cell: &str) -> Result<Value<'static>, FieldError> {
        if !self.mapping.date_formats.is_empty() {
            return match parse_with_formats(&self.mapping.date_formats, field, cell)? {
                Ok(instant) => Ok(Value::Instant(instant)),
                Err(clock) => self.local(field, clock, cell),
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
        let (text, has_sign) = split_unit(field, cell);
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
        let kind = match (number.mark, number.is_ambiguous) {
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
        if kind.len() < SEEN_MAX {
            kind.push(Seen { location, field, text: cell.to_owned() });
        }
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
        let usual = if is_turned { Vec::new() } else { [&TRUE_WORDS[..], &FALSE_WORDS].concat() };
        let stated = [&self.mapping.true_words, &self.mapping.false_words].into_iter().flatten().flatten();
        let known: Vec<&str> = usual.into_iter().chain(stated.map(String::as_str)).collect();
        let expected = format!(
            "{}; for other words add true = [{cell}] or false = [{cell}] to a mapping",
            known.join(", ")
        );
        Err(FieldError::new(field.name(), cell, expected))
    }

    /// The errors of numbers that were read in a way that the other numbers do not confirm, by their kind.
    pub(super) fn finish(&self) -> Vec<Vec<LocatedError>> {
        if self.has_point && !self.comma.is_empty() {
            return vec![self.comma.iter().map(Seen::mixed).collect()];
        }
        let kinds = self.ambiguous.iter().zip([self.has_point, !self.comma.is_empty()]);
        let doubtful = kinds.filter(|(_, is_confirmed)| !is_confirmed);
        doubtful.map(|(seen, _)| seen.iter().map(Seen::ambiguous).collect()).collect()
    }

    /// The decimal mark, if it is stated or a comma.
    pub(super) fn decimal(&self) -> Option<DecimalMark> {
        self.mapping.decimal.or(self.comma.first().map(|_| DecimalMark::Comma))
    }
}

impl Seen {
    fn mixed(&self) -> LocatedError {
        let found = format!("{} and decimal points in other numbers", quoted(&clip(&self.text)));
        let expected = "one decimal mark in all numbers, or decimal = \",\" or decimal = \".\" in a mapping";
        LocatedError { location: self.location, error: FieldError::new(self.field.name(), found, expected) }
    }

    fn ambiguous(&self) -> LocatedError {
        LocatedError { location: self.location, error: ambiguous(self.field, &self.text) }
    }
}

/// A number without the unit of its field, and whether that is a percent sign.
fn split_unit(field: Field, cell: &str) -> (&str, bool) {
    match (field.unit(), cell.strip_suffix('%')) {
        (Some("percent"), Some(number)) => (number.trim_end(), true),
        (Some("percent") | None, _) => (cell, false),
        (Some(_), _) => (cell.strip_suffix("mm²").map_or(cell, str::trim_end), false),
    }
}

/// Both readings of a number such as `1.234`.
fn ambiguous(field: Field, cell: &str) -> FieldError {
    let number = split_unit(field, cell).0;
    let read = |mark| Number::parse(number, Some(mark)).map_or_else(String::new, |number| number.text);
    let (point, comma) = (read(DecimalMark::Point), read(DecimalMark::Comma));
    let expected = format!("decimal = \".\" ({point}) or decimal = \",\" ({comma}) in a mapping");
    FieldError::new(field.name(), quoted(&clip(cell)), expected)
}
