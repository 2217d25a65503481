//! The handle on the file: reader threads, the writer thread, and how jobs reach them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use batchscan_model::{OrgId, UtcInstant};
use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::audit;
use super::file_identity::FileIdentity;
use super::open;
use super::threads::Threads;
use crate::audit::{Actor, Change};
use crate::errors::{AdminError, OpenError, StoreError};
use crate::shares::Shares;
use crate::types::OpenOptions;

/// Reader threads. More than the cores of a small machine, so that a slow disk read does not stop the others.
const READERS: usize = 5;
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
    reader_shares: Arc<Shares>,
    writer: Arc<Threads>,
    actor: Arc<Actor>,
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
            reader_shares: Arc::new(Shares::new(READERS)),
            writer: Arc::new(Threads::start("writer", vec![writer], WRITES_QUEUED_MAX)),
            actor: Arc::new(Actor::of_process()),
            path,
        })
    }

    /// Runs a request's read on a reader thread.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        in_time(self.run(job)).await
    }

    /// The same for an organisation, which can use only some of the readers at a time.
    pub(super) async fn read_for<T: Send + 'static>(
        &self,
        org: OrgId,
        job: impl FnOnce(&mut Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        in_time(async {
            let _share = self.reader_shares.acquire(org).await;
            self.run(job).await
        })
        .await
    }

    async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.identity.check()?;
        let job = move |connection: &mut Connection| {
            let done = job(connection);
            if matches!(done, Err(StoreError::Unreadable(_) | StoreError::Broken(_))) {
                // What was read wrongly once must not stay in memory.
                let _ = connection.execute_batch("PRAGMA shrink_memory");
            }
            done
        };
        self.readers.run(job).await?
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
        let job = |connection: &mut Connection| {
            let done = job(connection);
            if matches!(done, Err(AdminError::DiskFull)) {
                // The log keeps its size otherwise, and the disk stays full as long as a service has the file open.
                let _ = connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)");
            }
            done
        };
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

    /// The same with an entry in the audit log for each change that the job returns.
    pub(super) async fn change_audited<T: Send + 'static>(
        &self,
        now: UtcInstant,
        job: impl FnOnce(&Transaction<'_>) -> Result<(T, Vec<Change>), AdminError> + Send + 'static,
    ) -> Result<T, AdminError> {
        let actor = self.actor();
        self.change(move |transaction| {
            let (done, changes) = job(transaction)?;
            audit::insert(transaction, &actor, now, &changes)?;
            Ok(done)
        })
        .await
    }

    pub(crate) fn acting_as(&self, actor: Actor) -> Self {
        Self { actor: Arc::new(actor), ..self.clone() }
    }

    pub(super) fn actor(&self) -> Arc<Actor> {
        Arc::clone(&self.actor)
    }
}

async fn in_time<T>(read: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    let late = |_| StoreError::Unreachable(format!("no reader was free for {} s", READ_TIMEOUT.as_secs()));
    tokio::time::timeout(READ_TIMEOUT, read).await.map_err(late)?
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::types::OpenOptions;

    #[tokio::test]
    async fn an_organisation_that_reads_slowly_leaves_readers_for_others() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&folder.path().join("a.db"), OpenOptions::CREATE).await.unwrap();
        let mut releases = Vec::new();
        let slow: Vec<_> = (0..READERS)
            .map(|_| {
                let (release, released) = mpsc::channel::<()>();
                releases.push(release);
                let store = store.clone();
                tokio::spawn(
                    async move { store.read_for(OrgId(1), move |_| Ok(released.recv().is_ok())).await },
                )
            })
            .collect();
        tokio::task::yield_now().await;
        assert_eq!(store.read_for(OrgId(2), |_| Ok(7)).await.unwrap(), 7);
        drop(releases);
        for read in slow {
            read.await.unwrap().unwrap();
        }
    }
}
