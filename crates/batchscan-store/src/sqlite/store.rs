//! The handle on the file: reader threads, the writer thread, and how jobs reach them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use batchscan_model::OrgId;
use rusqlite::Connection;

use super::file_identity::FileIdentity;
use super::known::KnownVersions;
use super::open::{self, WRITE_LOCK_TIMEOUT};
use super::sql::{SqliteSql, block_on};
use super::threads::Threads;
use crate::errors::{AdminError, OpenError, StoreError};
use crate::shares::Shares;
use crate::sql::{Columns, Sql, Value};
use crate::store::End;
use crate::types::{Freshness, OpenOptions};

/// Reader threads. More than the cores of a small machine, so that a slow disk read does not stop the others.
const READERS: usize = 5;
/// Jobs that may wait for a reader. More would miss their deadline.
const READS_QUEUED_MAX: usize = 4_096;
/// Jobs that may wait for the writer.
const WRITES_QUEUED_MAX: usize = 64;
/// How long a request may wait for its read: a response takes at most 5 s (decision 028).
const READ_TIMEOUT: Duration = Duration::from_secs(4);
/// How long a change that is not important waits for another writer.
const QUICK_LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// The store on one SQLite file.
#[derive(Clone, Debug)]
pub(crate) struct SqliteStore {
    pub(super) path: PathBuf,
    pub(super) identity: Arc<FileIdentity>,
    pub(super) known: Arc<KnownVersions>,
    readers: Arc<Threads>,
    reader_shares: Arc<Shares>,
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
        let known =
            KnownVersions::new(open::reader(&path)?).map_err(|error| OpenError::Other(error.to_string()))?;
        Ok(Self {
            identity: Arc::new(FileIdentity::new(&path)),
            known: Arc::new(known),
            readers: Arc::new(Threads::start("reader", readers, READS_QUEUED_MAX)),
            reader_shares: Arc::new(Shares::new(READERS)),
            writer: Arc::new(Threads::start("writer", vec![writer], WRITES_QUEUED_MAX)),
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

    /// The rows of one statement for a request.
    pub(crate) async fn read_rows<T: Send + 'static>(
        &self,
        _: Freshness,
        statement: &str,
        values: &[Value<'_>],
        map: fn(&dyn Columns) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let statement = statement.to_owned();
        let values: Vec<_> = values.iter().cloned().map(Value::into_owned).collect();
        self.read(move |connection| {
            let sql: &mut dyn Sql = &mut SqliteSql::new(connection);
            Ok(block_on(sql.all(&statement, &values, map))?)
        })
        .await
    }

    /// Runs an operator's read on a reader thread, without a timeout.
    pub(crate) async fn snapshot<T: Send + 'static>(
        &self,
        work: impl AsyncFnOnce(&mut (dyn Sql + '_)) -> Result<T, AdminError> + Send + 'static,
    ) -> Result<T, AdminError> {
        self.read_slowly(move |connection| {
            let snapshot = Transaction::begin(connection, "BEGIN")?;
            block_on(work(&mut SqliteSql::new(snapshot.0)))
        })
        .await
    }

    /// Runs a job on a reader thread, without a timeout.
    pub(super) async fn read_slowly<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Connection) -> Result<T, AdminError> + Send + 'static,
    ) -> Result<T, AdminError> {
        self.identity.check()?;
        self.readers.run(job).await?
    }

    /// Runs a transaction on the writer thread, without a timeout.
    pub(crate) async fn transaction<T: Send + 'static>(
        &self,
        work: impl AsyncFnOnce(&mut (dyn Sql + '_)) -> Result<End<T>, AdminError> + Send + 'static,
    ) -> Result<T, AdminError> {
        let identity = self.identity.clone();
        self.writer.run(move |connection| change(connection, &identity, work)).await?
    }

    /// An import can hold the lock for long, and a shutdown must not wait for that.
    pub(crate) async fn change_quickly<T: Send + 'static>(
        &self,
        work: impl AsyncFnOnce(&mut (dyn Sql + '_)) -> Result<End<T>, AdminError> + Send + 'static,
    ) -> Result<T, AdminError> {
        let identity = self.identity.clone();
        let job = move |connection: &mut Connection| {
            connection.busy_timeout(QUICK_LOCK_TIMEOUT)?;
            let changed = change(connection, &identity, work);
            connection.busy_timeout(WRITE_LOCK_TIMEOUT)?;
            changed
        };
        self.writer.run(job).await?
    }
}

fn change<T>(
    connection: &mut Connection,
    identity: &FileIdentity,
    work: impl AsyncFnOnce(&mut (dyn Sql + '_)) -> Result<End<T>, AdminError>,
) -> Result<T, AdminError> {
    let run = |connection: &mut Connection| {
        let transaction = Transaction::begin(connection, "BEGIN IMMEDIATE")?;
        match block_on(work(&mut SqliteSql::new(transaction.0)))? {
            End::Commit(done) => {
                identity.check_now()?;
                transaction.0.execute_batch("COMMIT")?;
                Ok(done)
            }
            End::RollBack(done) => Ok(done),
        }
    };
    let done = run(connection);
    if matches!(done, Err(AdminError::DiskFull)) {
        // The log keeps its size otherwise, and the disk stays full as long as a service has the file open.
        let _ = connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)");
    }
    done
}

/// A transaction that is rolled back when it is dropped, unless it was committed. Unlike that of `rusqlite`, it can be sent
/// between threads.
struct Transaction<'c>(&'c mut Connection);

impl<'c> Transaction<'c> {
    fn begin(connection: &'c mut Connection, begin: &str) -> rusqlite::Result<Self> {
        connection.execute_batch(begin)?;
        Ok(Self(connection))
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if !self.0.is_autocommit() {
            let _ = self.0.execute_batch("ROLLBACK");
        }
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
