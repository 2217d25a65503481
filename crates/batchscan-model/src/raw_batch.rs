//! The values of a batch as a file has them, not yet validated.

use std::borrow::Cow;
use std::fmt;

use crate::printable::clip;
use crate::{Field, FieldError, UtcInstant};

/// The value of one field.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// JSON's null, an empty CSV cell.
    Null,
    /// True or false.
    Bool(bool),
    /// A number as its digits, never a float.
    Number(Cow<'a, str>),
    /// Text.
    Text(Cow<'a, str>),
    /// A CSV cell: text that may stand for any type.
    Cell(Cow<'a, str>),
    /// A number that the file marks as a percentage.
    Percent(Cow<'a, str>),
    /// A timestamp that the file marks as UTC.
    Instant(UtcInstant),
    /// An array, an object, or a value of a type that no field has.
    Other(&'a str),
    /// A value whose error is already reported.
    Rejected,
}

impl fmt::Display for Value<'_> {
    /// Clipped, quoted if it is text, without control characters.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::Number(text) | Value::Percent(text) => f.write_str(&clip(text)),
            Value::Other(text) => f.write_str(&clip(text)),
            Value::Text(text) | Value::Cell(text) => write!(f, "\"{}\"", clip(text)),
            Value::Instant(instant) => write!(f, "{instant}"),
            Value::Rejected => f.write_str("an invalid value"),
        }
    }
}

/// Up to eighteen values, by field.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RawBatch<'a> {
    values: [Option<Value<'a>>; Field::ALL.len()],
    errors: Vec<FieldError>,
}

impl<'a> RawBatch<'a> {
    /// Sets a field. Setting it twice is an error of the batch.
    pub fn set(&mut self, field: Field, value: Value<'a>) {
        if self.values[field as usize].replace(value).is_some() {
            self.errors.push(FieldError::problem(field.name(), "duplicate field"));
        }
    }

    /// Replaces the value of a field by the reason why it is not accepted.
    pub fn reject(&mut self, field: Field, error: FieldError) {
        self.values[field as usize] = Some(Value::Rejected);
        self.errors.push(error);
    }

    /// Sets a field, or why its value is not accepted.
    pub fn set_or_reject(&mut self, field: Field, value: Result<Value<'a>, FieldError>) {
        match value {
            Ok(value) => self.set(field, value),
            Err(error) => self.reject(field, error),
        }
    }

    /// Records a name that is not a field, as an error of the batch.
    pub fn add_unknown(&mut self, name: &str) {
        self.errors.push(FieldError::unknown_field(name));
    }

    /// The value of a field; `None` if the file does not mention the field.
    pub fn get(&self, field: Field) -> Option<&Value<'a>> {
        self.values[field as usize].as_ref()
    }

    /// The value of a field, to be replaced.
    pub fn get_mut(&mut self, field: Field) -> Option<&mut Value<'a>> {
        self.values[field as usize].as_mut()
    }

    /// Duplicate and unknown fields, and rejected values.
    pub fn errors(&self) -> &[FieldError] {
        &self.errors
    }
}
