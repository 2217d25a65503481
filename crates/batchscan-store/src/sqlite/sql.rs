//! The interface to the database ([`Sql`]) on one connection, and SQLite's errors.

use std::future::ready;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::{pin::pin, sync::Arc};

use batchscan_model::{Field, OrgId};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, Row, ToSql, ffi, params_from_iter};

use super::import;
use crate::errors::{AdminError, StoreError};
use crate::sql::{
    Columns, Dialect, EachRow, Merged, Pending, ROWS_PER_GROUP, SendRows, Sql, Table, Value, Values,
    for_sqlite,
};
use crate::types::{ImportEnd, ImportRows};

static DIALECT: Dialect = Dialect {
    added_ids: "SELECT batch_id FROM batch WHERE org_id = $1 AND version = $2
                    AND batch_id NOT IN (SELECT batch_id FROM before_import)",
    for_update: "",
    lock_audit: None,
    lock_keys: None,
    read_in_order: None,
    database_bytes: "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
    last_org: "SELECT seq FROM sqlite_sequence WHERE name = 'organisation'",
    // SQLite's table of sequences has no unique key. Adding and removing an organisation sets the sequence.
    set_last_org: &[
        "INSERT INTO organisation (id, name, created_at)
         SELECT $1, '', 0 WHERE $1 > 0 AND NOT EXISTS (SELECT 1 FROM organisation WHERE id = $1)",
        "DELETE FROM organisation WHERE id = $1 AND name = ''",
    ],
};

/// One connection, on its own thread.
pub(super) struct SqliteSql<'c> {
    pub(super) connection: &'c mut Connection,
    /// The result of an import, whose batches are merged as they arrive.
    pub(super) merged: Option<Merged>,
}

impl<'c> SqliteSql<'c> {
    pub(super) fn new(connection: &'c mut Connection) -> Self {
        Self { connection, merged: None }
    }

    fn query_now(&self, statement: &str, values: &[Value<'_>], each: EachRow<'_>) -> Result<(), AdminError> {
        let mut statement = self.connection.prepare_cached(&for_sqlite(statement))?;
        let mut rows = statement.query(params_from_iter(values))?;
        while let Some(row) = rows.next()? {
            each(row)?;
        }
        Ok(())
    }

    fn execute_now(&self, statement: &str, values: &[Value<'_>]) -> Result<u64, AdminError> {
        let mut statement = self.connection.prepare_cached(&for_sqlite(statement))?;
        Ok(statement.execute(params_from_iter(values))? as u64)
    }

    fn insert_now(&self, table: &Table, rows: &[Values]) -> Result<(), AdminError> {
        let places = vec!["?"; table.columns.len()].join(", ");
        let insert = format!("INSERT INTO {} ({}) VALUES ({places})", table.name, table.columns());
        let mut insert = self.connection.prepare_cached(&insert)?;
        for row in rows {
            insert.execute(params_from_iter(row))?;
        }
        Ok(())
    }

    fn send_now(
        &self,
        table: &Table,
        query: &str,
        values: &[Value<'_>],
        send: SendRows<'_>,
    ) -> Result<(), AdminError> {
        let mut statement = self.connection.prepare_cached(&for_sqlite(query))?;
        let mut rows = statement.query(params_from_iter(values))?;
        let mut group = Vec::new();
        while let Some(row) = rows.next()? {
            group.push(table.read(row)?);
            if group.len() == ROWS_PER_GROUP {
                block_on(send(std::mem::take(&mut group)))?;
            }
        }
        if group.is_empty() { Ok(()) } else { block_on(send(group)) }
    }
}

impl Sql for SqliteSql<'_> {
    fn dialect(&self) -> &'static Dialect {
        &DIALECT
    }

    fn execute<'a>(&'a mut self, statement: &'a str, values: &'a [Value<'a>]) -> Pending<'a, u64> {
        Box::pin(ready(self.execute_now(statement, values)))
    }

    fn query<'a>(
        &'a mut self,
        statement: &'a str,
        values: &'a [Value<'a>],
        each: EachRow<'a>,
    ) -> Pending<'a, ()> {
        Box::pin(ready(self.query_now(statement, values, each)))
    }

    fn insert<'a>(&'a mut self, table: &'a Table, rows: &'a [Values]) -> Pending<'a, ()> {
        Box::pin(ready(self.insert_now(table, rows)))
    }

    fn send<'a>(
        &'a mut self,
        table: &'a Table,
        query: &'a str,
        values: &'a [Value<'a>],
        send: SendRows<'a>,
    ) -> Pending<'a, ()> {
        Box::pin(ready(self.send_now(table, query, values, send)))
    }

    fn stage<'a>(&'a mut self, org: OrgId, rows: &'a mut ImportRows) -> Pending<'a, ImportEnd> {
        let staged = import::merge(self.connection, org, rows);
        Box::pin(ready(staged.map(|(end, merged)| {
            self.merged = Some(merged);
            end
        })))
    }

    fn merge<'a>(&'a mut self, org: OrgId, _: i64, missing: &'a [Field]) -> Pending<'a, Merged> {
        let merged = self.merged.take().ok_or(AdminError::Aborted);
        Box::pin(ready(merged.and_then(|mut merged| {
            if merged.counts.corrected > 0 && !missing.is_empty() {
                merged.emptied = import::find_emptied(self.connection, org, missing)?;
            }
            Ok(merged)
        })))
    }
}

/// Waits for work on this thread. Statements are ready at once; a copy also waits for the other database.
pub(super) fn block_on<T>(work: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let mut work = pin!(work);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match work.as_mut().poll(&mut context) {
            Poll::Ready(done) => return done,
            Poll::Pending => std::thread::park(),
        }
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let value = match self {
            Value::Integer(Some(value)) => ValueRef::Integer(*value),
            Value::Text(Some(text)) => ValueRef::Text(text.as_bytes()),
            Value::Bytes(Some(bytes)) => ValueRef::Blob(bytes),
            _ => ValueRef::Null,
        };
        Ok(ToSqlOutput::Borrowed(value))
    }
}

impl Columns for Row<'_> {
    fn integer(&self, column: usize) -> Result<Option<i64>, StoreError> {
        Ok(self.get(column)?)
    }

    fn text(&self, column: usize) -> Result<Option<&str>, StoreError> {
        Ok(self.get_ref(column)?.as_str_or_null().map_err(rusqlite::Error::from)?)
    }

    fn bytes(&self, column: usize) -> Result<Option<&[u8]>, StoreError> {
        match self.get_ref(column)? {
            ValueRef::Null => Ok(None),
            value => Ok(Some(value.as_bytes().map_err(rusqlite::Error::from)?)),
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(
                ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::CannotOpen
                | ErrorCode::DiskFull
                | ErrorCode::OutOfMemory
                | ErrorCode::ReadOnly
                | ErrorCode::PermissionDenied,
            ) => StoreError::Unreachable(error.to_string()),
            // For SQLite, a file is malformed, too, if the disk fails (EIO).
            Some(ErrorCode::SystemIoFailure | ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                StoreError::Unreadable(error.to_string())
            }
            _ => StoreError::Broken(error.to_string()),
        }
    }
}

impl From<rusqlite::Error> for AdminError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => AdminError::Busy,
            Some(ErrorCode::DiskFull) => AdminError::DiskFull,
            Some(ErrorCode::ConstraintViolation) if is_duplicate(&error) => {
                AdminError::Duplicate(error.to_string())
            }
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
                AdminError::ReadOnly(error.to_string())
            }
            _ => AdminError::Store(error.into()),
        }
    }
}

fn is_duplicate(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error().map(|error| error.extended_code);
    matches!(code, Some(ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY))
}
