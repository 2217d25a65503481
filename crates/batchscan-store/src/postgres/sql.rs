//! The interface to the database ([`Sql`]) on one connection. Statements are not prepared, so that they work behind every
//! pooler.

use std::error::Error;
use std::pin::pin;

use batchscan_model::{Field, OrgId};
use bytes::BytesMut;
use futures_util::TryStreamExt;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, Row, RowStream};

use super::import;
use crate::errors::{AdminError, StoreError};
use crate::sql::{
    Columns, Dialect, EachRow, Kind, Merged, Pending, ROWS_PER_GROUP, SendRows, Sql, Table, Value, Values,
};
use crate::types::{ImportEnd, ImportRows};

static DIALECT: Dialect = Dialect {
    added_ids: "SELECT batch_id FROM stage",
    for_update: "FOR UPDATE",
    // The number is "bsau"; a lock of the table would wait for vacuum.
    lock_audit: Some("SELECT pg_advisory_xact_lock(1651728757)"),
    lock_keys: Some("LOCK TABLE service_key IN SHARE ROW EXCLUSIVE MODE"),
    read_in_order: Some("SET LOCAL enable_sort = off"),
    database_bytes: "SELECT pg_database_size(current_database())",
    last_org: "SELECT coalesce(pg_sequence_last_value(pg_get_serial_sequence('organisation', 'id')), 0)",
    set_last_org: &["
        SELECT setval(sequence, greatest($1, coalesce(pg_sequence_last_value(sequence), 1)))
        FROM (SELECT pg_get_serial_sequence('organisation', 'id')::regclass AS sequence) AS of_organisations
        WHERE $1 > 0"],
};

/// One connection, usually in a transaction.
pub(super) struct PostgresSql<'c> {
    client: &'c Client,
    /// Whether the batches of an import came in their order.
    is_sorted: bool,
}

impl<'c> PostgresSql<'c> {
    pub(super) fn new(client: &'c Client) -> Self {
        Self { client, is_sorted: false }
    }

    async fn rows(&self, statement: &str, values: &[Value<'_>]) -> Result<RowStream, AdminError> {
        let typed = values.iter().map(|value| (value, value.kind().to_type()));
        Ok(self.client.query_typed_raw(statement, typed).await?)
    }
}

impl Sql for PostgresSql<'_> {
    fn dialect(&self) -> &'static Dialect {
        &DIALECT
    }

    fn execute<'a>(&'a mut self, statement: &'a str, values: &'a [Value<'a>]) -> Pending<'a, u64> {
        Box::pin(async move {
            let values: Vec<_> =
                values.iter().map(|value| (value as &(dyn ToSql + Sync), value.kind().to_type())).collect();
            Ok(self.client.execute_typed(statement, &values).await?)
        })
    }

    fn query<'a>(
        &'a mut self,
        statement: &'a str,
        values: &'a [Value<'a>],
        each: EachRow<'a>,
    ) -> Pending<'a, ()> {
        Box::pin(async move {
            let mut rows = pin!(self.rows(statement, values).await?);
            while let Some(row) = rows.try_next().await? {
                each(&row)?;
            }
            Ok(())
        })
    }

    fn insert<'a>(&'a mut self, table: &'a Table, rows: &'a [Values]) -> Pending<'a, ()> {
        Box::pin(async move {
            if rows.is_empty() {
                return Ok(());
            }
            let types: Vec<Type> = table.columns.iter().map(|(_, kind)| kind.to_type()).collect();
            let copy = format!("COPY {} ({}) FROM STDIN (FORMAT binary)", table.name, table.columns());
            let mut writer = pin!(BinaryCopyInWriter::new(self.client.copy_in(&copy).await?, &types));
            for row in rows {
                writer.as_mut().write_raw(row).await?;
            }
            writer.as_mut().finish().await?;
            Ok(())
        })
    }

    fn send<'a>(
        &'a mut self,
        table: &'a Table,
        query: &'a str,
        values: &'a [Value<'a>],
        send: SendRows<'a>,
    ) -> Pending<'a, ()> {
        Box::pin(async move {
            let mut rows = pin!(self.rows(query, values).await?);
            let mut group = Vec::new();
            while let Some(row) = rows.try_next().await? {
                group.push(table.read(&row)?);
                if group.len() == ROWS_PER_GROUP {
                    send(std::mem::take(&mut group)).await?;
                }
            }
            if group.is_empty() { Ok(()) } else { send(group).await }
        })
    }

    fn stage<'a>(&'a mut self, _: OrgId, rows: &'a mut ImportRows) -> Pending<'a, ImportEnd> {
        Box::pin(async move {
            let (end, is_sorted) = import::stage(self.client, rows).await?;
            self.is_sorted = is_sorted;
            Ok(end)
        })
    }

    fn merge<'a>(&'a mut self, org: OrgId, version: i64, missing: &'a [Field]) -> Pending<'a, Merged> {
        let is_sorted = self.is_sorted;
        Box::pin(import::merge(self, org, version, is_sorted, missing))
    }
}

impl Kind {
    fn to_type(self) -> Type {
        match self {
            Kind::Integer => Type::INT8,
            Kind::Text => Type::TEXT,
            Kind::Bytes => Type::BYTEA,
        }
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Value::Integer(value) => value.to_sql(kind, out),
            Value::Text(value) => value.as_deref().to_sql(kind, out),
            Value::Bytes(value) => value.as_deref().to_sql(kind, out),
        }
    }

    fn accepts(kind: &Type) -> bool {
        [Type::INT8, Type::TEXT, Type::BYTEA].contains(kind)
    }

    to_sql_checked!();
}

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
