//! A mapping: what a person states about a kind of file, as TOML. Its keys are fixed, since people keep such files.
//! Mistakes in it are reported like mistakes in a file: line, key, what was expected.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use batchscan_model::printable::clip;
use batchscan_model::{
    Batch, BatchId, Field, FieldError, FieldErrors, Kind, RawBatch, UtcInstant, Value, Zone,
};
use encoding_rs::{Encoding, UTF_8};
use jiff::civil::datetime;
use jiff::fmt::strtime::{self, BrokenDownTime};
use jiff::tz::TimeZone;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{LocatedError, Location, list};

/// The keys of a mapping, in the order of the file.
const KEYS: [&str; 17] = [
    "encoding",
    "timezone",
    "date_format",
    "decimal",
    "rates",
    "sheet",
    "header_row",
    "true",
    "false",
    "empty",
    "ignore",
    "ignore_rows",
    "ignore_sheets",
    "strict",
    "batch_id",
    "values",
    "columns",
];
const TEMPLATE: &str = "text with fields in braces, such as \"{batch_name} {batch_creation_date}\"";

/// How to read a file. Empty: only what is recognised by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mapping {
    /// The encoding of text that is not UTF-8.
    pub encoding: Option<&'static Encoding>,
    /// The zone of times without one.
    pub timezone: Option<Zone>,
    /// The forms of dates in text, for `strptime`. Empty: those that are recognised.
    pub date_formats: Vec<String>,
    /// The decimal mark of numbers in text. The other mark separates thousands.
    pub decimal: Option<DecimalMark>,
    /// The unit of rates that are not marked with `%`.
    pub rates: RateUnits,
    /// The sheet of a workbook. Others are ignored.
    pub sheet: Option<String>,
    /// The line or row of the header, from 1.
    pub header_row: Option<u64>,
    /// Words for true, besides those that are recognised.
    pub true_words: Option<Vec<String>>,
    /// Words for false. An empty one stands for an empty cell.
    pub false_words: Option<Vec<String>>,
    /// Texts that mean the same as an empty cell.
    pub empty_words: Vec<String>,
    /// Titles of columns to ignore.
    pub ignore: Vec<String>,
    /// First cells of rows to ignore.
    pub ignore_rows: Vec<String>,
    /// Sheets to ignore without a warning.
    pub ignore_sheets: Vec<String>,
    /// Whether files with warnings are rejected.
    pub strict: bool,
    /// How to make ids, if the file has none.
    pub batch_id: Option<IdTemplate>,
    /// Titles of columns and their fields.
    pub columns: Vec<(String, Field)>,
    /// The values of fields that the file does not have.
    pub values: Vec<(Field, String)>,
}

/// The mark before the fraction of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum DecimalMark {
    Point,
    Comma,
}

/// The unit of rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateUnit {
    /// 92.5 is 92.5 percent.
    Percent,
    /// 0.925 is 92.5 percent.
    Fraction,
}

/// The fields in percent.
pub(super) const RATE_FIELDS: [Field; 3] =
    [Field::AvgGerminationRate, Field::AvgUsableSeedlingRate, Field::AvgCoefficientOfVariation];

/// The units of rates, as far as they are stated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateUnits {
    /// One for all of them, which may have overlooked one.
    All(RateUnit),
    /// Those of the germination rate, the usable rate and the size variation.
    Each([Option<RateUnit>; RATE_FIELDS.len()]),
}

/// The mistakes of a mapping.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", list(.0, false))]
pub struct MappingErrors(pub Vec<LocatedError>);

impl Mapping {
    /// Parses a mapping.
    pub fn parse(text: &str) -> Result<Self, MappingErrors> {
        let table = DeTable::parse(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            let error = FieldError::problem("", format!("invalid TOML: {}", error.message()));
            MappingErrors(vec![LocatedError { location: line_of(text, at), error }])
        })?;
        let mut parser = Parser { text, mapping: Self::default(), errors: Vec::new() };
        for (key, value) in in_file_order(table.get_ref()) {
            if let Err((found, expected)) = parser.set(key.get_ref(), value) {
                parser.reject(value.span().start, key.get_ref(), found, expected);
            }
        }
        parser.check_words(table.get_ref());
        if parser.errors.is_empty() { Ok(parser.mapping) } else { Err(MappingErrors(parser.errors)) }
    }

    /// Whether a cell means the same as an empty one.
    pub(super) fn is_empty_word(&self, cell: &str) -> bool {
        has_word(&self.empty_words, cell)
    }

    /// Whether to ignore a row with this first text: it begins with a stated one, such as "Summe KW 44" with "Summe".
    pub(super) fn is_ignored_row(&self, first: &str) -> bool {
        let first = first.trim().to_lowercase();
        let begins = |word: &String| {
            let rest = first.strip_prefix(&word.trim().to_lowercase());
            rest.is_some_and(|rest| {
                rest.is_empty() || !word.is_empty() && !rest.starts_with(char::is_alphanumeric)
            })
        };
        self.ignore_rows.iter().any(begins)
    }

    /// Whether to ignore a sheet.
    pub(super) fn is_ignored_sheet(&self, name: &str) -> bool {
        has_word(&self.ignore_sheets, name)
    }

    /// The mapping as a file.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        let mut set = |key: &str, value: Option<String>| {
            if let Some(value) = value {
                let _ = writeln!(text, "{key} = {value}");
            }
        };
        set("encoding", self.encoding.map(|encoding| quoted(&encoding.name().to_lowercase())));
        set("timezone", self.timezone.as_ref().map(|zone| quoted(zone.name())));
        set("date_format", formats_to_toml(&self.date_formats));
        set("decimal", self.decimal.map(|mark| quoted(mark.text())));
        set("rates", rates_to_toml(self.rates));
        set("sheet", self.sheet.as_deref().map(quoted));
        set("header_row", self.header_row.map(|row| row.to_string()));
        set("true", self.true_words.as_deref().map(words_to_toml));
        set("false", self.false_words.as_deref().map(words_to_toml));
        set("empty", (!self.empty_words.is_empty()).then(|| words_to_toml(&self.empty_words)));
        set("ignore", (!self.ignore.is_empty()).then(|| words_to_toml(&self.ignore)));
        set("ignore_rows", (!self.ignore_rows.is_empty()).then(|| words_to_toml(&self.ignore_rows)));
        set("ignore_sheets", (!self.ignore_sheets.is_empty()).then(|| words_to_toml(&self.ignore_sheets)));
        set("strict", self.strict.then(|| "true".into()));
        set("batch_id", self.batch_id.as_ref().map(|template| quoted(&template.0)));
        if !self.values.is_empty() {
            text.push_str("\n[values]\n");
        }
        for (field, value) in &self.values {
            let _ = writeln!(text, "{field} = {}", quoted(value));
        }
        // Last, since a draft adds comments to it.
        text.push_str("\n[columns]\n");
        for (title, field) in &self.columns {
            let _ = writeln!(text, "{} = \"{field}\"", quoted(title));
        }
        text
    }
}

impl DecimalMark {
    /// The mark.
    pub const fn text(self) -> &'static str {
        match self {
            DecimalMark::Point => ".",
            DecimalMark::Comma => ",",
        }
    }
}

impl Default for RateUnits {
    fn default() -> Self {
        Self::NONE
    }
}

impl RateUnits {
    pub(super) const NONE: Self = Self::Each([None; RATE_FIELDS.len()]);

    /// The unit of one of [`RATE_FIELDS`].
    pub(super) fn get(&self, index: usize) -> Option<RateUnit> {
        match self {
            Self::All(unit) => Some(*unit),
            Self::Each(units) => units[index],
        }
    }
}

impl RateUnit {
    /// The name in a mapping.
    pub const fn name(self) -> &'static str {
        match self {
            RateUnit::Percent => "percent",
            RateUnit::Fraction => "fraction",
        }
    }
}

fn words_to_toml(words: &[String]) -> String {
    format!("[{}]", words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(", "))
}

/// The forms of dates: one, or a list.
pub(super) fn formats_to_toml(formats: &[String]) -> Option<String> {
    match formats {
        [] => None,
        [format] => Some(quoted(format)),
        formats => Some(words_to_toml(formats)),
    }
}

fn rates_to_toml(rates: RateUnits) -> Option<String> {
    let name = |unit: RateUnit| quoted(unit.name());
    let units = match rates {
        RateUnits::All(unit) => return Some(name(unit)),
        RateUnits::Each(units) => units,
    };
    let stated = RATE_FIELDS.into_iter().zip(units).filter_map(|(field, unit)| Some((field, unit?)));
    let stated: Vec<String> = stated.map(|(field, unit)| format!("{field} = {}", name(unit))).collect();
    (!stated.is_empty()).then(|| format!("{{ {} }}", stated.join(", ")))
}

fn has_word(words: &[String], cell: &str) -> bool {
    let is_equal = |word: &String| word.trim().to_lowercase() == cell.trim().to_lowercase();
    !words.is_empty() && words.iter().any(is_equal)
}

/// A TOML string. JSON escapes the same characters, except one.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

fn line_of(text: &str, at: usize) -> Location {
    let before = &text.as_bytes()[..at.min(text.len())];
    Location::Line(before.iter().filter(|byte| **byte == b'\n').count() as u64 + 1)
}

type Entry<'t, 'i> = (&'t Spanned<Cow<'i, str>>, &'t Spanned<DeValue<'i>>);

fn in_file_order<'t, 'i>(table: &'t DeTable<'i>) -> Vec<Entry<'t, 'i>> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

struct Parser<'t> {
    text: &'t str,
    mapping: Mapping,
    errors: Vec<LocatedError>,
}

/// What was found, and what was expected.
type Mistake = (String, String);

impl Parser<'_> {
    fn reject(&mut self, at: usize, key: &str, found: String, expected: String) {
        let error = FieldError::new(&clip(key), found, expected);
        self.errors.push(LocatedError { location: line_of(self.text, at), error });
    }

    fn set(&mut self, key: &str, value: &Spanned<DeValue<'_>>) -> Result<(), Mistake> {
        let mapping = &mut self.mapping;
        match key {
            "encoding" => {
                let expected = "the name of an encoding, such as \"windows-1250\"";
                mapping.encoding = Some(parse_text(value, expected, parse_encoding)?);
            }
            "timezone" => {
                let expected = Zone::expected(value.get_ref().as_str().unwrap_or_default());
                mapping.timezone = Some(parse_text(value, &expected, Zone::parse)?);
            }
            "date_format" => {
                let expected = "a form with year, month and day, and an hour if it has minutes, such as \"%d.%m.%Y %H:%M\" or \"%m/%d/%Y %I:%M %p\", also for a date and a time in two columns";
                let one = std::slice::from_ref(value);
                let formats = value.get_ref().as_array().map_or(one, |formats| &**formats);
                let format = |format| parse_text(format, expected, check_date_format);
                mapping.date_formats = formats.iter().map(format).collect::<Result<_, _>>()?;
            }
            "decimal" => {
                let marks = [DecimalMark::Point, DecimalMark::Comma];
                let find = |text: &str| marks.into_iter().find(|mark| mark.text() == text);
                mapping.decimal = Some(parse_text(value, "\".\" or \",\"", find)?);
            }
            "rates" => mapping.rates = parse_rates(value)?,
            "sheet" => mapping.sheet = Some(parse_text(value, "the name of a sheet", not_empty)?),
            "header_row" => mapping.header_row = Some(parse_row(value)?),
            "true" => mapping.true_words = Some(parse_words(value)?),
            "false" => mapping.false_words = Some(parse_words(value)?),
            "empty" => mapping.empty_words = parse_words(value)?,
            "ignore" => mapping.ignore = parse_words(value)?,
            "ignore_rows" => mapping.ignore_rows = parse_words(value)?,
            "ignore_sheets" => mapping.ignore_sheets = parse_words(value)?,
            "strict" => match value.get_ref() {
                DeValue::Boolean(strict) => mapping.strict = *strict,
                _ => return Err(mistake(value, "true or false")),
            },
            "batch_id" => mapping.batch_id = Some(parse_text(value, TEMPLATE, IdTemplate::parse)?),
            "columns" => self.set_columns(value)?,
            "values" => self.set_values(value)?,
            _ => return Err(unknown_key(key)),
        }
        Ok(())
    }

    /// A word that means both would silently mean one of them.
    fn check_words(&mut self, table: &DeTable<'_>) {
        let simple = |word: &String| word.trim().to_lowercase();
        let words = |words: &Option<Vec<String>>| words.iter().flatten().map(simple).collect::<Vec<_>>();
        let (yes, no) = (words(&self.mapping.true_words), words(&self.mapping.false_words));
        let key = table.iter().find(|(key, _)| key.get_ref() == "false");
        if let (Some(word), Some((key, _))) = (yes.iter().find(|word| no.contains(word)), key) {
            self.reject(
                key.span().start,
                "false",
                quoted(&clip(word)),
                "a word that is not in true, too".into(),
            );
        }
    }

    fn set_columns(&mut self, value: &Spanned<DeValue<'_>>) -> Result<(), Mistake> {
        let expected =
            "a table of titles and fields: [columns], then lines such as \"Name\" = \"batch_name\"";
        let DeValue::Table(table) = value.get_ref() else { return Err(mistake(value, expected)) };
        for (title, name) in in_file_order(table) {
            match parse_text(name, "the name of a field, such as \"batch_name\"", Field::from_name) {
                Ok(field) => self.mapping.columns.push((title.get_ref().to_string(), field)),
                Err((found, _)) if KEYS.contains(&&**title.get_ref()) => {
                    let expected = "a title and a field; settings are above [columns] and [values]".into();
                    self.reject(title.span().start, title.get_ref(), found, expected);
                }
                Err((found, expected)) => {
                    let expected = name.get_ref().as_str().and_then(similar_field).unwrap_or(expected);
                    self.reject(title.span().start, title.get_ref(), found, expected);
                }
            }
        }
        Ok(())
    }

    /// Values as CSV has them.
    fn set_values(&mut self, value: &Spanned<DeValue<'_>>) -> Result<(), Mistake> {
        let expected = "a table of fields and values: [values], then lines such as warnings = false";
        let DeValue::Table(table) = value.get_ref() else { return Err(mistake(value, expected)) };
        for (name, value) in in_file_order(table) {
            let field = Field::from_name(name.get_ref()).filter(|field| *field != Field::BatchId);
            let text = match value.get_ref() {
                DeValue::String(text) => Ok(text.to_string()),
                DeValue::Integer(number) if number.radix() == 10 => Ok(number.as_str().to_owned()),
                DeValue::Float(number) => Ok(number.as_str().to_owned()),
                DeValue::Boolean(flag) => Ok(flag.to_string()),
                _ => Err(mistake(value, "a text, a decimal number, true or false")),
            };
            let result = match field {
                Some(field) => text.and_then(|text| {
                    check_value(field, &text)?;
                    self.mapping.values.push((field, text));
                    Ok(())
                }),
                None => {
                    let other = "the name of a field other than batch_id".into();
                    Err((quoted(&clip(name.get_ref())), similar_field(name.get_ref()).unwrap_or(other)))
                }
            };
            if let Err((found, expected)) = result {
                self.reject(name.span().start, name.get_ref(), found, expected);
            }
        }
        Ok(())
    }
}

fn similar_field(name: &str) -> Option<String> {
    Field::most_similar(name).map(|field| format!("the name of a field (did you mean \"{field}\"?)"))
}

/// Whether a field may have this value.
fn check_value(field: Field, text: &str) -> Result<(), Mistake> {
    let mut raw = RawBatch::default();
    raw.set(field, Value::Cell(text.into()));
    let errors = Batch::from_raw(&raw).err().map_or_else(Vec::new, |FieldErrors(errors)| errors);
    let wrong = errors.into_iter().find(|error| error.field == field.name());
    wrong.map_or(Ok(()), |FieldError { found, expected, .. }| Err((found, expected)))
}

fn mistake(value: &Spanned<DeValue<'_>>, expected: impl Into<String>) -> Mistake {
    let found = match value.get_ref() {
        DeValue::String(text) => quoted(&clip(text)),
        DeValue::Integer(number) => number.to_string(),
        other => format!(
            "{} {}",
            if other.is_array() || other.is_integer() { "an" } else { "a" },
            other.type_str()
        ),
    };
    (found, expected.into())
}

fn unknown_key(key: &str) -> Mistake {
    let similar = KEYS.into_iter().min_by_key(|known| strsim::levenshtein(key, known));
    let hint = match similar.filter(|known| strsim::levenshtein(key, known) <= 3) {
        _ if Field::from_name(key).is_some() => {
            "a field, not a setting; its value for all rows is below [values], its title below [columns]"
                .into()
        }
        Some(known) => format!("unknown key; did you mean {known}?"),
        // A title that was written before [columns].
        None => format!("unknown key; the keys are {}; columns are below [columns]", KEYS.join(", ")),
    };
    (hint, String::new())
}

fn parse_text<T>(
    value: &Spanned<DeValue<'_>>,
    expected: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, Mistake> {
    value.get_ref().as_str().and_then(parse).ok_or_else(|| mistake(value, expected))
}

fn not_empty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

fn parse_row(value: &Spanned<DeValue<'_>>) -> Result<u64, Mistake> {
    let row = match value.get_ref() {
        DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
        _ => None,
    };
    row.filter(|row| *row > 0).ok_or_else(|| mistake(value, "the number of a row, from 1"))
}

fn parse_rates(value: &Spanned<DeValue<'_>>) -> Result<RateUnits, Mistake> {
    let expected =
        "\"percent\" or \"fraction\", or one for some rates, such as { avg_germination_rate = \"fraction\" }";
    let units = [RateUnit::Percent, RateUnit::Fraction];
    let find = |text: &str| units.into_iter().find(|unit| unit.name() == text);
    let DeValue::Table(table) = value.get_ref() else {
        return parse_text(value, expected, find).map(RateUnits::All);
    };
    let mut rates = [None; RATE_FIELDS.len()];
    for (field, unit) in in_file_order(table) {
        let place = RATE_FIELDS.iter().position(|rate| rate.name() == field.get_ref());
        let place = place.ok_or_else(|| (quoted(&clip(field.get_ref())), expected.to_owned()))?;
        rates[place] = Some(parse_text(unit, expected, find)?);
    }
    Ok(RateUnits::Each(rates))
}

fn parse_words(value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, Mistake> {
    let expected = "a list of texts, such as [\"ja\", \"x\"]";
    let DeValue::Array(items) = value.get_ref() else { return Err(mistake(value, expected)) };
    let text = |item: &Spanned<DeValue<'_>>| parse_text(item, expected, |text| Some(text.to_owned()));
    items.iter().map(text).collect()
}

/// Accepts a form from which a date and, if it has one, a time of day can be read back.
fn check_date_format(format: &str) -> Option<String> {
    let sample = datetime(2026, 11, 16, 20, 5, 9, 0);
    let written = strtime::format(format, &sample.to_zoned(TimeZone::UTC).ok()?).ok()?;
    let read = BrokenDownTime::parse(format, &written).ok()?;
    let has_time = read.hour().is_some() || read.minute().is_some() || read.second().is_some();
    // Without "AM" or "PM" or without the hour, it would be another time.
    let is_exact = !has_time || read.to_time().is_ok_and(|time| time.hour() == sample.hour());
    (read.to_date().ok()? == sample.date() && is_exact).then(|| format.to_owned())
}

/// How to make an id from other fields: text with fields in braces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdTemplate(String);

impl fmt::Display for IdTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl IdTemplate {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let template = Self(text.to_owned());
        let mut names = template.parts().filter_map(Result::err).peekable();
        names.peek()?;
        let is_valid = |name: &str| Field::from_name(name).is_some_and(|field| field != Field::BatchId);
        names.all(is_valid).then(|| template.clone())
    }

    /// Texts, and names of fields as errors.
    fn parts(&self) -> impl Iterator<Item = Result<&str, &str>> {
        let mut rest = self.0.as_str();
        std::iter::from_fn(move || {
            let end = match rest.find('{') {
                _ if rest.is_empty() => return None,
                Some(0) => rest.find('}').map_or(rest.len(), |end| end + 1),
                Some(start) => start,
                None => rest.len(),
            };
            let (part, after) = rest.split_at(end);
            rest = after;
            Some(match part.strip_prefix('{') {
                Some(name) => Err(name.strip_suffix('}').unwrap_or(name)),
                None => Ok(part),
            })
        })
    }

    /// Sets the id of a batch that has none.
    pub(super) fn apply(&self, raw: &mut RawBatch<'_>) {
        let mut id = String::new();
        for part in self.parts() {
            match part {
                Ok(text) => id.push_str(text),
                Err(name) => match Field::from_name(name).map(|field| (field, raw.get(field))) {
                    Some((_, Some(Value::Rejected))) => return raw.set(Field::BatchId, Value::Rejected),
                    Some((field, Some(value))) if *value != Value::Null => {
                        id.push_str(&id_text(field, value));
                    }
                    _ => {
                        let problem = format!("no id: the template in the mapping needs {name}");
                        let error = FieldError::problem(Field::BatchId.name(), problem);
                        return raw.reject(Field::BatchId, error);
                    }
                },
            }
        }
        let value = if BatchId::new(&id).is_some() { Value::Cell(id.into()) } else { Value::Text(id.into()) };
        raw.set(Field::BatchId, value);
    }
}

/// The same text for the same value, however the file writes it.
fn id_text(field: Field, value: &Value<'_>) -> String {
    match value {
        Value::Text(text) | Value::Cell(text) | Value::Number(text) | Value::Percent(text) => {
            match field.kind() {
                Kind::Instant => UtcInstant::parse_any_offset(text)
                    .map_or_else(|_| text.to_string(), |instant| instant.to_string()),
                // Spaces around a name do not make another batch.
                _ => text.trim().to_owned(),
            }
        }
        other => other.to_string(),
    }
}

/// An encoding by its name.
pub(super) fn parse_encoding(name: &str) -> Option<&'static Encoding> {
    Encoding::for_label(name.as_bytes()).filter(|encoding| encoding.is_single_byte() || *encoding == UTF_8)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = r#"encoding = "windows-1250"
timezone = "Europe/Berlin"
date_format = ["%d.%m.%Y %H:%M", "%d/%m/%y"]
decimal = ","
rates = "fraction"
sheet = "Scans"
header_row = 3
true = ["ja", "x"]
false = ["nein", ""]
empty = ["-", "n. b."]
ignore = ["Notizen"]
ignore_rows = ["Summe"]
ignore_sheets = ["Notizen"]
strict = true
batch_id = "{batch_name} {batch_creation_date}"

[values]
warnings = "false"

[columns]
"Keim\"rate" = "avg_germination_rate"
"#;

    #[test]
    fn a_form_of_dates_has_a_whole_time_of_day_or_none() {
        for format in
            ["%d.%m.%Y", "%d/%m/%y %H:%M", "%m/%d/%Y %I:%M %p", "%Y-%m-%dT%H:%M:%S%z", "%d.%m.%Y %H"]
        {
            assert!(check_date_format(format).is_some(), "{format}");
        }
        for format in ["%d.%m.%Y %I:%M", "%d.%m.%Y %M", "%d.%m.", "%H:%M", "%q"] {
            assert!(check_date_format(format).is_none(), "{format}");
        }
    }

    #[test]
    fn a_mapping_is_written_as_it_is_read() {
        let mapping = Mapping::parse(EXAMPLE).unwrap();
        assert_eq!(mapping.columns, [("Keim\"rate".to_owned(), Field::AvgGerminationRate)]);
        assert_eq!((mapping.header_row, mapping.rates), (Some(3), RateUnits::All(RateUnit::Fraction)));
        assert_eq!(mapping.to_toml(), EXAMPLE);
        assert_eq!(Mapping::parse("").unwrap(), Mapping::default());
    }

    #[test]
    fn a_mistake_names_line_key_and_what_was_expected() {
        let template = format!("expected {TEMPLATE}");
        for (text, expected) in [
            (
                "\ntimezone = \"Berlin\"",
                "line 2: timezone: expected the name of a time zone (did you mean Europe/Berlin?), found \"Berlin\"",
            ),
            (
                "date_format = \"%H:%M\"",
                "line 1: date_format: expected a form with year, month and day, and an hour if it has minutes, such as \"%d.%m.%Y %H:%M\" or \"%m/%d/%Y %I:%M %p\", also for a date and a time in two columns, found \"%H:%M\"",
            ),
            (
                "false = [\"nein\", \"X\"]\ntrue = [\"x\"]",
                "line 1: false: expected a word that is not in true, too, found \"x\"",
            ),
            (
                "encoding = \"utf-16\"",
                "line 1: encoding: expected the name of an encoding, such as \"windows-1250\", found \"utf-16\"",
            ),
            (
                "[values]\nnumber_of_images = \"x\"\nwarning = true",
                "line 2: number_of_images: expected a whole number from 0 to 9007199254740991, found \"x\"\n\
                 line 3: warning: expected the name of a field (did you mean \"warnings\"?), found \"warning\"",
            ),
            (
                "[values]\ncomment = [\"x\"]\ncrop_type = 2026-11-16\nnumber_of_images = 0x10",
                "line 2: comment: expected a text, a decimal number, true or false, found an array\n\
                 line 3: crop_type: expected a text, a decimal number, true or false, found a datetime\n\
                 line 4: number_of_images: expected a text, a decimal number, true or false, found 0x10",
            ),
            ("decimal = \";\"", "line 1: decimal: expected \".\" or \",\", found \";\""),
            (
                "rates = { comment = \"percent\" }",
                "line 1: rates: expected \"percent\" or \"fraction\", or one for some rates, such as { avg_germination_rate = \"fraction\" }, found \"comment\"",
            ),
            ("header_row = 0", "line 1: header_row: expected the number of a row, from 1, found 0"),
            (
                "true = \"ja\"",
                "line 1: true: expected a list of texts, such as [\"ja\", \"x\"], found \"ja\"",
            ),
            ("batch_id = \"{name}\"", &format!("line 1: batch_id: {template}, found \"{{name}}\"")),
            ("batch_id = \"7\"", &format!("line 1: batch_id: {template}, found \"7\"")),
            ("time_zone = \"UTC\"", "line 1: time_zone: unknown key; did you mean timezone?"),
            (
                "warnings = false\n[columns]\nrates = \"fraction\"",
                "line 1: warnings: a field, not a setting; its value for all rows is below [values], its title below [columns]\n\
                 line 3: rates: expected a title and a field; settings are above [columns] and [values], found \"fraction\"",
            ),
            (
                "[columns]\n\"Name\" = \"batch_nam\"\n\"X\" = \"y\"",
                "line 2: Name: expected the name of a field (did you mean \"batch_name\"?), found \"batch_nam\"\n\
                 line 3: X: expected the name of a field, such as \"batch_name\", found \"y\"",
            ),
        ] {
            assert_eq!(Mapping::parse(text).unwrap_err().to_string(), expected);
        }
        for text in ["timezone", "timezone = \"UTC\"\ntimezone = \"UTC\"", "a = [", "\u{0}"] {
            let error = Mapping::parse(text).unwrap_err().to_string();
            assert!(error.starts_with("line ") && error.contains(": invalid TOML: "), "{error}");
        }
    }
}
