//! Carries one file into the store: a thread reads and judges it while the store takes over what is read.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use batchscan_model::Batch;
use tokio::sync::mpsc;

use crate::{AdminError, ImportCounts, ImportRow, ImportStep, Store};
use batchscan_formats::Format;
use batchscan_formats::read::{Input, ReadError, read};

/// Batches handed to the store at once.
const ROWS_PER_STEP: usize = 256;
/// Steps on their way to the store: with this the memory of an import is bounded.
const STEPS_WAITING_MAX: usize = 8;

/// Why nothing of a file was kept.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file cannot be read, or holds something else than batches.
    #[error(transparent)]
    File(#[from] ReadError),
    /// The store did not take it.
    #[error(transparent)]
    Store(#[from] AdminError),
}

/// Imports one file in one transaction, or tries it out. `bytes_read` tells how far it is.
pub async fn import_file(
    store: &Store,
    org: &str,
    (format, input): (Format, Input),
    dry_run: bool,
    bytes_read: Arc<AtomicU64>,
) -> Result<ImportCounts, ImportError> {
    let counting = bytes_read.clone();
    let input = tokio::task::spawn_blocking(move || spooled(input, &counting)).await;
    let input = input.unwrap_or_else(|stopped| Err(std::io::Error::other(stopped))).map_err(ReadError::Io)?;
    let (steps, rows) = mpsc::channel(STEPS_WAITING_MAX);
    let reading = tokio::task::spawn_blocking(move || feed(format, input, dry_run, &bytes_read, &steps));
    let stored = store.import(org, rows).await;
    let fed = reading.await.unwrap_or_else(|stopped| Err(ReadError::Io(std::io::Error::other(stopped))));
    match (fed, stored) {
        // The store ended first, and it says why.
        (Err(ReadError::Stopped), Err(error)) => Err(error.into()),
        (Err(error), _) => Err(error.into()),
        (Ok(()), stored) => Ok(stored?),
    }
}

/// A stream is kept in a temporary file first: a slow pipe must not hold the database's write lock.
fn spooled(input: Input, bytes_read: &AtomicU64) -> std::io::Result<Input> {
    let Input::Stream(stream) = input else { return Ok(input) };
    let mut stream = Counted { stream, bytes_read };
    let mut file: File = tempfile::tempfile().map_err(|error| no_room(&error))?;
    std::io::copy(&mut stream, &mut file).map_err(|error| match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => no_room(&error),
        _ => error,
    })?;
    file.seek(SeekFrom::Start(0))?;
    bytes_read.store(0, Ordering::Relaxed);
    Ok(Input::File(file))
}

/// A stream that tells how far it was read.
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

fn no_room(error: &std::io::Error) -> std::io::Error {
    let folder = std::env::temp_dir();
    let what = format!("the temporary folder {} cannot hold it ({error}): set TMPDIR", folder.display());
    std::io::Error::new(error.kind(), what)
}

/// Reads the whole file, and gives the verdict last. Without it the store keeps nothing.
fn feed(
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
    let verdict = if dry_run { ImportStep::DryRun } else { ImportStep::Commit };
    let last = [ImportStep::Rows(chunk), verdict];
    last.into_iter().try_for_each(|step| steps.blocking_send(step)).map_err(|_| ReadError::Stopped)
}
