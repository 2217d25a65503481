//! Parameters of PostgreSQL's statements, with their types.

/// Parameters with their types. Statements of commands are not prepared, so that they work behind every pooler.
macro_rules! params {
    ($($kind:ident: $value:expr),* $(,)?) => {
        [$((&$value as &(dyn tokio_postgres::types::ToSql + Sync), tokio_postgres::types::Type::$kind)),*]
    };
}
pub(crate) use params;
