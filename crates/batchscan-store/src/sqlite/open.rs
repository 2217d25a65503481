//! Opens the file: creates, locks and migrates it, and configures connections.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, TransactionBehavior};

use crate::errors::OpenError;
use crate::migrations;
use crate::platform;
use crate::types::OpenOptions;

/// How long a command waits for another process that writes: importing a million batches takes seconds.
pub(super) const WRITE_LOCK_TIMEOUT: Duration = Duration::from_secs(60);
/// Readers only wait for a checkpoint that restarts the write-ahead log, which is short.
const READ_LOCK_TIMEOUT: Duration = Duration::from_secs(2);
/// Identifies our files in SQLite's header ("bsca"), so that no other program's database is migrated.
const APPLICATION_ID: i32 = 0x6273_6361;
/// A database page holds about two dozen batches, so that a thousand batches are about forty pages.
const PAGE_BYTES: i32 = 16_384;
/// The page cache of a reader. Most pages are read once; the inner nodes of the trees should stay.
const READER_CACHE_KIB: i32 = 2_048;
/// The page cache of the writer, allocated as needed. An import touches the whole index of ids: this holds 350,000
/// random ids.
const WRITER_CACHE_KIB: i32 = 28_672;
/// The write-ahead log shrinks to this size after a large import.
const WAL_BYTES_MAX: i32 = 64 * 1024 * 1024;
/// More prepared statements than a connection uses.
const STATEMENTS_CACHED: usize = 32;

/// Opens the connection that writes. Creates the file and migrates the schema.
pub(super) fn writer(path: &Path, options: OpenOptions) -> Result<Connection, OpenError> {
    let folder = folder_of(path)?;
    create_file(path, options.create)?;
    let failed = |error: rusqlite::Error| open_error(path, &error);
    let mut connection =
        connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE, WRITE_LOCK_TIMEOUT).map_err(failed)?;
    migrate(&mut connection, path, &folder, options.create)?;
    configure_writer(&connection).map_err(failed)?;
    if !options.allow_unfinished_copy && unfinished_copy(&connection).map_err(failed)?.is_some() {
        return Err(OpenError::UnfinishedCopy(format!("sqlite:{}", path.display())));
    }
    Ok(connection)
}

pub(super) fn reader(path: &Path) -> Result<Connection, OpenError> {
    let open = || {
        let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY, READ_LOCK_TIMEOUT)?;
        connection.pragma_update(None, "cache_size", -READER_CACHE_KIB)?;
        // Detects some damaged pages, when they are read from the disk.
        connection.pragma_update(None, "cell_size_check", true)?;
        Ok(connection)
    };
    open().map_err(|error| open_error(path, &error))
}

/// Whether another process has the database open.
pub(crate) fn is_in_use(path: &Path) -> bool {
    let lock = || {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        // With a write-ahead log, readers keep a lock as long as they are connected.
        connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        connection.execute_batch("BEGIN IMMEDIATE; ROLLBACK")
    };
    lock().is_err_and(|error: rusqlite::Error| error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy))
}

/// The schema version; 0 if there is no schema yet.
pub(super) fn schema_version(connection: &Connection) -> rusqlite::Result<i32> {
    let history = "SELECT 1 FROM sqlite_schema WHERE name = 'schema_history'";
    match connection.query_row(history, [], |_| Ok(())).optional()? {
        Some(()) => connection.query_row(migrations::CURRENT_VERSION, [], |row| row.get(0)),
        None => Ok(0),
    }
}

/// The source of an unfinished copy.
pub(super) fn unfinished_copy(connection: &Connection) -> rusqlite::Result<Option<String>> {
    connection.query_row("SELECT source_key FROM unfinished_copy", [], |row| row.get(0)).optional()
}

fn connect(path: &Path, mode: OpenFlags, lock_timeout: Duration) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, mode | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(lock_timeout)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_CACHED);
    // Without the query planner stability guarantee, SQLite plans a statement again whenever its parameters change: half
    // of the cost of a conditional request.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(connection)
}

fn folder_of(path: &Path) -> Result<PathBuf, OpenError> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    if folder.is_dir() { Ok(folder) } else { Err(OpenError::NoFolder(folder)) }
}

/// Creates the file before SQLite does, so that other users can never read it.
fn create_file(path: &Path, create: bool) -> Result<(), OpenError> {
    if path.is_dir() {
        return Err(OpenError::NotADatabase(path.to_owned()));
    }
    if path.exists() {
        return Ok(());
    }
    if !create {
        return Err(OpenError::Missing(path.to_owned()));
    }
    match platform::create_database(path, &folder_of(path)?) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(OpenError::Unwritable { path: path.to_owned(), cause: error.to_string() }),
    }
}

fn migrate(connection: &mut Connection, path: &Path, folder: &Path, create: bool) -> Result<(), OpenError> {
    if migration_script(connection, path)?.is_none() {
        return Ok(());
    }
    if !create && schema_version(connection).map_err(|error| open_error(path, &error))? == 0 {
        return Err(OpenError::Empty(format!("sqlite:{}", path.display())));
    }
    // Only one process may migrate.
    let _lock = platform::lock_for_migration(path, folder)
        .map_err(|error| OpenError::Other(format!("cannot lock {}: {error}", folder.display())))?;
    let Some(script) = migration_script(connection, path)? else { return Ok(()) };
    let mut run = || -> rusqlite::Result<()> {
        if schema_version(connection)? == 0 {
            connection.pragma_update(None, "page_size", PAGE_BYTES)?;
            connection.pragma_update(None, "journal_mode", "WAL")?;
            connection.pragma_update(None, "application_id", APPLICATION_ID)?;
        }
        let migration = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        migration.execute_batch(&script)?;
        migration.commit()
    };
    run().map_err(|error| open_error(path, &error))
}

/// The pending migrations. Rejects a database of another program or of a newer version.
fn migration_script(connection: &Connection, path: &Path) -> Result<Option<String>, OpenError> {
    let failed = |error: rusqlite::Error| open_error(path, &error);
    // The id is written before the first table. In the other order, a file that is just being created could show tables
    // without the id.
    let tables = "SELECT count(*) FROM sqlite_schema";
    let tables: i64 = connection.query_row(tables, [], |row| row.get(0)).map_err(failed)?;
    let id: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0)).map_err(failed)?;
    if id != APPLICATION_ID && tables > 0 {
        return Err(OpenError::NotADatabase(path.to_owned()));
    }
    migrations::script(migrations::SQLITE, schema_version(connection).map_err(failed)?)
}

fn configure_writer(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "foreign_keys", true)?;
    // A confirmed commit must survive a power failure. It costs one sync for a whole import.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "journal_size_limit", WAL_BYTES_MAX)?;
    connection.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)
}

fn open_error(path: &Path, error: &rusqlite::Error) -> OpenError {
    let path = path.to_owned();
    let cause = error.to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => OpenError::NotADatabase(path),
        Some(ErrorCode::DatabaseCorrupt) => OpenError::Damaged { path, cause },
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            OpenError::Unwritable { path, cause }
        }
        Some(ErrorCode::DiskFull) => OpenError::DiskFull,
        Some(ErrorCode::DatabaseBusy) => OpenError::Other(
            "it is locked by another batchscan command: try again when it has finished".into(),
        ),
        _ => OpenError::Other(cause),
    }
}
