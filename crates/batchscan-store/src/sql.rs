//! The interface to both databases: what is written once uses it, `sqlite` and `postgres` implement it.

use std::borrow::Cow;
use std::fmt;
use std::pin::Pin;

use batchscan_model::{BatchId, ClientId, Field, OrgId, UtcInstant};

use crate::errors::{AdminError, StoreError};
use crate::types::{ImportCounts, ImportEnd, ImportRows};

/// The result of a statement. SQLite's is ready at once.
pub(crate) type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, AdminError>> + Send + 'a>>;
/// Called for every row of a result.
pub(crate) type EachRow<'a> = &'a mut (dyn FnMut(&dyn Columns) -> Result<(), StoreError> + Send);
/// Sends rows to another database.
pub(crate) type SendRows<'a> = &'a (dyn Fn(Vec<Values>) -> Pending<'a, ()> + Send + Sync);
/// The values of a row.
pub(crate) type Values = Vec<Value<'static>>;

/// The size of a group of rows.
pub(crate) const ROWS_PER_GROUP: usize = 1_024;

/// A transaction, a snapshot, or a connection for a single read. Parameters are `$1`, `$2`, ….
pub(crate) trait Sql: Send {
    fn dialect(&self) -> &'static Dialect;

    /// Returns the number of changed rows.
    fn execute<'a>(&'a mut self, statement: &'a str, values: &'a [Value<'a>]) -> Pending<'a, u64>;

    /// Rows are read one after another: memory does not grow with the result.
    fn query<'a>(
        &'a mut self,
        statement: &'a str,
        values: &'a [Value<'a>],
        each: EachRow<'a>,
    ) -> Pending<'a, ()>;

    /// Inserts many rows.
    fn insert<'a>(&'a mut self, table: &'a Table, rows: &'a [Values]) -> Pending<'a, ()>;

    /// Reads the columns of a table in groups of rows, each after the one before was sent.
    fn send<'a>(
        &'a mut self,
        table: &'a Table,
        query: &'a str,
        values: &'a [Value<'a>],
        send: SendRows<'a>,
    ) -> Pending<'a, ()>;

    /// Receives the batches of an import.
    fn stage<'a>(&'a mut self, org: OrgId, rows: &'a mut ImportRows) -> Pending<'a, ImportEnd>;

    /// Merges the received batches, as the version `version`. The organisation is locked.
    fn merge<'a>(&'a mut self, org: OrgId, version: i64, missing: &'a [Field]) -> Pending<'a, Merged>;
}

/// A batch that moves by a day or more is probably another one.
pub(crate) const MICROS_PER_DAY: i64 = 86_400_000_000;

/// The result of merging an import.
#[derive(Clone, Debug)]
pub(crate) struct Merged {
    pub(crate) counts: ImportCounts,
    /// An id that several batches had.
    pub(crate) repeated: Option<String>,
    /// An id of a batch that had another name and creation time before, or was of another day.
    pub(crate) replaced: Option<String>,
    /// An id of a batch that had a value in each of these fields, for which the file has no column.
    pub(crate) emptied: Vec<(Field, String)>,
    /// The lowest and the highest creation time that a batch had before it moved in the order.
    pub(crate) moved: Option<(i64, i64)>,
}

/// What differs between the databases in shared statements.
#[derive(Debug)]
pub(crate) struct Dialect {
    /// A query for the ids that an import adds to the organisation `$1` with the version `$2`, after its merge.
    pub(crate) added_ids: &'static str,
    /// At the end of a query: locks its rows until the end of the transaction. SQLite has one writer.
    pub(crate) for_update: &'static str,
    /// Until the end of the transaction, so that the ids of the audit log follow the order of commits.
    pub(crate) lock_audit: Option<&'static str>,
    /// Until the end of the transaction: one process creates or rotates keys.
    pub(crate) lock_keys: Option<&'static str>,
    /// Until the end of the transaction: rows are read from an index in their order. Without it, PostgreSQL sorts all batches
    /// again for each part of a new organisation, of which it has no statistics.
    pub(crate) read_in_order: Option<&'static str>,
    /// The size of the database in bytes.
    pub(crate) database_bytes: &'static str,
    /// The highest number that an organisation ever had.
    pub(crate) last_org: &'static str,
    /// Sets it to $1, unless it is higher.
    pub(crate) set_last_org: &'static [&'static str],
}

/// SQLite numbers `$1`, `$2` in the order in which they appear, and `?1`, `?2` by their numbers. One needs no number.
pub(crate) fn for_sqlite(statement: &str) -> Cow<'_, str> {
    if statement.contains("$2") { statement.replace('$', "?").into() } else { statement.into() }
}

impl dyn Sql + '_ {
    /// All rows of a small result.
    pub(crate) async fn all<T: Send>(
        &mut self,
        statement: &str,
        values: &[Value<'_>],
        map: fn(&dyn Columns) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, AdminError> {
        let mut all = Vec::new();
        let mut each = |row: &dyn Columns| map(row).map(|row| all.push(row));
        self.query(statement, values, &mut each).await?;
        Ok(all)
    }

    /// The only row, if there is one.
    pub(crate) async fn first<T: Send>(
        &mut self,
        statement: &str,
        values: &[Value<'_>],
        map: fn(&dyn Columns) -> Result<T, StoreError>,
    ) -> Result<Option<T>, AdminError> {
        Ok(self.all(statement, values, map).await?.into_iter().next())
    }

    /// The only value, if there is one.
    pub(crate) async fn integer(
        &mut self,
        statement: &str,
        values: &[Value<'_>],
    ) -> Result<Option<i64>, AdminError> {
        Ok(self.first(statement, values, |row| row.integer(0)).await?.flatten())
    }

    /// The result of `SELECT count(*)`.
    pub(crate) async fn count(&mut self, statement: &str, values: &[Value<'_>]) -> Result<u64, AdminError> {
        Ok(self.integer(statement, values).await?.unwrap_or(0).cast_unsigned())
    }

    /// Runs a statement of the [`Dialect`].
    pub(crate) async fn run(&mut self, statement: Option<&str>) -> Result<(), AdminError> {
        match statement {
            Some(statement) => self.execute(statement, &[]).await.map(drop),
            None => Ok(()),
        }
    }
}

/// A table, as rows are inserted and copied.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [(&'static str, Kind)],
}

impl Table {
    /// The names of the columns, separated by commas.
    pub(crate) fn columns(&self) -> String {
        self.columns.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    }

    /// Reads a row that was selected with [`Table::columns`].
    pub(crate) fn read(&self, row: &dyn Columns) -> Result<Values, StoreError> {
        let read = |(index, (_, kind)): (usize, &(&str, Kind))| {
            Ok(match kind {
                Kind::Integer => Value::Integer(row.integer(index)?),
                Kind::Text => Value::Text(row.text(index)?.map(|text| text.to_owned().into())),
                Kind::Bytes => Value::Bytes(row.bytes(index)?.map(|bytes| bytes.to_owned().into())),
            })
        };
        self.columns.iter().enumerate().map(read).collect()
    }
}

/// The type of a column.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Integer,
    Text,
    Bytes,
}

/// A value of a column.
#[derive(Clone)]
pub(crate) enum Value<'a> {
    Integer(Option<i64>),
    Text(Option<Cow<'a, str>>),
    Bytes(Option<Cow<'a, [u8]>>),
}

impl Value<'_> {
    pub(crate) fn into_owned(self) -> Value<'static> {
        match self {
            Value::Integer(value) => Value::Integer(value),
            Value::Text(value) => Value::Text(value.map(|text| text.into_owned().into())),
            Value::Bytes(value) => Value::Bytes(value.map(|bytes| bytes.into_owned().into())),
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        match self {
            Value::Integer(_) => Kind::Integer,
            Value::Text(_) => Kind::Text,
            Value::Bytes(_) => Kind::Bytes,
        }
    }
}

impl fmt::Debug for Value<'_> {
    /// Without the value, which may be a key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind().fmt(f)
    }
}

/// The parameters of a statement.
macro_rules! values {
    ($($value:expr),* $(,)?) => { &[$($crate::sql::Value::from($value)),*] };
}
pub(crate) use values;

macro_rules! into_value {
    ($($kind:ty, $value:ident => $into:expr;)*) => {
        $(impl<'a> From<$kind> for Value<'a> {
            fn from($value: $kind) -> Self {
                $into
            }
        })*
    };
}

into_value! {
    i64, value => Value::Integer(Some(value));
    Option<i64>, value => Value::Integer(value);
    u64, value => Value::Integer(Some(value.cast_signed()));
    bool, value => Value::Integer(Some(value.into()));
    OrgId, value => Value::Integer(Some(value.0));
    Option<OrgId>, value => Value::Integer(value.map(|org| org.0));
    UtcInstant, value => Value::Integer(Some(value.micros()));
    Option<UtcInstant>, value => Value::Integer(value.map(UtcInstant::micros));
    &'a str, value => Value::Text(Some(value.into()));
    Option<&'a str>, value => Value::Text(value.map(Cow::from));
    &'a String, value => Value::Text(Some(value.into()));
    String, value => Value::Text(Some(value.into()));
    &'a Option<String>, value => Value::Text(value.as_ref().map(Cow::from));
    Option<String>, value => Value::Text(value.map(Cow::from));
    &'a ClientId, value => Value::Text(Some(value.as_str().into()));
    &'a BatchId, value => Value::Text(Some(value.as_str().into()));
    &'a [u8], value => Value::Bytes(Some(value.into()));
    Vec<u8>, value => Value::Bytes(Some(value.into()));
    &'a [u8; 32], value => Value::Bytes(Some(value.as_slice().into()));
    &'a Option<[u8; 32]>, value => Value::Bytes(value.as_ref().map(|hash| hash.as_slice().into()));
}

/// A row of either database.
pub(crate) trait Columns {
    fn integer(&self, column: usize) -> Result<Option<i64>, StoreError>;
    fn text(&self, column: usize) -> Result<Option<&str>, StoreError>;
    fn bytes(&self, column: usize) -> Result<Option<&[u8]>, StoreError>;
}

impl dyn Columns + '_ {
    pub(crate) fn number(&self, column: usize) -> Result<i64, StoreError> {
        self.integer(column)?.ok_or_else(|| invalid("number"))
    }

    pub(crate) fn count(&self, column: usize) -> Result<u64, StoreError> {
        u64::try_from(self.number(column)?).map_err(|_| invalid("count"))
    }

    pub(crate) fn org(&self, column: usize) -> Result<OrgId, StoreError> {
        self.number(column).map(OrgId)
    }

    pub(crate) fn string(&self, column: usize) -> Result<String, StoreError> {
        self.optional_string(column)?.ok_or_else(|| invalid("text"))
    }

    pub(crate) fn optional_string(&self, column: usize) -> Result<Option<String>, StoreError> {
        Ok(self.text(column)?.map(str::to_owned))
    }

    pub(crate) fn client(&self, column: usize) -> Result<ClientId, StoreError> {
        ClientId::new(self.string(column)?).ok_or_else(|| invalid("id"))
    }

    pub(crate) fn instant(&self, column: usize) -> Result<UtcInstant, StoreError> {
        self.optional_instant(column)?.ok_or_else(|| invalid("time"))
    }

    pub(crate) fn optional_instant(&self, column: usize) -> Result<Option<UtcInstant>, StoreError> {
        let instant = |micros| UtcInstant::from_micros(micros).ok_or_else(|| invalid("time"));
        self.integer(column)?.map(instant).transpose()
    }

    pub(crate) fn hash(&self, column: usize) -> Result<[u8; 32], StoreError> {
        self.optional_hash(column)?.ok_or_else(|| invalid("hash"))
    }

    pub(crate) fn optional_hash(&self, column: usize) -> Result<Option<[u8; 32]>, StoreError> {
        self.bytes(column)?.map(|bytes| bytes.try_into().map_err(|_| invalid("hash"))).transpose()
    }
}

pub(crate) fn invalid(what: &str) -> StoreError {
    StoreError::Broken(format!("invalid or missing {what}"))
}

/// For each of these fields, an id of a batch among `corrected` (`batch_id`, `old` and `new`) that loses its value.
/// [`read_ids`] reads the result.
pub(crate) fn ids_of_emptied(fields: &[Field], corrected: &str) -> String {
    let id = |field: Field| match fields.contains(&field) {
        true => format!(
            "min(CASE WHEN new LIKE '%\"{field}\":null%' AND old NOT LIKE '%\"{field}\":null%'
                       AND old NOT LIKE '%\"{field}\":\"\"%' THEN batch_id END)"
        ),
        false => "NULL".to_owned(),
    };
    format!("SELECT {} FROM ({corrected}) AS corrected", Field::ALL.map(id).join(", "))
}

pub(crate) fn read_ids(row: &dyn Columns) -> Result<Vec<(Field, String)>, StoreError> {
    let id = |(index, field)| row.optional_string(index).map(|id| Some((field, id?))).transpose();
    Field::ALL.into_iter().enumerate().filter_map(id).collect()
}
