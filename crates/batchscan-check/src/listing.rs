//! Batches as the service returned them, and the date ranges to request. Sends nothing.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::response::Response;
use crate::verdict::{CheckResult, Verdict, undecided};

/// A date before all data, so that responses are small.
pub(crate) const LONG_AGO: &str = "1970-01-01T00:00:00Z";

/// The two dates of a request for batches, both optional.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct DateRange {
    pub(crate) start: Option<String>,
    pub(crate) end: Option<String>,
}

/// The batches of a date range, page by page. v1 has one page.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) pages: Vec<Page>,
    pub(crate) end: End,
}

/// One page, with its request and response as shown in reports.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) request: String,
    pub(crate) response: String,
    pub(crate) batches: Vec<Value>,
    pub(crate) next: Option<String>,
}

/// How a walk over pages ended.
#[derive(Debug)]
pub(crate) enum End {
    /// With a last page.
    Complete,
    /// At this run's limit on pages or batches.
    Cut,
    /// On the page of this number, with a cursor that an earlier page had: the pagination loops.
    Loop(usize),
    /// With a response that is not a page.
    Broken(Verdict),
}

impl DateRange {
    pub(crate) fn new(start: impl fmt::Display, end: impl fmt::Display) -> Self {
        Self { start: Some(start.to_string()), end: Some(end.to_string()) }
    }

    /// The whole seconds around sorted instants.
    pub(crate) fn around(instants: &[Timestamp]) -> CheckResult<Self> {
        let (Some(first), Some(last)) = (instants.first(), instants.last()) else {
            return Err(undecided("no batch has a valid batch_creation_date"));
        };
        let end = if is_whole_second(*last) { *last } else { add_secs(floor_second(*last), 1) };
        Ok(Self::new(floor_second(*first), end))
    }

    pub(crate) fn query(&self) -> Vec<(&str, &str)> {
        let start = self.start.as_deref().map(|date| ("start_date", date));
        let end = self.end.as_deref().map(|date| ("end_date", date));
        start.into_iter().chain(end).collect()
    }
}

impl fmt::Display for DateRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.start.as_deref().unwrap_or("…"), self.end.as_deref().unwrap_or("…"))
    }
}

impl Listing {
    pub(crate) fn batches(&self) -> impl Iterator<Item = &Value> {
        self.pages.iter().flat_map(|page| &page.batches)
    }

    pub(crate) fn ids(&self) -> Vec<&str> {
        self.batches().filter_map(batch_id).collect()
    }

    pub(crate) fn contains(&self, id: &str) -> bool {
        self.batches().any(|batch| batch_id(batch) == Some(id))
    }

    pub(crate) fn is_complete(&self) -> bool {
        matches!(self.end, End::Complete)
    }

    /// The verdict that these batches, taken together, break a rule.
    pub(crate) fn fail(&self, found: impl fmt::Display, expected: impl fmt::Display) -> Verdict {
        let request = self.pages.first().map_or("", |page| &page.request);
        let more = if self.pages.len() > 1 { " and its following pages" } else { "" };
        Verdict::fail(format!("{request}{more}"), found, expected)
    }

    /// Leaves a rule about a whole date range undecided if not all of it was read.
    pub(crate) fn require_complete(&self) -> CheckResult {
        match &self.end {
            End::Complete => Ok(()),
            End::Cut => {
                Err(undecided(format!("the run's limit was reached after {} pages", self.pages.len())))
            }
            End::Loop(_) => Err(undecided("the pagination loops")),
            End::Broken(verdict) => Err(verdict.clone().into_undecided()),
        }
    }
}

impl Page {
    fn new(response: &Response, batches: &[Value], next: Option<String>) -> Self {
        let (request, response) = (response.request.clone(), response.shown.clone());
        Self { request, response, batches: batches.to_vec(), next }
    }

    pub(crate) fn fail(&self, expected: impl fmt::Display) -> Verdict {
        Verdict::fail(&self.request, &self.response, expected)
    }
}

/// The token of a valid auth response.
pub(crate) fn access_token(response: &Response) -> CheckResult<String> {
    response.require_status(200)?;
    let token = response.json()?.get("access_token").and_then(Value::as_str).map(str::to_owned);
    token.ok_or_else(|| response.fail("a JSON object with a string field access_token"))
}

/// The batches of a valid v1 response, as one page.
pub(crate) fn parse_array(response: &Response) -> CheckResult<Page> {
    response.require_status(200)?;
    let batches = response.json()?.as_array().ok_or_else(|| response.fail("one flat JSON array"))?;
    Ok(Page::new(response, batches, None))
}

/// The page of a valid v2 response.
pub(crate) fn parse_page(response: &Response) -> CheckResult<Page> {
    response.require_status(200)?;
    let body = response.json()?;
    match (body.get("data").and_then(Value::as_array), body.get("next_token")) {
        (Some(batches), Some(Value::Null)) => Ok(Page::new(response, batches, None)),
        (Some(batches), Some(Value::String(next))) => Ok(Page::new(response, batches, Some(next.clone()))),
        _ => Err(response.fail("an object with data (array) and next_token (string or null)")),
    }
}

pub(crate) fn batch_id(batch: &Value) -> Option<&str> {
    batch.get("batch_id")?.as_str()
}

pub(crate) fn creation_date(batch: &Value) -> Option<Timestamp> {
    batch.get("batch_creation_date")?.as_str()?.parse().ok()
}

pub(crate) fn sorted_dates<'a>(batches: impl IntoIterator<Item = &'a Value>) -> Vec<Timestamp> {
    let mut dates: Vec<Timestamp> = batches.into_iter().filter_map(creation_date).collect();
    dates.sort_unstable();
    dates
}

/// `instant` plus whole seconds, or `instant` itself where the result is out of range.
pub(crate) fn add_secs(instant: Timestamp, secs: i64) -> Timestamp {
    instant.checked_add(SignedDuration::from_secs(secs)).unwrap_or(instant)
}

pub(crate) fn is_whole_second(instant: Timestamp) -> bool {
    instant.subsec_nanosecond() == 0
}

fn floor_second(instant: Timestamp) -> Timestamp {
    Timestamp::from_second(instant.as_second()).unwrap_or(instant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_range_is_the_whole_seconds_around_the_instants() {
        let instants =
            ["2024-05-01T00:00:00.25Z", "2024-05-01T00:00:09.5Z"].map(|text| text.parse().unwrap());
        let range = DateRange::around(&instants).unwrap();
        assert_eq!(range.to_string(), "2024-05-01T00:00:00Z to 2024-05-01T00:00:10Z");
        assert!(DateRange::around(&[]).is_err());
    }

    #[test]
    fn a_page_needs_a_next_token_that_is_a_string_or_null() {
        let parse =
            |body: &str| parse_page(&Response { status: 200, body: body.into(), ..Response::default() });
        assert!(parse(r#"{"data":[]}"#).is_err());
        assert!(parse(r#"{"data":[],"next_token":7}"#).is_err());
        assert!(parse(r#"{"data":[],"next_token":null}"#).is_ok());
    }
}
