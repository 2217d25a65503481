//! `GET /v2/export.csv`, `.ndjson`, `.parquet` and `.xlsx`: all batches as a file (decision 053).
//!
//! The batches are read as in v1. Text is converted while the client receives it; the other formats are written to a
//! temporary file first (`spool`).

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, header};
use axum::response::Response;
use batchscan_formats::Format;
use batchscan_formats::write::{Columns, CsvStyle, TextWriter};
use batchscan_model::{Batch, DateRange, RawBatch, UtcInstant};
use batchscan_store::{
    ArrayBody, ArrayChunks, ArrayError, ArrayRequest, BatchArray, Caller, Encoding, PageResult, StoreError,
};
use bytes::Bytes;
use futures_util::stream;

use super::app::App;
use super::batches::{Reserved, STREAM_BYTES, not_modified, reserve, with_revalidation};
use super::caller::BasicOrBearer;
use super::conditional::{IfNoneMatch, QueryHash};
use super::error::ApiError;
use super::query::RangeQuery;
use super::spool;
use crate::auth::TokenError;
use crate::budget::Reservation;
use crate::clock::Clock;

/// The memory of a stream: a chunk of the array, and what it is converted to.
pub(super) const EXPORT_BYTES: usize = 2 * STREAM_BYTES;

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
                return Ok(send_file(text_body(&app, &caller, format, body)?, format, range, &etag));
            }
            let (body, length) = spool::body(app, caller, format, body).await?;
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

/// Converts the array whole or chunk by chunk.
fn text_body(app: &App, caller: &Caller, format: Format, array: ArrayBody) -> Result<Body, ApiError> {
    let (writer, mut text) = (TextWriter::new(format, CsvStyle::Plain, Columns::All), String::new());
    writer.push_header(&mut text);
    match array {
        ArrayBody::Whole(json) => {
            push_rows(&mut text, &writer, &json)?;
            let reservation = reserve(app, caller, text.len())?;
            Ok(Body::from(Reserved::bytes(text.into(), reservation)))
        }
        ArrayBody::Chunks(chunks) => {
            let (clock, reservation) = (app.clock.clone(), Arc::new(reserve(app, caller, EXPORT_BYTES)?));
            let text = TextChunks { writer, text, chunks, clock, reservation };
            Ok(Body::from_stream(stream::try_unfold(text, TextChunks::next)))
        }
    }
}

/// A text that is converted while the client receives it.
struct TextChunks {
    writer: TextWriter,
    /// Begins the next chunk.
    text: String,
    chunks: Box<ArrayChunks>,
    clock: Clock,
    reservation: Arc<Reservation>,
}

impl TextChunks {
    /// The next chunk. An error aborts the response (decision 026).
    async fn next(mut self) -> Result<Option<(Bytes, Self)>, ArrayError> {
        let Some(json) = self.chunks.next(self.clock.now()).await? else { return Ok(None) };
        let mut text = std::mem::take(&mut self.text);
        push_rows(&mut text, &self.writer, &json)?;
        Ok(Some((Reserved::bytes(text.into(), self.reservation.clone()), self)))
    }
}

/// Appends the batches of a chunk of an array.
fn push_rows(text: &mut String, writer: &TextWriter, json: &[u8]) -> Result<(), StoreError> {
    let mut rest = to_text(json)?;
    text.reserve(rest.len());
    while let Some((batch, json, after)) = split_batch(rest)? {
        writer.push_batch(text, &batch, json);
        rest = after;
    }
    Ok(())
}

/// The first batch in a chunk of an array with its JSON text, and what follows.
pub(super) fn split_batch(chunk: &str) -> Result<Option<(Batch, &str, &str)>, StoreError> {
    let rest = chunk.trim_start_matches(['[', ',']);
    if matches!(rest, "" | "]") {
        return Ok(None);
    }
    let mut raw = RawBatch::default();
    let (_, length) = raw.read_wire(rest).map_err(|error| invalid_row(&error))?;
    let batch = Batch::from_wire(&raw).map_err(|error| invalid_row(&error))?;
    let (json, after) = rest.split_at(length);
    Ok(Some((batch, json, after)))
}

pub(super) fn to_text(json: &[u8]) -> Result<&str, StoreError> {
    str::from_utf8(json).map_err(|error| invalid_row(&error))
}

fn invalid_row(error: &dyn std::fmt::Display) -> StoreError {
    StoreError::Broken(format!("stored row is not a valid batch: {error}"))
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
