//! Exports that are written to a temporary file and then sent, because their writers need the whole file.

use std::fs::File;
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::sync::Arc;

use axum::body::Body;
use batchscan_formats::Format;
use batchscan_formats::write::{BoxError, Columns, write_file};
use batchscan_model::{Batch, Invalid, Reason};
use batchscan_store::{ArrayBody, ArrayError, Caller};
use bytes::Bytes;
use futures_util::stream;
use tokio::io::AsyncReadExt;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::app::App;
use super::batches::{Reserved, STREAM_BYTES, reserve};
use super::error::ApiError;
use super::export_text::{EXPORT_BYTES, split_batch, to_text};
use crate::budget::Reservation;
use crate::spool::{Claim, Held, SpoolFile};

/// The temporary files of an Excel writer, as a multiple of the JSON text.
const SHEETS_PER_JSON: u64 = 2;
/// Memory while a file is written: a row group of Parquet.
const WRITER_BYTES: usize = 16 * 1024 * 1024;

/// Writes the file in a thread, then returns a body that sends it, and its length.
pub(super) async fn body(
    app: App,
    caller: Caller,
    format: Format,
    array: ArrayBody,
) -> Result<(Body, u64), ApiError> {
    let slot = app.exports.acquire(caller.org);
    let slot = slot.ok_or_else(|| ApiError::unavailable("too many exports at the same time"))?;
    let memory = reserve(&app, &caller, WRITER_BYTES)?;
    let (sender, written) = oneshot::channel();
    let (runtime, writer) = (Handle::current(), app.clone());
    tokio::task::spawn_blocking(move || {
        let is_cancelled = &|| sender.is_closed();
        let sheets = (format == Format::Xlsx).then(|| writer.spool.claim(slot.org()));
        let (chunk, at, bytes) = (String::new(), 0, 0);
        let source = Source { app: &writer, array, runtime, is_cancelled, sheets, chunk, at, bytes };
        let file = writer.spool.create(slot, 0).map_err(|error| unwritable(&error));
        let file = file.and_then(|file| write(source, file, format));
        drop(memory);
        // Fails if the client has disconnected.
        let _ = sender.send(file);
    });
    let panicked = |_| ApiError::internal("the writer of an export panicked");
    let (file, held) = written.await.map_err(panicked)??;
    let length = file.metadata().map_err(|error| unwritable(&error))?.len();
    let reservation = Arc::new(reserve(&app, &caller, EXPORT_BYTES)?);
    let file = tokio::fs::File::from_std(file);
    let file = SpooledFile { file, app, caller, reservation, _held: held };
    Ok((Body::from_stream(stream::try_unfold(file, SpooledFile::next)), length))
}

/// Writes all batches to a file.
fn write(mut source: Source<'_>, mut file: SpoolFile, format: Format) -> Result<(File, Held), ApiError> {
    let app = source.app;
    let output = Output { file: &mut file, is_cancelled: source.is_cancelled };
    let mut failed = None;
    let mut batches = std::iter::from_fn(|| {
        let batch = source.next_batch().map_err(|error| {
            failed = Some(error);
            BoxError::from("cannot read the batches")
        });
        batch.transpose()
    });
    let written = write_file(format, &mut batches, &Columns::All, output, &app.config.temp_dir);
    match (written, failed) {
        (Ok(_), _) => file.finish().map_err(|error| unwritable(&error)),
        (Err(_), Some(error)) => Err(error),
        (Err(error), None) => Err(unwritable(&error)),
    }
}

/// The file of an export. Fails when the client has disconnected: the end of an Excel file can take long.
struct Output<'s> {
    file: &'s mut SpoolFile,
    is_cancelled: &'s (dyn Fn() -> bool + Sync),
}

impl Write for Output<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match (self.is_cancelled)() {
            true => Err(ErrorKind::ConnectionAborted.into()),
            false => self.file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for Output<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// A full disk, for example. It is reported to the operator by the log.
fn unwritable(error: &dyn std::fmt::Display) -> ApiError {
    ApiError::unavailable(&format!("cannot write the temporary file of an export: {error}"))
}

/// Reads the batches of an array in a thread.
struct Source<'s> {
    app: &'s App,
    array: ArrayBody,
    runtime: Handle,
    is_cancelled: &'s (dyn Fn() -> bool + Sync),
    /// The space of the Excel writer's own files.
    sheets: Option<Claim>,
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
            return Err(ApiError::internal("the client disconnected"));
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
        if let Some(sheets) = &mut self.sheets {
            sheets.grow(chunk.len() as u64 * SHEETS_PER_JSON).map_err(|error| unwritable(&error))?;
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
    _held: Held,
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
