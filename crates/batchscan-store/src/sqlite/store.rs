//! The handle on the file: reader threads, the writer thread, and how jobs reach them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::file_identity::FileIdentity;
use super::open;
use super::threads::Threads;
use crate::errors::{AdminError, OpenError, StoreError};
use crate::types::OpenOptions;

/// Reader threads. More than the cores of a small machine, so that a slow disk read does not stop the others.
const READERS: usize = 4;
/// Jobs that may wait for a reader. More would miss their deadline.
const READS_QUEUED_MAX: usize = 4_096;
/// Jobs that may wait for the writer.
const WRITES_QUEUED_MAX: usize = 64;
/// How long a request may wait for its read: a response takes at most 5 s (decision 028).
const READ_TIMEOUT: Duration = Duration::from_secs(4);

/// The store on one SQLite file.
#[derive(Clone, Debug)]
pub struct SqliteStore {
    pub(super) path: PathBuf,
    identity: Arc<FileIdentity>,
    readers: Arc<Threads>,
    writer: Arc<Threads>,
}

impl SqliteStore {
    pub(crate) async fn open(path: &Path, options: OpenOptions) -> Result<Self, OpenError> {
        let path = path.to_owned();
        let opened = tokio::task::spawn_blocking(move || Self::open_blocking(path, options)).await;
        opened.unwrap_or_else(|panicked| Err(OpenError::Other(panicked.to_string())))
    }

    fn open_blocking(path: PathBuf, options: OpenOptions) -> Result<Self, OpenError> {
        // The writer comes first: it creates the file and the shared memory that read-only connections need.
        let writer = open::writer(&path, options)?;
        let readers = (0..READERS).map(|_| open::reader(&path)).collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            identity: Arc::new(FileIdentity::new(&path)),
            readers: Arc::new(Threads::start("reader", readers, READS_QUEUED_MAX)),
            writer: Arc::new(Threads::start("writer", vec![writer], WRITES_QUEUED_MAX)),
            path,
        })
    }

    /// Runs a request's read on a reader thread.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.identity.check()?;
        match tokio::time::timeout(READ_TIMEOUT, self.readers.run(job)).await {
            Ok(done) => done?,
            Err(_) => {
                Err(StoreError::Unreachable(format!("no reader was free for {} s", READ_TIMEOUT.as_secs())))
            }
        }
    }

    /// Runs an operator's read on a reader thread, without a timeout.
    pub(super) async fn read_slowly<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Connection) -> Result<T, AdminError> + Send + 'static,
    ) -> Result<T, AdminError> {
        self.readers.run(job).await?
    }

    /// Runs a job on the writer thread, without a timeout.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Connection) -> Result<T, AdminError> + Send + 'static,
    ) -> Result<T, AdminError> {
        self.writer.run(job).await?
    }

    /// Runs a job on the writer thread in one transaction, committed if the job succeeds.
    pub(super) async fn change<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Transaction<'_>) -> Result<T, AdminError> + Send + 'static,
    ) -> Result<T, AdminError> {
        self.write(|connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let done = job(&transaction)?;
            transaction.commit()?;
            Ok(done)
        })
        .await
    }
}
