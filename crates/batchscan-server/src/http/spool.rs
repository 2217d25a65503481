//! Exports that are written to a temporary file and then sent, because their writers need the whole file.

use std::fs::File;
use std::io::Seek;
use std::sync::Arc;

use axum::body::Body;
use batchscan_formats::write::{BoxError, Columns, write_parquet, write_xlsx};
use batchscan_model::{Batch, Invalid, Reason};
use batchscan_store::{ArrayBody, ArrayError, Caller};
use bytes::Bytes;
use futures_util::stream;
use tokio::io::AsyncReadExt;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::app::App;
use super::batches::{Reserved, STREAM_BYTES, reserve};
use super::error::{ApiError, Cause};
use super::export::{EXPORT_BYTES, ExportFormat, split_batch, to_text};
use super::shares::Share;
use crate::budget::Reservation;
use crate::in_flight::ResponseInFlight;

/// Temporary files at the same time. Bounds the disk space.
pub(super) const SPOOLS_MAX: usize = 4;
/// Memory while a file is written: a row group of Parquet.
const WRITER_BYTES: usize = 16 * 1024 * 1024;

/// Writes the file in a thread, then returns a body that sends it, and its length.
pub(super) async fn body(
    app: App,
    caller: Caller,
    format: ExportFormat,
    array: ArrayBody,
    progress: Option<Arc<ResponseInFlight>>,
) -> Result<(Body, u64), ApiError> {
    let share = app.spools.take(caller.org);
    let share =
        share.ok_or_else(|| ApiError::Unavailable(Cause::new("too many exports at the same time")))?;
    let memory = reserve(&app, &caller, WRITER_BYTES)?;
    let (sender, written) = oneshot::channel();
    let (runtime, writer) = (Handle::current(), app.clone());
    tokio::task::spawn_blocking(move || {
        let is_cancelled = &|| sender.is_closed();
        let (chunk, at, bytes) = (String::new(), 0, 0);
        let app = &writer;
        let file = write(Source { app, array, runtime, progress, is_cancelled, chunk, at, bytes }, format);
        drop(memory);
        // Fails if the client has disconnected.
        let _ = sender.send(file.map(|file| (file, share)));
    });
    let panicked = |_| ApiError::Internal(Cause::new("the writer of an export panicked"));
    let (file, share) = written.await.map_err(panicked)??;
    let length = file.metadata().map_err(|error| unwritable(&error))?.len();
    let reservation = Arc::new(reserve(&app, &caller, EXPORT_BYTES)?);
    let file = SpooledFile { file: tokio::fs::File::from_std(file), app, caller, reservation, _share: share };
    Ok((Body::from_stream(stream::try_unfold(file, SpooledFile::next)), length))
}

/// Writes all batches to an unnamed file.
fn write(mut source: Source<'_>, format: ExportFormat) -> Result<File, ApiError> {
    let temp_dir = source.app.config.temp_dir.clone();
    let mut file = tempfile::tempfile_in(&temp_dir).map_err(|error| unwritable(&error))?;
    let copy = file.try_clone().map_err(|error| unwritable(&error))?;
    let mut failed = None;
    let mut batches = std::iter::from_fn(|| {
        let batch = source.next_batch().map_err(|error| {
            failed = Some(error);
            BoxError::from("cannot read the batches")
        });
        batch.transpose()
    });
    let written = match format {
        ExportFormat::Xlsx => write_xlsx(&mut batches, &Columns::All, copy, &temp_dir),
        _ => write_parquet(&mut batches, &Columns::All, copy),
    };
    match (written.and_then(|_| Ok(file.rewind()?)), failed) {
        (Ok(()), _) => Ok(file),
        (Err(_), Some(error)) => Err(error),
        (Err(error), None) => Err(unwritable(&error)),
    }
}

/// A full disk, for example. It is reported to the operator by the log.
fn unwritable(error: &dyn std::fmt::Display) -> ApiError {
    ApiError::Unavailable(Cause::new(&format!("cannot write the temporary file of an export: {error}")))
}

/// Reads the batches of an array in a thread.
struct Source<'s> {
    app: &'s App,
    array: ArrayBody,
    runtime: Handle,
    progress: Option<Arc<ResponseInFlight>>,
    is_cancelled: &'s dyn Fn() -> bool,
    /// The current chunk, and where its next batch begins.
    chunk: String,
    at: usize,
    /// Of all chunks.
    bytes: u64,
}

impl Source<'_> {
    fn next_batch(&mut self) -> Result<Option<Batch>, ApiError> {
        loop {
            if let Some((batch, _, rest)) = split_batch(&self.chunk[self.at..])? {
                self.at = self.chunk.len() - rest.len();
                return Ok(Some(batch));
            }
            if !self.read_chunk()? {
                return Ok(None);
            }
        }
    }

    /// Returns whether there was one more.
    fn read_chunk(&mut self) -> Result<bool, ApiError> {
        if (self.is_cancelled)() {
            return Err(ApiError::Internal(Cause::new("the client disconnected")));
        }
        if let Some(progress) = &self.progress {
            // The client is not the one that keeps the other waiting.
            progress.note_progress();
        }
        let chunk = match &mut self.array {
            ArrayBody::Whole(chunk) => Some(std::mem::take(chunk)).filter(|chunk| !chunk.is_empty()),
            ArrayBody::Chunks(chunks) => self.runtime.block_on(chunks.next(self.app.clock.now()))?,
        };
        let Some(chunk) = chunk else { return Ok(false) };
        self.bytes += chunk.len() as u64;
        if self.bytes > self.app.config.spool_bytes_max {
            return Err(ApiError::InvalidQuery(Invalid::query("start_date", Reason::TooManyBatches)));
        }
        (self.chunk, self.at) = (to_text(&chunk)?.to_owned(), 0);
        Ok(true)
    }
}

/// A temporary file that is being sent.
struct SpooledFile {
    file: tokio::fs::File,
    app: App,
    caller: Caller,
    reservation: Arc<Reservation>,
    _share: Share,
}

impl SpooledFile {
    /// The next bytes. The credential is checked for each chunk, as in v1.
    async fn next(mut self) -> Result<Option<(Bytes, Self)>, BoxError> {
        let version = self.app.store.data_version(&self.caller, self.app.clock.now()).await;
        version.map_err(ArrayError::Store)?.ok_or(ArrayError::Revoked)?;
        let mut chunk = Vec::with_capacity(STREAM_BYTES);
        self.file.read_buf(&mut chunk).await?;
        let chunk = Some(chunk).filter(|chunk| !chunk.is_empty());
        Ok(chunk.map(|chunk| (Reserved::bytes(chunk.into(), self.reservation.clone()), self)))
    }
}
