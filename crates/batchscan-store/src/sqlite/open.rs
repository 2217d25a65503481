//! Opens the file: makes it, locks it, migrates it, sets it up.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension};

use super::WRITE_LOCK_WAIT;
use super::dump::unfinished_copy;
use crate::{OpenError, Opening};

mod migrations {
    //! The numbered migrations, compiled in.
    refinery::embed_migrations!("migrations/sqlite");
}

/// Marks the file as ours in its header ("bsca"): no other program's database is ever migrated by mistake.
const APPLICATION_ID: i32 = 0x6273_6361;
/// A page holds two dozen batches, so that a read of a thousand touches some forty pages.
const PAGE_BYTES: i32 = 16_384;
/// The page cache of one reader. Most of a page is read once; the inner nodes of the trees should stay.
const READER_CACHE_KIB: i32 = 2_048;
/// The page cache of the writer, taken only as it is used: an import touches the index of ids all over, and half a
/// million of random ids fit.
const WRITER_CACHE_KIB: i32 = 40_960;
/// What the write-ahead log shrinks back to after a large import.
const WAL_BYTES_KEPT: i32 = 64 * 1024 * 1024;
/// Statements kept prepared by a connection: more than it has.
const STATEMENTS_KEPT: usize = 32;

/// Opens the connection that writes; makes the file and brings its schema up to date.
pub(super) fn writer(path: &Path, opening: Opening) -> Result<Connection, OpenError> {
    let folder = folder_of(path)?;
    make_file(path, opening.make_if_missing)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = || -> rusqlite::Result<Connection> {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(WRITE_LOCK_WAIT)?;
        keep_statements(&connection)?;
        Ok(connection)
    };
    let mut connection = open().map_err(|error| open_error(path, &error))?;
    bring_up_to_date(&mut connection, path, &folder)?;
    set_up_writer(&connection).map_err(|error| open_error(path, &error))?;
    let unfinished = unfinished_copy(&connection).map_err(|error| open_error(path, &error))?;
    if unfinished.is_some() && !opening.unfinished_copy {
        return Err(OpenError::UnfinishedCopy(format!("sqlite:{}", path.display())));
    }
    Ok(connection)
}

/// Opens a connection that only reads.
pub(super) fn reader(path: &Path) -> Result<Connection, OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = || -> rusqlite::Result<Connection> {
        let connection = Connection::open_with_flags(path, flags)?;
        // Readers of a write-ahead log wait for nobody but a checkpoint that restarts it, which is brief.
        connection.busy_timeout(std::time::Duration::from_secs(2))?;
        keep_statements(&connection)?;
        connection.pragma_update(None, "cache_size", -READER_CACHE_KIB)?;
        Ok(connection)
    };
    open().map_err(|error| open_error(path, &error))
}

/// A statement is parsed and planned once. Without the guarantee of stable plans, SQLite plans it anew whenever its values
/// have changed, which is every time: half of what a conditional request cost.
fn keep_statements(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(|_| ())
}

/// The schema's number; 0 where there is none yet.
pub(super) fn schema_version(connection: &Connection) -> rusqlite::Result<i32> {
    let has_history = "SELECT 1 FROM sqlite_schema WHERE name = 'refinery_schema_history'";
    match connection.query_row(has_history, [], |_| Ok(())).optional()? {
        Some(()) => {
            connection.query_row("SELECT coalesce(max(version), 0) FROM refinery_schema_history", [], |row| {
                row.get(0)
            })
        }
        None => Ok(0),
    }
}

/// The newest schema this program knows.
pub(super) fn schema_known() -> i32 {
    let runner = migrations::migrations::runner();
    let newest = runner.get_migrations().iter().map(refinery::Migration::version).max();
    newest.unwrap_or(0)
}

fn folder_of(path: &Path) -> Result<PathBuf, OpenError> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    if folder.is_dir() { Ok(folder) } else { Err(OpenError::NoFolder(folder)) }
}

/// Makes the file before SQLite does, so that it is never readable by others, not even for a moment.
fn make_file(path: &Path, make_if_missing: bool) -> Result<(), OpenError> {
    if path.is_dir() {
        return Err(OpenError::NotADatabase(path.to_owned()));
    }
    if path.exists() {
        return Ok(());
    }
    if !make_if_missing {
        return Err(OpenError::Missing(path.to_owned()));
    }
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(OpenError::Unwritable { path: path.to_owned(), cause: error.to_string() }),
    }
}

fn bring_up_to_date(connection: &mut Connection, path: &Path, folder: &Path) -> Result<(), OpenError> {
    let broken = |error: rusqlite::Error| open_error(path, &error);
    if is_current(connection, path)? {
        return Ok(());
    }
    // Two programs that start at once must not both migrate. The lock is on the folder: one on the file would be
    // SQLite's own business, and a file of its own would be left lying about.
    let lock = File::open(folder).and_then(|folder| folder.lock().map(|()| folder));
    let _held =
        lock.map_err(|error| OpenError::Other(format!("cannot lock {}: {error}", folder.display())))?;
    if is_current(connection, path)? {
        return Ok(());
    }
    if schema_version(connection).map_err(broken)? == 0 {
        connection.pragma_update(None, "page_size", PAGE_BYTES).map_err(broken)?;
        connection.pragma_update(None, "journal_mode", "WAL").map_err(broken)?;
        connection.pragma_update(None, "application_id", APPLICATION_ID).map_err(broken)?;
    }
    migrations::migrations::runner()
        .run(connection)
        .map(|_| ())
        .map_err(|error| migration_error(path, &error))
}

/// Whether nothing is to be done; refuses a database that is not ours or is of a later program.
fn is_current(connection: &Connection, path: &Path) -> Result<bool, OpenError> {
    let broken = |error: rusqlite::Error| open_error(path, &error);
    // The mark is made before the first table. Looked for in the other order, a file that is being made beside us
    // could show its tables and not yet its mark.
    let things = "SELECT count(*) FROM sqlite_schema";
    let things: i64 = connection.query_row(things, [], |row| row.get(0)).map_err(broken)?;
    let id: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0)).map_err(broken)?;
    if id != APPLICATION_ID && things > 0 {
        return Err(OpenError::NotADatabase(path.to_owned()));
    }
    let (found, known) = (schema_version(connection).map_err(broken)?, schema_known());
    if found > known {
        return Err(OpenError::NewerSchema { found, known });
    }
    Ok(found == known)
}

fn set_up_writer(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "foreign_keys", true)?;
    // A commit that was answered has to outlive a power cut; it is one sync for a whole import.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "journal_size_limit", WAL_BYTES_KEPT)?;
    connection.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)
}

fn migration_error(path: &Path, error: &refinery::Error) -> OpenError {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<rusqlite::Error>() {
            return open_error(path, error);
        }
        cause = error.source();
    }
    OpenError::Other(error.to_string())
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
        Some(ErrorCode::DatabaseBusy) => {
            OpenError::Other("another batchscan command is writing to it; try again when it is done".into())
        }
        _ => OpenError::Other(cause),
    }
}
