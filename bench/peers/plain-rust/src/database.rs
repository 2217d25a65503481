//! Connections to the SQLite file, and its queries. Nothing of SQLite runs on the async runtime's own threads.

use std::path::Path;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};

use crate::batch::{Batch, COLUMNS};
use crate::filters::Filters;

/// Enough for the cores of a small machine while some wait for the disk.
const CONNECTIONS: u32 = 8;
/// How long a request may wait for a connection.
const CONNECTION_WAIT: Duration = Duration::from_secs(4);
/// What is read through the memory map rather than by calls: more than the file of the benchmark.
const MAPPED_BYTES: i64 = 2 << 30;

/// A pool of connections that only read.
#[derive(Clone)]
pub(crate) struct Database {
    idle: Receiver<Connection>,
    returned: Sender<Connection>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DatabaseError {
    #[error("no connection was free in time")]
    Busy,
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error(transparent)]
    Stopped(#[from] tokio::task::JoinError),
}

/// A client as it is stored.
pub(crate) struct Client {
    pub(crate) secret_hash: String,
    pub(crate) organisation: String,
}

impl Database {
    /// Opens all connections.
    pub(crate) fn open(path: &Path) -> Result<Self, DatabaseError> {
        let (returned, idle) = bounded(CONNECTIONS as usize);
        for _ in 0..CONNECTIONS {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let connection = Connection::open_with_flags(path, flags)?;
            connection.pragma_update(None, "mmap_size", MAPPED_BYTES)?;
            returned.send(connection).map_err(|_| DatabaseError::Busy)?;
        }
        Ok(Self { idle, returned })
    }

    /// The client of an id.
    pub(crate) async fn client(&self, id: String) -> Result<Option<Client>, DatabaseError> {
        self.run(move |connection| {
            let sql = "SELECT client_secret_hash, organisation FROM clients WHERE client_id = ?1";
            let found = connection
                .prepare_cached(sql)?
                .query_row([id], |row| Ok(Client { secret_hash: row.get(0)?, organisation: row.get(1)? }));
            found.optional()
        })
        .await
    }

    /// At most so many batches in order: within the dates, and after the cursor's batch if there is one.
    pub(crate) async fn batches(
        &self,
        organisation: String,
        filters: Filters,
        limit: u32,
    ) -> Result<Vec<Batch>, DatabaseError> {
        self.run(move |connection| {
            let sql = format!(
                "SELECT {COLUMNS} FROM batches
                 WHERE organisation = ?1 AND batch_creation_date <= ?2
                   AND (batch_creation_date, batch_id) > (?3, ?4)
                 ORDER BY batch_creation_date, batch_id LIMIT ?5"
            );
            let mut statement = connection.prepare_cached(&sql)?;
            let (after, after_id) = filters.after();
            let values = params![organisation, filters.end(), after, after_id, limit];
            let mut batches = Vec::new();
            for batch in statement.query_map(values, Batch::from_row)? {
                batches.push(batch?);
            }
            Ok(batches)
        })
        .await
    }

    async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, DatabaseError> {
        let pool = self.clone();
        let done = tokio::task::spawn_blocking(move || {
            let connection = pool.idle.recv_timeout(CONNECTION_WAIT).map_err(|_| DatabaseError::Busy)?;
            let done = job(&connection);
            // There is room for every connection there is.
            pool.returned.send(connection).map_err(|_| DatabaseError::Busy)?;
            done.map_err(DatabaseError::from)
        });
        done.await?
    }
}
