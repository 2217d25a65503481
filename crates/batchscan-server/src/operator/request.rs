//! Queries and small JSON bodies of requests, and lists as responses.

use axum::body::Body;
use axum::extract::{FromRequestParts, Path};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use batchscan_model::printable::clip;
use batchscan_model::{Invalid, Part, Reason, UtcInstant};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::http::App;
use crate::http::error::ApiError;
use crate::http::parameters::Parameters;
use crate::http::response;
use crate::http::token::{parse_object, read_body};

/// A JSON object of the operator API has a few hundred bytes.
const OBJECT_BYTES_MAX: usize = 16 * 1024;
/// Entries of a list.
const LIMIT_MAX: i64 = 1_000;

/// Names and ids in the path. One that is not UTF-8 or has a NUL, which PostgreSQL rejects, does not exist.
pub(super) struct PathNames<T>(pub(super) T);

impl<T: DeserializeOwned + Send> FromRequestParts<App> for PathNames<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        if parts.uri.path().contains("%00") {
            return Err(ApiError::NotFound);
        }
        let path = Path::<T>::from_request_parts(parts, app).await;
        path.map(|Path(names)| Self(names)).map_err(|_| ApiError::NotFound)
    }
}

/// The query of a request.
pub(super) struct Query<'a>(Parameters<'a>);

impl<'a> Query<'a> {
    /// Parses a query of known parameters. With a misspelt one, a dry run would be an import.
    pub(super) fn parse(query: Option<&'a str>, known: &[&'static str]) -> Result<Self, ApiError> {
        let parameters = Parameters::parse(query.unwrap_or_default().as_bytes());
        if let Some(name) = parameters.names().find(|name| !known.contains(name)) {
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let detail = format!("Unknown query parameter \"{}\": this request has {known}", clip(name));
            return Err(ApiError::UnknownParameter(detail));
        }
        Ok(Self(parameters))
    }

    /// A parameter that may be absent.
    pub(super) fn value<T>(
        &self,
        name: &'static str,
        reason: Reason,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, ApiError> {
        let invalid = |reason| ApiError::InvalidQuery(Invalid::query(name, reason));
        match self.0.value(name).map_err(invalid)? {
            None => Ok(None),
            Some(text) => parse(text).map(Some).ok_or_else(|| invalid(reason)),
        }
    }

    pub(super) fn flag(&self, name: &'static str) -> Result<bool, ApiError> {
        let parse = |text: &str| match text {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        };
        Ok(self.value(name, Reason::NotABoolean, parse)?.unwrap_or(false))
    }

    /// The number of the last entry that was read, and how many to read.
    pub(super) fn after(&self) -> Result<(i64, i64), ApiError> {
        let number = |range: std::ops::RangeInclusive<i64>| {
            move |text: &str| text.parse().ok().filter(|number| range.contains(number))
        };
        let after = self.value("after", Reason::BadNumber, number(0..=i64::MAX))?;
        let limit = self.value("limit", Reason::BadNumber, number(1..=LIMIT_MAX))?;
        Ok((after.unwrap_or(0), limit.unwrap_or(LIMIT_MAX)))
    }

    pub(super) fn instant(&self, name: &'static str) -> Result<Option<UtcInstant>, ApiError> {
        self.value(name, Reason::NotADatetime, |text| UtcInstant::parse_any_offset(text).ok())
    }
}

/// A small JSON object.
pub(super) async fn read_json<T: DeserializeOwned>(body: Body) -> Result<T, ApiError> {
    let body = read_body(body, OBJECT_BYTES_MAX).await?;
    parse_object(&body).map_err(ApiError::InvalidJson)
}

/// A field of a JSON body that is not valid.
pub(super) fn invalid_field(field: &'static str, reason: Reason) -> ApiError {
    let mut invalid = Invalid::default();
    invalid.push(Part::Body, field, reason);
    ApiError::InvalidQuery(invalid)
}

pub(super) fn respond(status: StatusCode, body: &Value) -> Response {
    response::json(status, body.to_string())
}

/// A page of a list of which one entry more than `limit` was read.
pub(super) fn list<T>(mut entries: Vec<T>, limit: i64, to_json: impl Fn(&T) -> Value) -> Response {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = entries.len() > limit;
    entries.truncate(limit);
    let data: Value = entries.iter().map(to_json).collect();
    respond(StatusCode::OK, &json!({ "data": data, "more": more }))
}
