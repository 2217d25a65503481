//! Connections to the SQLite file, and its queries. SQLite never runs on the async runtime's threads.

use std::path::Path;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};

use crate::batch::{Batch, COLUMNS};

/// Enough for the cores of a small machine while some wait for the disk.
const CONNECTIONS: u32 = 8;
/// How long a request may wait for a connection.
const CONNECTION_WAIT: Duration = Duration::from_secs(4);
/// Size of the memory map: larger than the benchmark's file.
const MAPPED_BYTES: i64 = 2 << 30;

/// A pool of read-only connections.
#[derive(Clone)]
pub(crate) struct Database {
    idle: Receiver<Connection>,
    returned: Sender<Connection>,
}

/// Why a query failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DatabaseError {
    #[error("timed out waiting for a connection")]
    Busy,
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error(transparent)]
    Stopped(#[from] tokio::task::JoinError),
}

/// A stored client.
pub(crate) struct Client {
    pub(crate) secret_hash: String,
    pub(crate) organisation: String,
}

/// A range of the batch order, in microseconds and batch ids.
pub(crate) struct Range {
    /// All batches come after this position.
    pub(crate) after: (i64, String),
    /// The last instant.
    pub(crate) end: i64,
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

    /// Finds a client by its id.
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

    /// The first batches of a range, in order.
    pub(crate) async fn batches(
        &self,
        organisation: String,
        range: Range,
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
            let values = params![organisation, range.end, range.after.0, range.after.1, limit];
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
            // Never blocks: the channel has room for all connections.
            pool.returned.send(connection).map_err(|_| DatabaseError::Busy)?;
            done.map_err(DatabaseError::from)
        });
        done.await?
    }
}
