//! A record as a file holds it: up to eighteen values, not yet judged. Reads one from JSON text.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::{Field, UtcInstant, plain};

/// What a fault says was found where a name is no field of a batch.
pub const UNKNOWN_FIELD: &str = "an unknown field";
/// What JSON lets stand between its parts.
pub const JSON_BLANKS: [char; 4] = [' ', '\t', '\n', '\r'];
/// How much of a refused value an error shows.
const FOUND_CHARS_MAX: usize = 60;

/// What stands for one field.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// JSON's null, an empty CSV cell.
    Null,
    /// true or false.
    Bool(bool),
    /// A number by its own digits, never through a float.
    Number(Cow<'a, str>),
    /// Text that is known to be text.
    Text(Cow<'a, str>),
    /// A CSV cell: text that may spell any type.
    Cell(Cow<'a, str>),
    /// An instant that the file's own type system knows to be UTC.
    Instant(UtcInstant),
    /// An array or an object, or a type that no field has.
    Other(&'a str),
}

impl fmt::Display for Value<'_> {
    /// As an error shows it: clipped, quoted where it is text, without control characters.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::Number(text) => f.write_str(&clip(text)),
            Value::Other(text) => f.write_str(&clip(text)),
            Value::Text(text) | Value::Cell(text) => write!(f, "\"{}\"", clip(text)),
            Value::Instant(instant) => write!(f, "{instant}"),
        }
    }
}

/// Why one field of a record was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The field's name, as the record has it. Empty where the record as a whole is at fault.
    pub field: String,
    /// What stood there.
    pub found: String,
    /// What was expected.
    pub expected: String,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        write!(f, "found {}, expected {}", self.found, self.expected)
    }
}

/// Members of a JSON object that are no field of a batch, each with its value's JSON text.
pub type Strangers<'a> = Vec<(String, &'a str)>;

/// Up to eighteen values, by field. A field that the record does not mention has none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record<'a> {
    values: [Option<Value<'a>>; Field::ALL.len()],
    faults: Vec<FieldError>,
}

impl<'a> Record<'a> {
    /// Sets a field. A field that is set twice is a fault of the record.
    pub fn set(&mut self, field: Field, value: Value<'a>) {
        if self.values[field as usize].replace(value).is_some() {
            self.fault(field.name(), "it twice", "each field once");
        }
    }

    /// Sets a field that has not been set.
    pub(crate) fn put(&mut self, field: Field, value: Value<'a>) {
        self.values[field as usize] = Some(value);
    }

    /// Notes a name that is no field.
    pub fn unknown(&mut self, name: &str) {
        let expected = match Field::nearest(name) {
            Some(near) => format!("a field of a batch; did you mean {near}?"),
            None => "a field of a batch".into(),
        };
        self.fault(&clip(name), UNKNOWN_FIELD, &expected);
    }

    /// The value of a field.
    pub fn get(&self, field: Field) -> Option<&Value<'a>> {
        self.values[field as usize].as_ref()
    }

    /// What was wrong with the record before any value was looked at.
    pub fn faults(&self) -> &[FieldError] {
        &self.faults
    }

    /// Reads one JSON object. An error is what is wrong with the text as JSON.
    pub fn from_json(text: &'a str) -> Result<Self, serde_json::Error> {
        let mut record = Record::default();
        match plain::read(text, &mut record) {
            Some(end) if text[end..].trim_matches(JSON_BLANKS).is_empty() => Ok(record),
            _ => Self::from_any_json(text),
        }
    }

    /// The same, whatever form the object has.
    pub(crate) fn from_any_json(text: &'a str) -> Result<Self, serde_json::Error> {
        let mut record = Record::default();
        let mut json = serde_json::Deserializer::from_str(text);
        json.deserialize_map(Fields { record: &mut record, strangers: None })?;
        json.end()?;
        Ok(record)
    }

    /// Reads the JSON object that a text begins with into this empty record, and tells where it ends. It comes from a
    /// service that may know more fields than we do: those are given apart, as JSON text.
    pub fn read_wire(&mut self, text: &'a str) -> Result<(Strangers<'a>, usize), serde_json::Error> {
        if let Some(end) = plain::read(text, self) {
            return Ok((Vec::new(), end));
        }
        let mut objects = serde_json::Deserializer::from_str(text).into_iter::<FromWire<'a>>();
        let nothing = || Err(serde::de::Error::custom("no object where a batch should be"));
        let FromWire { record, strangers } = objects.next().unwrap_or_else(nothing)?;
        *self = record;
        Ok((strangers, objects.byte_offset()))
    }

    fn fault(&mut self, field: &str, found: &str, expected: &str) {
        self.faults.push(FieldError { field: field.into(), found: found.into(), expected: expected.into() });
    }
}

/// Whether a character could move a terminal's cursor, start an escape or turn the writing around.
pub fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// The first characters of a text, printable.
pub fn clip(text: &str) -> String {
    let mut clipped = String::new();
    for c in text.chars().take(FOUND_CHARS_MAX) {
        if steers(c) { clipped.extend(c.escape_default()) } else { clipped.push(c) }
    }
    if text.chars().nth(FOUND_CHARS_MAX).is_some() {
        clipped.push('…');
    }
    clipped
}

/// A record with the members that are no field of it.
struct FromWire<'a> {
    record: Record<'a>,
    strangers: Strangers<'a>,
}

impl<'de> Deserialize<'de> for FromWire<'de> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        let (mut record, mut strangers) = (Record::default(), Vec::new());
        json.deserialize_map(Fields { record: &mut record, strangers: Some(&mut strangers) })?;
        Ok(Self { record, strangers })
    }
}

/// Fills a record from the members of a JSON object.
struct Fields<'r, 'a> {
    record: &'r mut Record<'a>,
    /// Where members go that are no field of a batch; without it they are faults.
    strangers: Option<&'r mut Strangers<'a>>,
}

impl<'a> Visitor<'a> for Fields<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a batch as a JSON object")
    }

    fn visit_map<A: MapAccess<'a>>(mut self, mut members: A) -> Result<(), A::Error> {
        let mut next = 0;
        while let Some(name) = members.next_key_seed(FieldName { likely: Field::ALL.get(next).copied() })? {
            next += 1;
            let raw: &'a RawValue = members.next_value()?;
            match name {
                Ok(field) => self.record.set(field, judge_json(raw.get())),
                Err(name) => match &mut self.strangers {
                    Some(strangers) => strangers.push((name, raw.get())),
                    None => self.record.unknown(&name),
                },
            }
        }
        Ok(())
    }
}

/// A member's name, without an allocation where it is one of ours.
struct FieldName {
    /// The one that stands here in the order of the wire, which most files keep.
    likely: Option<Field>,
}

impl<'de> DeserializeSeed<'de> for FieldName {
    type Value = Result<Field, String>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_str(self)
    }
}

impl Visitor<'_> for FieldName {
    type Value = Result<Field, String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field's name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        let field = self.likely.filter(|field| field.name() == name).or_else(|| Field::from_name(name));
        Ok(field.ok_or_else(|| name.to_owned()))
    }
}

/// A JSON value by its text, which serde_json has found well-formed.
fn judge_json(raw: &str) -> Value<'_> {
    match raw.as_bytes().first() {
        Some(b'n') => Value::Null,
        Some(b't') => Value::Bool(true),
        Some(b'f') => Value::Bool(false),
        Some(b'"') => judge_string(raw),
        Some(b'{' | b'[') | None => Value::Other(raw),
        Some(_) => Value::Number(Cow::Borrowed(raw)),
    }
}

fn judge_string(raw: &str) -> Value<'_> {
    let inner = &raw[1..raw.len() - 1];
    if !inner.contains('\\') {
        return Value::Text(Cow::Borrowed(inner));
    }
    // A lone surrogate is well-formed JSON but no text.
    serde_json::from_str(raw).map_or(Value::Other(raw), |text: String| Value::Text(Cow::Owned(text)))
}
