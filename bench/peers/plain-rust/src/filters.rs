//! What a request for batches asks: dates, and the cursor of a walk that goes on.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::batch::Batch;
use crate::error::{ApiError, FieldFault};

/// The query string as it came.
#[derive(Deserialize)]
pub(crate) struct RawFilters {
    start_date: Option<String>,
    end_date: Option<String>,
    next_token: Option<String>,
}

/// Which batches are asked for.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Filters {
    start: Option<Timestamp>,
    end: Option<Timestamp>,
    /// The last batch of the page before.
    after: Option<(Timestamp, String)>,
}

impl Filters {
    /// Reads dates alone.
    pub(crate) fn dates(raw: &RawFilters) -> Result<Self, ApiError> {
        let read = |name, text: &Option<String>| text.as_deref().map(|text| instant(name, text)).transpose();
        let (start, end) = (read("start_date", &raw.start_date), read("end_date", &raw.end_date));
        match (start, end) {
            (Ok(start), Ok(end)) => Ok(Self { start, end, after: None }),
            (start, end) => Err(ApiError::Invalid(start.err().into_iter().chain(end.err()).collect())),
        }
    }

    /// Reads dates, or a cursor, which remembers them.
    pub(crate) fn dates_or_cursor(raw: &RawFilters) -> Result<Self, ApiError> {
        let dates = Self::dates(raw)?;
        let Some(cursor) = &raw.next_token else { return Ok(dates) };
        let bytes = URL_SAFE_NO_PAD.decode(cursor).ok();
        let filters = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let fault = || FieldFault::new("value_error", ["query", "next_token"], "Value error, unknown cursor");
        filters.ok_or_else(|| ApiError::Invalid(vec![fault()]))
    }

    /// The same filters for what comes after a batch.
    pub(crate) fn beyond(&self, batch: &Batch) -> Self {
        let after = Some((batch.batch_creation_date.0, batch.batch_id.clone()));
        Self { after, ..self.clone() }
    }

    /// The filters as a cursor.
    pub(crate) fn to_cursor(&self) -> Result<String, ApiError> {
        let text = serde_json::to_vec(self).map_err(|error| ApiError::Internal(error.into()))?;
        Ok(URL_SAFE_NO_PAD.encode(text))
    }

    /// The position that all batches come after. No id is empty, so an empty one comes before all of its instant.
    pub(crate) fn after(&self) -> (i64, &str) {
        match &self.after {
            Some((created, id)) => (created.as_microsecond(), id),
            None => (self.start.map_or(i64::MIN, rounded_up), ""),
        }
    }

    /// The last instant, in microseconds.
    pub(crate) fn end(&self) -> i64 {
        self.end.map_or(i64::MAX, Timestamp::as_microsecond)
    }
}

/// Batches are stored to the microsecond: one of the same microsecond as a later nanosecond is before it.
fn rounded_up(start: Timestamp) -> i64 {
    let micros = start.as_microsecond();
    micros + i64::from(start.as_nanosecond() > i128::from(micros) * 1_000)
}

/// A datetime in UTC. An unescaped `+` in a URL arrives as a space.
fn instant(name: &'static str, text: &str) -> Result<Timestamp, FieldFault> {
    let text = text.replace(' ', "+");
    let fault = |kind, message| FieldFault::new(kind, ["query", name], message);
    let parsed = text.parse::<Timestamp>().ok().filter(|_| text.contains('T'));
    match parsed {
        Some(instant) if text.ends_with('Z') || text.ends_with("+00:00") => Ok(instant),
        Some(_) => Err(fault("timezone_offset", "Input should be in UTC")),
        None if text.parse::<jiff::civil::DateTime>().is_ok() => {
            Err(fault("timezone_aware", "Input should have timezone info"))
        }
        None => Err(fault("datetime_from_date_parsing", "Input should be a valid datetime")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_in_utc_and_says_so() {
        for sound in ["2026-01-31T08:00:00Z", "2026-01-31T08:00:00+00:00", "2026-01-31T08:00:00 00:00"] {
            assert_eq!(instant("end_date", sound).unwrap().as_second(), 1_769_846_400, "{sound}");
        }
        for wrong in ["2026-01-31T08:00:00", "2026-01-31", "2026-01-31T08:00:00+02:00", "1769846400", ""] {
            assert!(instant("end_date", wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_start_between_two_microseconds_leaves_the_earlier_out() {
        assert_eq!(rounded_up(Timestamp::from_nanosecond(1_000).unwrap()), 1);
        assert_eq!(rounded_up(Timestamp::from_nanosecond(1_001).unwrap()), 2);
        assert_eq!(rounded_up(Timestamp::from_nanosecond(-1_500).unwrap()), -1);
    }

    #[test]
    fn a_cursor_holds_all_it_was_made_of() {
        let raw = |next_token| RawFilters { start_date: None, end_date: None, next_token };
        let filters = Filters { after: Some((Timestamp::UNIX_EPOCH, "a".into())), ..Filters::default() };
        let read = Filters::dates_or_cursor(&raw(Some(filters.to_cursor().unwrap()))).unwrap();
        assert_eq!(read.after(), (0, "a"));
        assert!(Filters::dates_or_cursor(&raw(Some("nonsense".into()))).is_err());
    }
}
