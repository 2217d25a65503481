//! Imports one file: a thread reads and validates it while the store writes.

use std::fs::File;
use std::io::{Read, Seek};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use batchscan_formats::Format;
use batchscan_formats::read::{LocatedError, ReadError, ReadOptions, read};
use batchscan_model::{Batch, UtcInstant};
use ring::digest::{Context, SHA256};
use tokio::sync::mpsc;

use crate::errors::AdminError;
use crate::imports::{ImportResult, ImportSource};
use crate::store::Store;
use crate::types::{ImportEnd, ImportRow, ImportStep};

/// Batches per [`ImportStep`].
const ROWS_PER_STEP: usize = 256;
/// The maximum number of queued steps, which bounds the memory of an import.
const STEPS_QUEUED_MAX: usize = 8;
const HASH_BUFFER_BYTES: usize = 64 * 1024;

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

/// How to import a file.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// Where it comes from.
    pub source: ImportSource,
    /// The current time.
    pub now: UtcInstant,
    /// Whether to roll back at the end.
    pub dry_run: bool,
    /// How to read it, with the settings of the organisation ([`Store::read_options`]).
    pub read: ReadOptions,
}

impl ImportOptions {
    /// A file from an unknown source, imported as it is.
    pub fn new(now: UtcInstant) -> Self {
        Self { source: ImportSource::default(), now, dry_run: false, read: ReadOptions::default() }
    }
}

/// Imports one file in one transaction, or rolls it back after a dry run. `bytes_read` counts the progress.
pub async fn import_file(
    store: &Store,
    org: &str,
    (format, file): (Format, File),
    options: ImportOptions,
    bytes_read: Arc<AtomicU64>,
) -> Result<ImportResult, ImportError> {
    let read = ReadOptions { now: Some(options.now), ..options.read };
    let options = ImportOptions { read, ..options };
    let (steps, rows) = mpsc::channel(STEPS_QUEUED_MAX);
    let source = ImportSource { id_rules: options.read.id_rules(format), ..options.source.clone() };
    let (now, dry_run) = (options.now, options.dry_run);
    let reading = tokio::task::spawn_blocking(move || send_file(format, file, &options, &bytes_read, &steps));
    let stored = store.import(org, source.clone(), rows, now).await;
    let sent = reading.await.unwrap_or_else(|stopped| Err(ReadError::Io(std::io::Error::other(stopped))));
    let imported = match (sent, stored) {
        (_, Err(AdminError::InvalidIds(error))) => Err(error.into()),
        // The store failed first, and has the reason.
        (Err(ReadError::Stopped), Err(error)) => Err(error.into()),
        // It was delivered before.
        (Err(ReadError::Stopped), Ok(replayed)) => Ok(replayed),
        (Err(error), _) => Err(error.into()),
        (Ok(()), stored) => stored.map_err(ImportError::from),
    };
    if let (Err(ImportError::File(ReadError::Invalid { errors, .. })), false) = (&imported, dry_run) {
        // The errors of the file are more important than one of this.
        let _ = store.record_rejected(org, source, texts(errors), now).await;
    }
    imported
}

fn texts(errors: &[LocatedError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

/// Sends the whole file, then the step that ends the transaction. Without that step the store rolls back.
fn send_file(
    format: Format,
    file: File,
    options: &ImportOptions,
    bytes_read: &AtomicU64,
    steps: &mpsc::Sender<ImportStep>,
) -> Result<(), ReadError> {
    let mut chunk = Vec::with_capacity(ROWS_PER_STEP);
    let mut has_number_ids = false;
    let summary = read(format, file, &options.read, bytes_read, &mut |batch: Batch, json| {
        has_number_ids = has_number_ids || batch.batch_id.as_str().bytes().all(|byte| byte.is_ascii_digit());
        chunk.push(ImportRow { position: batch.position(), json });
        if chunk.len() < ROWS_PER_STEP {
            return ControlFlow::Continue(());
        }
        let full = std::mem::replace(&mut chunk, Vec::with_capacity(ROWS_PER_STEP));
        steps.blocking_send(ImportStep::Rows(full)).map_or(ControlFlow::Break(()), ControlFlow::Continue)
    })?;
    let (warnings, messages) = (summary.warnings.count, texts(&summary.warnings.first));
    let (dry_run, missing, incomplete) = (options.dry_run, summary.missing, summary.incomplete);
    let end = ImportEnd { dry_run, warnings, messages, missing, incomplete, has_number_ids };
    [ImportStep::Rows(chunk), ImportStep::End(end)]
        .into_iter()
        .try_for_each(|step| steps.blocking_send(step))
        .map_err(|_| ReadError::Stopped)
}

/// SHA-256 of a file, which is rewound.
pub fn hash_file(file: &mut File) -> std::io::Result<[u8; 32]> {
    let mut digest = Context::new(&SHA256);
    let mut buffer = vec![0; HASH_BUFFER_BYTES];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            bytes => digest.update(&buffer[..bytes]),
        }
    }
    file.rewind()?;
    let mut hash = [0; 32];
    hash.copy_from_slice(digest.finish().as_ref());
    Ok(hash)
}
