//! The query parameters of a request for batches: dates and cursor.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::batch::Batch;
use crate::database::Range;
use crate::error::{ApiError, FieldError};

/// The unvalidated query parameters.
#[derive(Deserialize)]
pub(crate) struct RawFilters {
    start_date: Option<String>,
    end_date: Option<String>,
    next_token: Option<String>,
}

/// Which batches are requested.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Filters {
    start: Option<Timestamp>,
    end: Option<Timestamp>,
    /// The last batch of the previous page.
    after: Option<(Timestamp, String)>,
}

impl Filters {
    /// Parses the dates.
    pub(crate) fn dates(raw: &RawFilters) -> Result<Self, ApiError> {
        let parse =
            |name, text: &Option<String>| text.as_deref().map(|text| parse_date(name, text)).transpose();
        let (start, end) = (parse("start_date", &raw.start_date), parse("end_date", &raw.end_date));
        match (start, end) {
            (Ok(start), Ok(end)) => Ok(Self { start, end, after: None }),
            (start, end) => Err(ApiError::Invalid(start.err().into_iter().chain(end.err()).collect())),
        }
    }

    /// Parses the dates, or a cursor, which contains them.
    pub(crate) fn dates_or_cursor(raw: &RawFilters) -> Result<Self, ApiError> {
        let dates = Self::dates(raw)?;
        let Some(cursor) = &raw.next_token else { return Ok(dates) };
        let bytes = URL_SAFE_NO_PAD.decode(cursor).ok();
        let filters = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let error = || FieldError::new("value_error", ["query", "next_token"], "Value error, invalid cursor");
        filters.ok_or_else(|| ApiError::Invalid(vec![error()]))
    }

    /// The same filters for the batches after this one.
    pub(crate) fn after(&self, batch: &Batch) -> Self {
        let after = Some((batch.batch_creation_date.0, batch.batch_id.clone()));
        Self { after, ..self.clone() }
    }

    /// The filters as a cursor.
    pub(crate) fn to_cursor(&self) -> Result<String, ApiError> {
        let text = serde_json::to_vec(self).map_err(|error| ApiError::Internal(error.into()))?;
        Ok(URL_SAFE_NO_PAD.encode(text))
    }

    /// The same as a range of the batch order. The empty id sorts before all others of its instant.
    pub(crate) fn range(&self) -> Range {
        let after = match &self.after {
            Some((created, id)) => (created.as_microsecond(), id.clone()),
            None => (self.start.map_or(i64::MIN, round_up), String::new()),
        };
        Range { after, end: self.end.map_or(i64::MAX, Timestamp::as_microsecond) }
    }
}

/// Rounds up to microseconds, as a batch within the start's microsecond may lie before the start.
fn round_up(start: Timestamp) -> i64 {
    let micros = start.as_microsecond();
    micros + i64::from(start.as_nanosecond() > i128::from(micros) * 1_000)
}

/// Parses a datetime in UTC. An unescaped `+` in a URL arrives as a space.
fn parse_date(name: &'static str, text: &str) -> Result<Timestamp, FieldError> {
    let text = text.replace(' ', "+");
    let error = |kind, message| FieldError::new(kind, ["query", name], message);
    let parsed = text.parse::<Timestamp>().ok().filter(|_| text.contains('T'));
    match parsed {
        Some(instant) if text.ends_with('Z') || text.ends_with("+00:00") => Ok(instant),
        Some(_) => Err(error("timezone_offset", "Input should be in UTC")),
        None if text.parse::<jiff::civil::DateTime>().is_ok() => {
            Err(error("timezone_aware", "Input should have timezone info"))
        }
        None => Err(error("datetime_from_date_parsing", "Input should be a valid datetime")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_must_state_utc() {
        for valid in ["2026-01-31T08:00:00Z", "2026-01-31T08:00:00+00:00", "2026-01-31T08:00:00 00:00"] {
            assert_eq!(parse_date("end_date", valid).unwrap().as_second(), 1_769_846_400, "{valid}");
        }
        for invalid in ["2026-01-31T08:00:00", "2026-01-31", "2026-01-31T08:00:00+02:00", "1769846400", ""] {
            assert!(parse_date("end_date", invalid).is_err(), "{invalid}");
        }
    }

    #[test]
    fn a_start_between_two_microseconds_excludes_the_earlier_one() {
        assert_eq!(round_up(Timestamp::from_nanosecond(1_000).unwrap()), 1);
        assert_eq!(round_up(Timestamp::from_nanosecond(1_001).unwrap()), 2);
        assert_eq!(round_up(Timestamp::from_nanosecond(-1_500).unwrap()), -1);
    }

    #[test]
    fn a_cursor_keeps_its_position() {
        let raw = |next_token| RawFilters { start_date: None, end_date: None, next_token };
        let filters = Filters { after: Some((Timestamp::UNIX_EPOCH, "a".into())), ..Filters::default() };
        let read = Filters::dates_or_cursor(&raw(Some(filters.to_cursor().unwrap()))).unwrap();
        assert_eq!(read.range().after, (0, "a".into()));
        assert!(Filters::dates_or_cursor(&raw(Some("nonsense".into()))).is_err());
    }
}
