//! Extracts the queries of the batch endpoints, and the encoding that the client accepts.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use batchscan_model::instant::DateInput;
use batchscan_model::{DateRange, Field, Invalid, OrgId, Part, Reason, UtcInstant};
use batchscan_store::{Caller, Encoding, Resume};

use super::app::App;
use super::encoding::accepted_encoding;
use super::error::ApiError;
use super::parameters::Parameters;
use crate::auth::TokenError;
use crate::cipher::Cipher;
use crate::cursor::Cursor;

/// Wrong names of parameters in any case, and the right ones (decision 017). If they were ignored, clients would get all batches.
const WRONG_DATE_NAMES: [(&str, &str); 12] = [
    ("Start_Date", "start_date"),
    ("startDate", "start_date"),
    ("start-date", "start_date"),
    ("start", "start_date"),
    ("from", "start_date"),
    ("since", "start_date"),
    ("End_Date", "end_date"),
    ("endDate", "end_date"),
    ("end-date", "end_date"),
    ("end", "end_date"),
    ("to", "end_date"),
    ("until", "end_date"),
];
/// If they were ignored, clients would read page 1 forever.
const WRONG_CURSOR_NAMES: [&str; 6] = ["cursor", "page_token", "nextToken", "page", "offset", "after"];

/// The query of `GET /v1/batches`: dates only (decision 024).
#[derive(Clone, Copy, Debug)]
pub(super) struct RangeQuery(pub(super) DateRange);

/// The query of `GET /v2/batches`: dates and a cursor, which contains the dates (decision 021).
#[derive(Clone, Debug)]
pub(super) struct PageQuery {
    pub(super) range: DateRange,
    /// Where paging continues; `None` for the first page.
    pub(super) resume: Option<Resume>,
}

impl FromRequestParts<App> for RangeQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, app).await?;
        let query = Self::parse(parts.uri.query().unwrap_or_default());
        reject_invalid(app, &caller, query).await
    }
}

impl FromRequestParts<App> for PageQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, app).await?;
        let query = Self::parse(parts.uri.query().unwrap_or_default(), &app.keys().cursors, caller.org);
        reject_invalid(app, &caller, query).await
    }
}

impl FromRequestParts<App> for Encoding {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Infallible> {
        Ok(accepted_encoding(&parts.headers))
    }
}

/// Reports an error of the query or body only to callers with a valid credential (decision 007). A valid query passes: the
/// credential is checked in the same read as the batches.
pub(super) async fn reject_invalid<Q>(
    app: &App,
    caller: &Caller,
    query: Result<Q, impl Into<ApiError>>,
) -> Result<Q, ApiError> {
    let invalid = match query {
        Ok(query) => return Ok(query),
        Err(invalid) => invalid,
    };
    // If the store is unavailable, the query is still invalid (decision 028).
    match app.store.data_version(caller, app.clock.now()).await {
        Ok(None) => Err(ApiError::InvalidToken(TokenError::Invalid)),
        Ok(Some(_)) | Err(_) => Err(invalid.into()),
    }
}

impl RangeQuery {
    pub(super) fn parse(query: &str) -> Result<Self, Invalid> {
        let (query, mut errors) = (Parameters::parse(query.as_bytes()), Invalid::default());
        let start = date(&query, "start_date", &mut errors).map(DateInput::as_start);
        let end = date(&query, "end_date", &mut errors).map(DateInput::as_end);
        reject_wrong_names(&query, &mut errors);
        errors.or_ok(Self(DateRange { start, end }))
    }
}

impl PageQuery {
    pub(super) fn parse(query: &str, cursors: &Cipher<Cursor>, org: OrgId) -> Result<Self, Invalid> {
        let (query, mut errors) = (Parameters::parse(query.as_bytes()), Invalid::default());
        // Decrypted before the dates, which are compared with it, and reported after them, in the contract's order.
        let cursor = query.value("next_token").and_then(|text| {
            text.map(|text| cursors.decrypt(org, text).ok_or(Reason::BadCursor)).transpose()
        });
        let range = cursor.as_ref().ok().and_then(Option::as_ref).map(|cursor| cursor.range);
        let start = date(&query, "start_date", &mut errors).map(DateInput::as_start);
        check_same(start, range.map(|range| range.start), "start_date", &mut errors);
        let end = date(&query, "end_date", &mut errors).map(DateInput::as_end);
        check_same(end, range.map(|range| range.end), "end_date", &mut errors);
        let cursor = cursor.map_err(|reason| errors.push(Part::Query, "next_token", reason)).ok().flatten();
        for name in WRONG_CURSOR_NAMES.into_iter().filter(|name| query.has(name)) {
            errors.push(Part::Query, name, Reason::WrongName("next_token"));
        }
        reject_wrong_names(&query, &mut errors);
        errors.or_ok(match cursor {
            Some(Cursor { resume, range }) => Self { range, resume: Some(resume) },
            None => Self { range: DateRange { start, end }, resume: None },
        })
    }
}

/// A date that is sent together with a cursor must be the same as in the first request (decision 021).
fn check_same(
    date: Option<UtcInstant>,
    in_cursor: Option<Option<UtcInstant>>,
    name: &'static str,
    errors: &mut Invalid,
) {
    if in_cursor.is_some_and(|in_cursor| date.is_some() && date != in_cursor) {
        errors.push(Part::Query, name, Reason::DiffersFromCursor);
    }
}

/// Rejects wrong names of the dates, and fields of batches as filters.
fn reject_wrong_names(query: &Parameters<'_>, errors: &mut Invalid) {
    if query.names().all(|name| matches!(name, "start_date" | "end_date" | "next_token")) {
        return;
    }
    let is_sent = |(wrong, right): &(&str, &str)| {
        query.names().any(|name| name.eq_ignore_ascii_case(wrong) && name != *right)
    };
    for (name, right) in WRONG_DATE_NAMES.into_iter().filter(is_sent) {
        errors.push(Part::Query, name, Reason::WrongName(right));
    }
    for field in Field::ALL.into_iter().filter(|field| query.has(field.name())) {
        errors.push(Part::Query, field.name(), Reason::NotAFilter);
    }
}

fn date(query: &Parameters<'_>, name: &'static str, errors: &mut Invalid) -> Option<DateInput> {
    let text = match query.value(name) {
        Ok(text) => text?,
        Err(reason) => {
            errors.push(Part::Query, name, reason);
            return None;
        }
    };
    let parsed = DateInput::parse(text);
    parsed.map_err(|reason| errors.push_almost(Part::Query, name, reason, complete(text, name, reason))).ok()
}

/// A date without a time or a timezone, completed.
fn complete(text: &str, name: &str, reason: Reason) -> Option<String> {
    let is_plain_date = text.len() == "2026-01-31".len();
    match reason {
        Reason::NoTimezone if !is_plain_date => Some(format!("{text}Z")),
        Reason::NoTimezone if name == "end_date" => Some(format!("{text}T23:59:59Z")),
        Reason::NoTimezone => Some(format!("{text}T00:00:00Z")),
        _ => None,
    }
}
