//! The body of a 422 response (decision 014): `type`, `loc` and `msg`. The rejected value is never echoed.

use std::collections::HashMap;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// The part of a request that has the error: the first element of `loc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// The form of an auth request.
    Body,
    /// The query of a batches request.
    Query,
}

/// Why a field was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A required field is missing or empty.
    Missing,
    /// `grant_type` is not `client_credentials`.
    NotClientCredentials,
    /// A date without a timezone.
    NoTimezone,
    /// A date whose offset is not that of UTC.
    NotUtc,
    /// Not a date and time in the API's form.
    NotADatetime,
    /// A repeated parameter (decision 016).
    Repeated,
    /// A cursor that this service did not issue to this organisation (decision 023).
    BadCursor,
    /// A date that differs from the one its cursor was issued with (decision 021).
    DiffersFromCursor,
    /// A cursor or a date under a wrong name (decision 017). The right name is the value.
    WrongName(&'static str),
    /// A field of batches, which is not a filter (decision 017).
    NotAFilter,
    /// A position in the changes that this service did not issue to this organisation (decision 052).
    BadPosition,
    /// Not a number of seconds in the allowed range.
    BadWait,
    /// Credentials in the form that differ from those in the Authorization header (decision 004).
    DiffersFromHeader,
    /// Not `true` or `false`.
    NotABoolean,
    /// Not a number in the allowed range.
    BadNumber,
    /// Not the name of a time zone.
    BadTimezone,
    /// Not a mapping of columns.
    BadMapping,
    /// A name or label that is empty, too long or has control characters.
    BadName,
    /// Not a date and time in the future.
    NotInTheFuture,
    /// More batches than an export of this format may have (decision 053).
    TooManyBatches,
}

impl Reason {
    /// The error type of pydantic: clients of this API parse those today.
    pub fn kind(self) -> &'static str {
        match self {
            Reason::Missing => "missing",
            Reason::NotClientCredentials => "literal_error",
            Reason::NoTimezone => "timezone_aware",
            Reason::NotUtc => "timezone_offset",
            Reason::NotADatetime => "datetime_from_date_parsing",
            Reason::Repeated
            | Reason::BadCursor
            | Reason::DiffersFromCursor
            | Reason::WrongName(_)
            | Reason::NotAFilter
            | Reason::BadPosition
            | Reason::BadWait
            | Reason::DiffersFromHeader
            | Reason::BadNumber
            | Reason::BadTimezone
            | Reason::BadMapping
            | Reason::BadName
            | Reason::NotInTheFuture
            | Reason::TooManyBatches => "value_error",
            Reason::NotABoolean => "bool_parsing",
        }
    }

    /// The message for people.
    pub fn message(self) -> &'static str {
        match self {
            Reason::Missing => "Field required",
            Reason::NotClientCredentials => "Input should be 'client_credentials'",
            Reason::NoTimezone => "Input should have timezone info",
            Reason::NotUtc => "Timezone offset of 0 required: end the date with Z or +00:00",
            Reason::NotADatetime => {
                "Input should be a valid datetime or date, in the form YYYY-MM-DDTHH:MM:SSZ such as 2026-01-31T08:00:00Z: \
                 a plain date is not accepted"
            }
            Reason::Repeated => "Value error, the parameter is repeated",
            Reason::BadCursor => {
                "Value error, not a cursor of this service: pass next_token of the previous page"
            }
            Reason::DiffersFromCursor => {
                "Value error, differs from the date that next_token was issued with: repeat it or leave it out"
            }
            Reason::WrongName("next_token") => "Value error, the cursor goes into the parameter next_token",
            Reason::WrongName("start_date") => "Value error, the parameter is called start_date",
            Reason::WrongName(_) => "Value error, the parameter is called end_date",
            Reason::NotAFilter => {
                "Value error, batches cannot be filtered by this field: filter by start_date and end_date, and the rest in \
                 the client"
            }
            Reason::BadPosition => {
                "Value error, not a position of this service: pass since of the last response, or leave it out"
            }
            Reason::BadWait => "Value error, wait should be a whole number of seconds from 0 to 60",
            Reason::DiffersFromHeader => {
                "Value error, differs from the Authorization header: send one of the two"
            }
            Reason::NotABoolean => "Input should be true or false",
            Reason::BadNumber => "Value error, not a number in the allowed range",
            Reason::BadMapping => {
                "Value error, not a mapping (TOML); `batchscan import --mapping` reports its mistakes"
            }
            Reason::BadTimezone => "Value error, not a time zone such as Europe/Berlin or UTC",
            Reason::BadName => "Value error, it is empty, too long or has invisible characters or a slash",
            Reason::NotInTheFuture => {
                "Value error, not a date and time in the future, such as 2030-01-31T00:00:00Z"
            }
            Reason::TooManyBatches => {
                "Value error, too many batches for this format: choose a shorter period, or CSV or NDJSON"
            }
        }
    }

    /// A value in the right form, for those that people type.
    fn example(self) -> Option<&'static str> {
        match self {
            Reason::NoTimezone | Reason::NotUtc | Reason::NotADatetime => Some("2026-01-31T08:00:00Z"),
            _ => None,
        }
    }
}

/// One rejected field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidParameter {
    /// The part of the request.
    pub part: Part,
    /// Its name in the API.
    pub field: &'static str,
    /// Why it was rejected.
    pub reason: Reason,
    /// The value in the right form.
    pub example: Option<String>,
}

/// The errors of one request, at most one per field. Serialises as `detail`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Invalid(Vec<InvalidParameter>);

impl Invalid {
    /// A single error in the query.
    pub fn query(field: &'static str, reason: Reason) -> Self {
        let mut invalid = Self::default();
        invalid.push(Part::Query, field, reason);
        invalid
    }

    /// Adds an error.
    pub fn push(&mut self, part: Part, field: &'static str, reason: Reason) {
        self.0.push(InvalidParameter { part, field, reason, example: None });
    }

    /// Adds an error of a value that is almost right.
    pub fn push_almost(&mut self, part: Part, field: &'static str, reason: Reason, example: Option<String>) {
        self.0.push(InvalidParameter { part, field, reason, example });
    }

    /// The errors.
    pub fn errors(&self) -> &[InvalidParameter] {
        &self.0
    }

    /// `Ok` if there are no errors.
    pub fn or_ok<T>(self, value: T) -> Result<T, Invalid> {
        if self.0.is_empty() { Ok(value) } else { Err(self) }
    }
}

impl Serialize for InvalidParameter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut entry = serializer.serialize_map(None)?;
        entry.serialize_entry("type", self.reason.kind())?;
        entry.serialize_entry("loc", &(self.part, self.field))?;
        entry.serialize_entry("msg", self.reason.message())?;
        if let Some(example) = self.example.as_deref().or(self.reason.example()) {
            entry.serialize_entry("ctx", &HashMap::from([("example", example)]))?;
        }
        entry.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// API section 7: type, loc, msg. Decision 014: an example, and no input.
    #[test]
    fn an_error_has_type_loc_msg_and_for_dates_an_example() {
        let invalid = Invalid::query("start_date", Reason::NoTimezone);
        assert_eq!(
            serde_json::to_string(&invalid).unwrap(),
            r#"[{"type":"timezone_aware","loc":["query","start_date"],"msg":"Input should have timezone info","ctx":{"example":"2026-01-31T08:00:00Z"}}]"#
        );
    }
}
