//! The store on one SQLite file. Any number of processes of one machine may have it open.
//!
//! Readers and the writer are threads of their own, each with its own connection: nothing of SQLite ever runs on
//! the async runtime. A reader takes one short job at a time, so that four slow streams starve nobody.

mod care;
mod credentials;
mod dump;
mod import;
mod open;
mod organisations;
mod packs;
mod pages;
mod same_file;
mod threads;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode};

use super::{AdminError, OpenError, Opening, StoreError};
use same_file::SameFile;
use threads::Threads;

/// Reader threads. More than the cores of a small machine, so that one slow disk read does not stop the others.
const READERS: usize = 4;
/// Jobs that may wait for a reader: past this the answer would come too late anyway.
const READS_WAITING_MAX: usize = 4_096;
/// Jobs that may wait for the writer.
const WRITES_WAITING_MAX: usize = 64;
/// How long a request may wait for its read (decision 028: answered within 5 s).
const READ_WAIT: Duration = Duration::from_secs(4);
/// How long a command waits for another process that writes: an import of a million batches takes seconds.
const WRITE_LOCK_WAIT: Duration = Duration::from_secs(60);

/// The store on one SQLite file.
#[derive(Clone, Debug)]
pub struct SqliteStore {
    path: PathBuf,
    file: Arc<SameFile>,
    readers: Arc<Threads>,
    writer: Arc<Threads>,
}

impl SqliteStore {
    pub(super) async fn open(path: &Path, opening: Opening) -> Result<Self, OpenError> {
        let path = path.to_owned();
        let opened = tokio::task::spawn_blocking(move || Self::open_now(path, opening)).await;
        opened.unwrap_or_else(|stopped| Err(OpenError::Other(stopped.to_string())))
    }

    fn open_now(path: PathBuf, opening: Opening) -> Result<Self, OpenError> {
        // The writer comes first: it makes the file, and keeps the shared memory that read-only connections need.
        let writer = open::writer(&path, opening)?;
        let readers = (0..READERS).map(|_| open::reader(&path)).collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            file: Arc::new(SameFile::new(&path)),
            readers: Arc::new(Threads::start("reader", readers, READS_WAITING_MAX)),
            writer: Arc::new(Threads::start("writer", vec![writer], WRITES_WAITING_MAX)),
            path,
        })
    }

    pub(super) async fn ping(&self) -> Result<(), StoreError> {
        self.read(|connection| connection.query_row("SELECT count(*) FROM organisation", [], |_| Ok(())))
            .await
    }

    /// Runs a short read on a reader thread, and gives up waiting in time for a 503.
    async fn read<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.file.check()?;
        match tokio::time::timeout(READ_WAIT, self.readers.run(job)).await {
            Ok(done) => done?.map_err(|error| store_error(&error)),
            Err(_) => {
                Err(StoreError::Unreachable(format!("no reader was free for {} s", READ_WAIT.as_secs())))
            }
        }
    }

    /// Runs an operator's job on a reader thread, however long it takes.
    async fn read_at_leisure<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Connection) -> Result<T, AdminError> + Send + 'static,
    ) -> Result<T, AdminError> {
        self.readers.run(job).await?
    }

    /// Runs a job on the writer thread, however long it takes.
    async fn write<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Connection) -> Result<T, AdminError> + Send + 'static,
    ) -> Result<T, AdminError> {
        self.writer.run(job).await?
    }
}

/// What SQLite says, sorted into what may pass by itself and what will not.
fn store_error(error: &rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(
            ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::CannotOpen
            | ErrorCode::SystemIoFailure
            | ErrorCode::DiskFull
            | ErrorCode::OutOfMemory
            | ErrorCode::ReadOnly
            | ErrorCode::PermissionDenied,
        ) => StoreError::Unreachable(error.to_string()),
        _ => StoreError::Broken(error.to_string()),
    }
}

/// The same for commands, which can tell a person what to do.
impl From<rusqlite::Error> for AdminError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => AdminError::Busy,
            Some(ErrorCode::DiskFull) => AdminError::DiskFull,
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
                AdminError::ReadOnly(error.to_string())
            }
            _ => AdminError::Store(store_error(&error)),
        }
    }
}
