//! Exports as text: converted while the client receives them.

use std::sync::Arc;

use axum::body::Body;
use batchscan_formats::Format;
use batchscan_formats::write::{Columns, CsvStyle, TextWriter};
use batchscan_model::{Batch, RawBatch};
use batchscan_store::{ArrayBody, ArrayChunks, ArrayError, Caller, StoreError};
use bytes::Bytes;
use futures_util::stream;

use super::app::App;
use super::batches::{Reserved, STREAM_BYTES, reserve};
use super::error::ApiError;
use crate::budget::Reservation;
use crate::clock::Clock;

/// The memory of a stream: a chunk of the array, and what it is converted to.
pub(super) const EXPORT_BYTES: usize = 2 * STREAM_BYTES;

/// Converts the array whole or chunk by chunk.
pub(super) fn body(app: &App, caller: &Caller, format: Format, array: ArrayBody) -> Result<Body, ApiError> {
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
