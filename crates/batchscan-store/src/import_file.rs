//! Imports one file: a thread reads and validates it while the store writes.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use batchscan_formats::Format;
use batchscan_formats::read::{Input, ReadError, read};
use batchscan_model::Batch;
use tokio::sync::mpsc;

use crate::errors::AdminError;
use crate::store::Store;
use crate::types::{ImportCounts, ImportRow, ImportStep};

/// Batches per [`ImportStep`].
const ROWS_PER_STEP: usize = 256;
/// The maximum number of queued steps, which bounds the memory of an import.
const STEPS_QUEUED_MAX: usize = 8;

/// Why a file was not imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file cannot be read or is invalid.
    #[error(transparent)]
    File(#[from] ReadError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] AdminError),
}

/// Imports one file in one transaction, or rolls it back after a dry run. `bytes_read` counts the progress.
pub async fn import_file(
    store: &Store,
    org: &str,
    (format, input): (Format, Input),
    dry_run: bool,
    bytes_read: Arc<AtomicU64>,
) -> Result<ImportCounts, ImportError> {
    let counter = bytes_read.clone();
    let input = tokio::task::spawn_blocking(move || spool(input, &counter)).await;
    let input = input.unwrap_or_else(|stopped| Err(std::io::Error::other(stopped))).map_err(ReadError::Io)?;
    let (steps, rows) = mpsc::channel(STEPS_QUEUED_MAX);
    let reading = tokio::task::spawn_blocking(move || send_file(format, input, dry_run, &bytes_read, &steps));
    let stored = store.import(org, rows).await;
    let sent = reading.await.unwrap_or_else(|stopped| Err(ReadError::Io(std::io::Error::other(stopped))));
    match (sent, stored) {
        // The store failed first, and has the reason.
        (Err(ReadError::Stopped), Err(error)) => Err(error.into()),
        (Err(error), _) => Err(error.into()),
        (Ok(()), stored) => Ok(stored?),
    }
}

/// Copies a stream to a temporary file first: a slow pipe must not hold the write lock.
fn spool(input: Input, bytes_read: &AtomicU64) -> std::io::Result<Input> {
    let Input::Stream(stream) = input else { return Ok(input) };
    let mut stream = Counted { stream, bytes_read };
    let mut file: File = tempfile::tempfile().map_err(|error| no_space(&error))?;
    std::io::copy(&mut stream, &mut file).map_err(|error| match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => no_space(&error),
        _ => error,
    })?;
    file.seek(SeekFrom::Start(0))?;
    bytes_read.store(0, Ordering::Relaxed);
    Ok(Input::File(file))
}

/// A stream that counts the bytes read.
struct Counted<'a> {
    stream: Box<dyn Read + Send>,
    bytes_read: &'a AtomicU64,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let bytes = self.stream.read(buffer)?;
        self.bytes_read.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(bytes)
    }
}

fn no_space(error: &std::io::Error) -> std::io::Error {
    let folder = std::env::temp_dir();
    let what = format!("the temporary folder {} has no space for it ({error}): set TMPDIR", folder.display());
    std::io::Error::new(error.kind(), what)
}

/// Sends the whole file, then the step that ends the transaction. Without that step the store rolls back.
fn send_file(
    format: Format,
    input: Input,
    dry_run: bool,
    bytes_read: &AtomicU64,
    steps: &mpsc::Sender<ImportStep>,
) -> Result<(), ReadError> {
    let mut chunk = Vec::with_capacity(ROWS_PER_STEP);
    read(format, input, bytes_read, &mut |batch: Batch, json| {
        chunk.push(ImportRow { position: batch.position(), json });
        if chunk.len() < ROWS_PER_STEP {
            return ControlFlow::Continue(());
        }
        let full = std::mem::replace(&mut chunk, Vec::with_capacity(ROWS_PER_STEP));
        steps.blocking_send(ImportStep::Rows(full)).map_or(ControlFlow::Break(()), ControlFlow::Continue)
    })?;
    let last_step = if dry_run { ImportStep::DryRun } else { ImportStep::Commit };
    [ImportStep::Rows(chunk), last_step]
        .into_iter()
        .try_for_each(|step| steps.blocking_send(step))
        .map_err(|_| ReadError::Stopped)
}
