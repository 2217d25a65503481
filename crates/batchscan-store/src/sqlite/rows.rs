//! Reads columns of SQLite rows, and classifies SQLite's errors.

use rusqlite::types::ValueRef;
use rusqlite::{ErrorCode, Params, Row, Statement};

use crate::errors::{AdminError, StoreError};
use crate::rows::Columns;

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

pub(super) fn query_all<T>(
    statement: &mut Statement<'_>,
    params: impl Params,
    map: impl Fn(&Row<'_>) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let mut rows = statement.query(params)?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        all.push(map(row)?);
    }
    Ok(all)
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
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
                AdminError::ReadOnly(error.to_string())
            }
            _ => AdminError::Store(error.into()),
        }
    }
}
