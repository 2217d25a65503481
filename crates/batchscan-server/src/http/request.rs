//! Reads requests: who is calling, and what they ask for. After this a type is the proof.

use std::borrow::Cow;

use axum::http::{HeaderMap, header};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use batchscan_model::instant::DateInput;
use batchscan_model::{ClientId, ClientSecret, DateRange, Invalid, Part, Reason, UtcInstant};
use percent_encoding::percent_decode_str;

use super::error::ApiError;
use crate::auth::KeyRing;
use crate::cursor::{Cursor, Sealer};
use batchscan_store::{Caller, Walk};

/// What people call a cursor by mistake (decision 017). Unheard, their clients would read page 1 for ever.
const WRONG_CURSOR_NAMES: [&str; 6] = ["cursor", "page_token", "nextToken", "page", "offset", "after"];

/// Who is calling, by the bearer token.
pub(super) fn caller(headers: &HeaderMap, keys: &KeyRing, now: UtcInstant) -> Result<Caller, ApiError> {
    let value = headers.get(header::AUTHORIZATION).ok_or(ApiError::NoToken)?;
    // Bytes that are no text make a token that is not ours; they do not make it one that was not sent.
    let text = String::from_utf8_lossy(value.as_bytes());
    let token = after_scheme(&text, "bearer").ok_or(ApiError::NoToken)?;
    keys.verify(token, now).map_err(ApiError::BadToken)
}

/// Which batches, and from where on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BatchQuery {
    /// The window.
    pub(super) range: DateRange,
    /// Where a walk goes on.
    pub(super) walk: Option<Walk>,
}

impl BatchQuery {
    /// The query of `GET /v1/batches`: dates alone (decision 024).
    pub(super) fn v1(query: &str) -> Result<Self, Invalid> {
        let (query, mut faults) = (Parameters::of(query), Invalid::default());
        let start = date(&query, "start_date", &mut faults).map(DateInput::as_start);
        let end = date(&query, "end_date", &mut faults).map(DateInput::as_end);
        faults.or_ok(Self { range: DateRange { start, end }, walk: None })
    }

    /// The query of `GET /v2/batches`: dates and a cursor, which remembers the dates (decision 021).
    pub(super) fn v2(query: &str, sealer: &Sealer, tenant: &Caller) -> Result<Self, Invalid> {
        let (query, mut faults) = (Parameters::of(query), Invalid::default());
        // Opened before the dates, which are held against it, and told of after them, in the interface's order.
        let cursor = query.one("next_token").and_then(|text| {
            text.map(|text| sealer.open(tenant.org, text).ok_or(Reason::BadCursor)).transpose()
        });
        let begun = cursor.as_ref().ok().and_then(Option::as_ref).map(|cursor| cursor.range);
        let start = date(&query, "start_date", &mut faults).map(DateInput::as_start);
        hold(start, begun.map(|range| range.start), "start_date", &mut faults);
        let end = date(&query, "end_date", &mut faults).map(DateInput::as_end);
        hold(end, begun.map(|range| range.end), "end_date", &mut faults);
        let cursor = cursor.map_err(|reason| faults.push(Part::Query, "next_token", reason)).ok().flatten();
        for name in WRONG_CURSOR_NAMES {
            if query.one(name) != Ok(None) {
                faults.push(Part::Query, name, Reason::WrongCursorName);
            }
        }
        faults.or_ok(match cursor {
            Some(Cursor { walk, range }) => Self { range, walk: Some(walk) },
            None => Self { range: DateRange { start, end }, walk: None },
        })
    }
}

/// Holds a date that is repeated beside a cursor against the one the walk began with (decision 021).
fn hold(
    date: Option<UtcInstant>,
    begun: Option<Option<UtcInstant>>,
    name: &'static str,
    faults: &mut Invalid,
) {
    if begun.is_some_and(|begun| date.is_some() && date != begun) {
        faults.push(Part::Query, name, Reason::DiffersFromCursor);
    }
}

/// What an auth request sends.
#[derive(Debug)]
pub(super) struct TokenRequest {
    /// The client's id; `None` if the text cannot be one, which is then as wrong as any.
    pub(super) client: Option<ClientId>,
    /// The client's secret.
    pub(super) secret: ClientSecret,
    /// Whether they came in the Authorization header.
    pub(super) by_basic: bool,
}

impl TokenRequest {
    /// Reads form fields, and credentials by HTTP Basic in their place (decision 004).
    pub(super) fn parse(headers: &HeaderMap, form: &str) -> Result<Self, Invalid> {
        let basic = basic_credentials(headers);
        let by_basic = basic.is_some();
        let (basic_id, basic_secret) = basic.unzip();
        let (form, mut faults) = (Parameters::of(form), Invalid::default());
        let id = credential(&form, "client_id", basic_id, &mut faults);
        let secret = credential(&form, "client_secret", basic_secret, &mut faults);
        match form.one("grant_type") {
            Ok(Some("client_credentials")) => {}
            Ok(Some(grant)) if !grant.is_empty() => {
                faults.push(Part::Body, "grant_type", Reason::NotClientCredentials);
            }
            Ok(_) => faults.push(Part::Body, "grant_type", Reason::Missing),
            Err(reason) => faults.push(Part::Body, "grant_type", reason),
        }
        let secret = ClientSecret::new(secret.unwrap_or_default());
        faults.or_ok(Self { client: id.and_then(ClientId::new), secret, by_basic })
    }
}

/// Whether a body is said to be a form (decision 015).
pub(super) fn is_form(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/x-www-form-urlencoded")
}

fn credential(
    form: &Parameters<'_>,
    name: &'static str,
    basic: Option<String>,
    faults: &mut Invalid,
) -> Option<String> {
    let sent = match form.one(name) {
        Ok(sent) => sent.filter(|text| !text.is_empty()).map(str::to_owned),
        Err(reason) => {
            faults.push(Part::Body, name, reason);
            return None;
        }
    };
    match (sent, basic) {
        (Some(sent), Some(basic)) if sent != basic => {
            faults.push(Part::Body, name, Reason::DiffersFromHeader);
        }
        (Some(text), _) | (None, Some(text)) => return Some(text),
        (None, None) => faults.push(Part::Body, name, Reason::Missing),
    }
    None
}

/// The id and secret of an `Authorization: Basic` header. A broken one is a pair that nobody has.
///
/// Our ids and secrets hold no `%`, so raw and percent-encoded credentials cannot be confused.
fn basic_credentials(headers: &HeaderMap) -> Option<(String, String)> {
    let encoded = after_scheme(headers.get(header::AUTHORIZATION)?.to_str().ok()?, "basic")?;
    let bytes = STANDARD.decode(encoded).or_else(|_| STANDARD_NO_PAD.decode(encoded)).unwrap_or_default();
    let text = String::from_utf8(bytes).unwrap_or_default();
    let (id, secret) = text.split_once(':').unwrap_or((" ", " "));
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    Some((decoded(id), decoded(secret)))
}

fn date(query: &Parameters<'_>, name: &'static str, faults: &mut Invalid) -> Option<DateInput> {
    let parsed = match query.one(name) {
        Ok(None) => return None,
        Ok(Some(text)) => DateInput::parse(text),
        Err(reason) => Err(reason),
    };
    parsed.map_err(|reason| faults.push(Part::Query, name, reason)).ok()
}

/// The parameters of a query or a form, decoded once.
struct Parameters<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Parameters<'a> {
    fn of(encoded: &'a str) -> Self {
        Self(form_urlencoded::parse(encoded.as_bytes()).collect())
    }

    /// The value of one that may stand at most once (decision 016).
    fn one(&self, name: &str) -> Result<Option<&str>, Reason> {
        let mut values = self.0.iter().filter(|(key, _)| key == name);
        let first = values.next();
        if values.next().is_some() { Err(Reason::Repeated) } else { Ok(first.map(|(_, value)| &**value)) }
    }
}

/// What follows an authentication scheme, whose name is read in any case (RFC 9110 §11.1).
fn after_scheme<'a>(value: &'a str, scheme: &str) -> Option<&'a str> {
    let (name, rest) = value.split_once(' ')?;
    name.eq_ignore_ascii_case(scheme).then(|| rest.trim())
}
