//! Why a batch from a file or a response was rejected.

use std::fmt;

use crate::Field;
use crate::printable::clip;

const UNKNOWN_FIELD: &str = "unknown field";

/// Why one field was rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The name of the field as it was found. Empty if the error is not about one field.
    pub field: String,
    /// The rejected value, or the problem if `expected` is empty.
    pub found: String,
    /// The values that are accepted. Empty if no value would be.
    pub expected: String,
}

impl FieldError {
    /// An error about a value.
    pub fn new(field: &str, found: impl Into<String>, expected: impl Into<String>) -> Self {
        Self { field: field.into(), found: found.into(), expected: expected.into() }
    }

    /// An error that needs no expected value, such as `duplicate field`.
    pub fn problem(field: &str, problem: impl Into<String>) -> Self {
        Self::new(field, problem, "")
    }

    /// An error about a name that is not a field of a batch.
    pub fn unknown_field(name: &str) -> Self {
        match Field::most_similar(name) {
            Some(field) => Self::problem(&clip(name), format!("{UNKNOWN_FIELD}; did you mean {field}?")),
            None => Self::problem(&clip(name), UNKNOWN_FIELD),
        }
    }

    /// Whether the name is not a field of a batch.
    pub fn is_unknown_field(&self) -> bool {
        self.expected.is_empty() && self.found.starts_with(UNKNOWN_FIELD)
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        match self.expected.as_str() {
            "" => f.write_str(&self.found),
            expected => write!(f, "expected {expected}, found {}", self.found),
        }
    }
}

/// Every error of one batch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct FieldErrors(pub Vec<FieldError>);
