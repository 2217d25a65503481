//! Passes parameters to PostgreSQL and reads columns of its rows.

use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use crate::errors::StoreError;
use crate::rows::Columns;

/// Parameters with their types. Statements of commands are not prepared, so that they work behind every pooler.
macro_rules! params {
    ($($kind:ident: $value:expr),* $(,)?) => {
        [$((&$value as &(dyn tokio_postgres::types::ToSql + Sync), tokio_postgres::types::Type::$kind)),*]
    };
}
pub(crate) use params;

impl Columns for Row {
    fn integer(&self, column: usize) -> Result<Option<i64>, StoreError> {
        get(self, column)
    }

    fn text(&self, column: usize) -> Result<Option<&str>, StoreError> {
        get(self, column)
    }

    fn bytes(&self, column: usize) -> Result<Option<&[u8]>, StoreError> {
        get(self, column)
    }
}

fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T, StoreError> {
    row.try_get(column).map_err(|error| StoreError::Broken(error.to_string()))
}
