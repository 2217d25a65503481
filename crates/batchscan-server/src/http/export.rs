//! `GET /v2/export.csv`, `.ndjson`, `.parquet` and `.xlsx`: all batches as a file (decision 053).
//!
//! The batches are read as in v1. `export_text` converts them while the client receives them; `export_file` writes the
//! other formats to a temporary file first.

use axum::body::Body;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, header};
use axum::response::Response;
use batchscan_formats::Format;
use batchscan_model::{DateRange, UtcInstant};
use batchscan_store::{ArrayError, ArrayRequest, BatchArray, Encoding, PageResult};
use bytes::Bytes;
use futures_util::stream;

use super::app::App;
use super::batches::{not_modified, with_revalidation};
use super::caller::BasicOrBearer;
use super::conditional::{IfNoneMatch, QueryHash};
use super::error::ApiError;
use super::query::RangeQuery;
use super::{export_file, export_text};
use crate::auth::TokenError;

/// Sends all matching batches as a file, oldest first. HEAD reads no batches.
pub(super) async fn get(
    State(app): State<App>,
    BasicOrBearer(caller): BasicOrBearer,
    RangeQuery(range): RangeQuery,
    format: Format,
    if_none_match: IfNoneMatch,
    method: Method,
) -> Result<Response, ApiError> {
    let query = QueryHash::export(caller.org, range, format);
    let min_version = if_none_match.latest_version(query);
    let request = ArrayRequest { range, encoding: Encoding::Identity, min_version, now: app.clock.now() };
    let respond_unread = move |version| {
        let etag = query.etag(version);
        if if_none_match.matches(&etag) {
            return Some(not_modified(&etag));
        }
        (method == Method::HEAD).then(|| send_file(body_of_unknown_length(), format, range, &etag))
    };
    match app.store.array(&caller, request, respond_unread).await? {
        PageResult::InvalidCredential => Err(ApiError::InvalidToken(TokenError::Invalid)),
        PageResult::Skipped(response) => Ok(response),
        PageResult::Read(BatchArray { version, body, .. }) => {
            let etag = query.etag(version);
            if format.is_text() {
                return Ok(send_file(export_text::body(&app, &caller, format, body)?, format, range, &etag));
            }
            let (body, length) = export_file::body(app, caller, format, body).await?;
            let mut response = send_file(body, format, range, &etag);
            response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
            Ok(response)
        }
    }
}

impl FromRequestParts<App> for Format {
    type Rejection = ApiError;

    /// By the extension in the path.
    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, ApiError> {
        let extension = parts.uri.path().rsplit('.').next().unwrap_or_default();
        Format::from_name(extension).ok_or(ApiError::NotFound)
    }
}

fn send_file(body: Body, format: Format, range: DateRange, etag: &str) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(format.media_type()));
    let disposition = format!("attachment; filename=\"{}\"", file_name(range, format));
    headers
        .extend(HeaderValue::from_str(&disposition).ok().map(|value| (header::CONTENT_DISPOSITION, value)));
    with_revalidation(response, etag)
}

/// `batches-2026-01-01-to-2026-03-31.csv`, or `batches.csv` without dates.
fn file_name(range: DateRange, format: Format) -> String {
    let day = |instant: UtcInstant| instant.to_string()[.."2026-01-31".len()].to_owned();
    let dates = match (range.start.map(day), range.end.map(day)) {
        (None, None) => String::new(),
        (Some(start), None) => format!("-from-{start}"),
        (None, Some(end)) => format!("-to-{end}"),
        (Some(start), Some(end)) => format!("-{start}-to-{end}"),
    };
    format!("batches{dates}.{}", format.name())
}

/// For HEAD: an empty body would become `Content-Length: 0`.
fn body_of_unknown_length() -> Body {
    Body::from_stream(stream::empty::<Result<Bytes, ArrayError>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_after_its_dates() {
        let date = |text: &str| UtcInstant::parse_any_offset(text).unwrap();
        let (start, end) = (date("2026-01-01T00:00:00Z"), date("2026-03-31T23:59:59.999999Z"));
        for (start, end, name) in [
            (None, None, "batches.csv"),
            (Some(start), None, "batches-from-2026-01-01.csv"),
            (None, Some(end), "batches-to-2026-03-31.csv"),
            (Some(start), Some(end), "batches-2026-01-01-to-2026-03-31.csv"),
        ] {
            assert_eq!(file_name(DateRange { start, end }, Format::Csv), name);
        }
    }
}
