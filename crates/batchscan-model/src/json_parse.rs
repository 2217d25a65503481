//! Reads a [`RawBatch`] from JSON: in one pass if the text has the usual form, else with serde_json.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::json_scan::JSON_WHITESPACE;
use crate::{Field, RawBatch, Value, json_fast_path};

/// Members of a JSON object that are not fields of a batch, each with its value as JSON.
pub type UnknownFields<'a> = Vec<(String, &'a str)>;

impl<'a> RawBatch<'a> {
    /// Reads one JSON object. An unknown field is an error of the batch.
    pub fn from_json(text: &'a str) -> Result<Self, serde_json::Error> {
        let mut raw = RawBatch::default();
        match json_fast_path::read(text, &mut raw) {
            Some(end) if text[end..].trim_matches(JSON_WHITESPACE).is_empty() => Ok(raw),
            _ => Self::from_unusual_json(text),
        }
    }

    /// The same by serde_json alone.
    pub(crate) fn from_unusual_json(text: &'a str) -> Result<Self, serde_json::Error> {
        let parsed: Parsed<'a> = serde_json::from_str(text)?;
        let mut raw = parsed.raw;
        parsed.unknown.iter().for_each(|(name, _)| raw.add_unknown(name));
        Ok(raw)
    }

    /// Reads the JSON object that a text begins with into this empty `RawBatch`. Returns its length and its unknown
    /// fields, which are no errors: a newer service may send more fields.
    pub fn read_wire(&mut self, text: &'a str) -> Result<(UnknownFields<'a>, usize), serde_json::Error> {
        if let Some(end) = json_fast_path::read(text, self) {
            return Ok((Vec::new(), end));
        }
        let mut objects = serde_json::Deserializer::from_str(text).into_iter::<Parsed<'a>>();
        let nothing = || Err(serde::de::Error::custom("expected a batch as a JSON object, found nothing"));
        let Parsed { raw, unknown } = objects.next().unwrap_or_else(nothing)?;
        *self = raw;
        Ok((unknown, objects.byte_offset()))
    }
}

#[derive(Default)]
struct Parsed<'a> {
    raw: RawBatch<'a>,
    unknown: UnknownFields<'a>,
}

impl<'de> Deserialize<'de> for Parsed<'de> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_map(ObjectVisitor)
    }
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = Parsed<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a batch as a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Parsed<'de>, A::Error> {
        let mut parsed = Parsed::default();
        while let Some((Name(name), value)) = members.next_entry::<Name<'de>, &'de RawValue>()? {
            match Field::from_name(&name) {
                Some(field) => parsed.raw.set(field, parse_value(value.get())),
                None => parsed.unknown.push((name.into_owned(), value.get())),
            }
        }
        Ok(parsed)
    }
}

/// The name of a member. Borrowed unless it has escapes.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// Parses one JSON value, which serde_json has checked.
fn parse_value(json: &str) -> Value<'_> {
    match json.as_bytes().first() {
        Some(b'n') => Value::Null,
        Some(b't') => Value::Bool(true),
        Some(b'f') => Value::Bool(false),
        Some(b'"') => parse_string(json),
        Some(b'{' | b'[') | None => Value::Other(json),
        Some(_) => Value::Number(Cow::Borrowed(json)),
    }
}

fn parse_string(json: &str) -> Value<'_> {
    let inner = &json[1..json.len() - 1];
    if !inner.contains('\\') {
        return Value::Text(Cow::Borrowed(inner));
    }
    // A lone surrogate is valid JSON but not text.
    serde_json::from_str(json).map_or(Value::Other(json), |text: String| Value::Text(Cow::Owned(text)))
}
