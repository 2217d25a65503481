//! A mirror in an SQLite file.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use batchscan_model::FieldValue;
use batchscan_store::platform::file_id;
use rusqlite::types::Value;
use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior, params, params_from_iter};

use super::{
    CLEAR_SEEN, Failure, MARK_SEEN, MirrorChanges, MirrorPosition, READ_POSITION, REMOVE, REMOVE_UNSEEN,
    Resync, SET_POSITION, TABLES, TABLES_COUNT, UNMARK, create_tables, put_batch,
};

/// How long to wait for readers and other writers.
const LOCK_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct SqliteMirror {
    connection: Connection,
    path: PathBuf,
    /// Device and number of the file.
    file: (u64, u64),
}

impl SqliteMirror {
    pub(super) fn open(path: &Path) -> Result<(Self, MirrorPosition), Failure> {
        // SQLite has its own meaning for some names that are not absolute, such as `:memory:`.
        let path = std::path::absolute(path)?;
        if let Some(folder) = path.parent().filter(|folder| !folder.is_dir()) {
            return Err(Failure::Other(format!("{} is not a folder; create it first", folder.display())));
        }
        if path.is_dir() {
            return Err(Failure::Other("it is a folder".to_owned()));
        }
        let mut connection = Connection::open(&path)?;
        connection.busy_timeout(LOCK_TIMEOUT)?;
        if is_empty(&connection)? {
            // Readers are not blocked while changes are written.
            connection.pragma_update(None, "journal_mode", "WAL")?;
        }
        let opening = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if is_empty(&opening)? {
            opening.execute_batch(&create_tables("TEXT", "DOUBLE PRECISION"))?;
        }
        let query = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN (?1, ?2, ?3)";
        let tables: i64 = opening.query_row(query, TABLES, |row| row.get(0))?;
        if tables != TABLES_COUNT {
            return Err(Failure::NotAMirror);
        }
        let position = opening.query_row(READ_POSITION, [], |row| {
            Ok(MirrorPosition { service: row.get(0)?, since: row.get(1)?, is_rereading: row.get(2)? })
        })?;
        opening.commit()?;
        let file = file_id(&path)?;
        Ok((Self { connection, path, file }, position))
    }

    pub(super) fn apply(
        &mut self,
        changes: &MirrorChanges,
        since: &str,
        next: &MirrorPosition,
        resync: Resync,
    ) -> Result<u64, Failure> {
        // SQLite keeps writing to a file that was deleted.
        if file_id(&self.path).ok() != Some(self.file) {
            return Err(Failure::Other("the file was deleted or replaced; run it again".to_owned()));
        }
        let writing = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let position = params![next.service, next.since, next.is_rereading, since];
        if writing.execute(SET_POSITION, position)? != 1 {
            return Err(Failure::Conflict);
        }
        if resync.begins {
            writing.execute(CLEAR_SEEN, [])?;
        }
        write(&writing, changes, resync.is_running)?;
        let mut removed = 0;
        if resync.ends {
            removed = writing.execute(REMOVE_UNSEEN, [])?;
            writing.execute(CLEAR_SEEN, [])?;
        }
        writing.commit()?;
        Ok(removed as u64)
    }
}

fn write(writing: &Transaction<'_>, changes: &MirrorChanges, is_rereading: bool) -> rusqlite::Result<()> {
    let mut put = writing.prepare_cached(&put_batch("", ""))?;
    let [mut remove, mut see, mut forget] = [
        writing.prepare_cached(REMOVE)?,
        writing.prepare_cached(MARK_SEEN)?,
        writing.prepare_cached(UNMARK)?,
    ];
    for batch in &changes.batches {
        put.execute(params_from_iter(batch.values().map(value)))?;
        if is_rereading {
            see.execute([batch.batch_id.as_str()])?;
        }
    }
    for id in &changes.removed {
        remove.execute([id])?;
        forget.execute([id])?;
    }
    Ok(())
}

fn value(value: FieldValue<'_>) -> Value {
    match value {
        FieldValue::Null => Value::Null,
        FieldValue::Text(text) => text.to_owned().into(),
        FieldValue::Instant(instant) => instant.to_string().into(),
        FieldValue::Count(count) => i64::try_from(count).unwrap_or(i64::MAX).into(),
        FieldValue::Decimal(decimal) => (decimal.count() as f64 / 100.0).into(),
        FieldValue::Flag(flag) => flag.into(),
    }
}

fn is_empty(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema)", [], |row| row.get(0))
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Other(error.to_string())
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Failure::NotAMirror,
            Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly) => {
                Failure::Other("no permission to write the file and its folder".to_owned())
            }
            _ => Failure::Other(error.to_string()),
        }
    }
}
