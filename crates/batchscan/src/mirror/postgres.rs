//! A mirror in the user's own PostgreSQL database.

use batchscan_model::FieldValue;
use batchscan_store::{PostgresUrl, describe_postgres_error};
use futures_util::future::try_join_all;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Transaction};

use super::{
    CLEAR_SEEN, Failure, MARK_SEEN, MirrorChanges, MirrorPosition, READ_POSITION, REMOVE, REMOVE_UNSEEN,
    Resync, SET_POSITION, TABLES, TABLES_COUNT, UNMARK, create_tables, put_batch,
};

/// Parameters with their types. Statements are not prepared, so that they work behind every pooler.
macro_rules! params {
    ($($kind:ident: $value:expr),* $(,)?) => {
        [$((&$value as &(dyn ToSql + Sync), Type::$kind)),*]
    };
}

/// For deletions at the end of reading everything again. The URL's own limit is for requests.
const SET_TIMEOUT: &str = "SET LOCAL statement_timeout = '10min'";

#[derive(Debug)]
pub(super) struct PostgresMirror {
    url: PostgresUrl,
    client: Client,
}

impl PostgresMirror {
    pub(super) async fn open(url: &PostgresUrl) -> Result<(Self, MirrorPosition), Failure> {
        let mut client = connect(url).await?;
        let opening = client.transaction().await?;
        opening.batch_execute(SET_TIMEOUT).await?;
        match count_tables(&opening).await? {
            0 => opening.batch_execute(&create_tables("TIMESTAMPTZ", "NUMERIC(14, 2)")).await?,
            TABLES_COUNT => {}
            _ => return Err(Failure::NotAMirror),
        }
        // Waits for the transaction of a process that was killed.
        let row = opening.query_typed_one(&format!("{READ_POSITION} FOR UPDATE"), &[]).await?;
        let position = MirrorPosition {
            service: row.try_get(0)?,
            since: row.try_get(1)?,
            is_rereading: row.try_get(2)?,
        };
        opening.commit().await?;
        Ok((Self { url: url.clone(), client }, position))
    }

    pub(super) async fn apply(
        &mut self,
        changes: &MirrorChanges,
        since: &str,
        next: &MirrorPosition,
        resync: Resync,
    ) -> Result<u64, Failure> {
        // The connection may have been closed while the service waited for changes.
        if self.client.is_closed() {
            self.client = connect(&self.url).await?;
        }
        let writing = self.client.transaction().await?;
        writing.batch_execute(SET_TIMEOUT).await?;
        // First, so that the row is locked until the end.
        let position = params![TEXT: next.service, TEXT: next.since, BOOL: next.is_rereading, TEXT: since];
        if writing.execute_typed(SET_POSITION, &position).await? != 1 {
            return Err(Failure::Conflict);
        }
        if resync.begins {
            writing.batch_execute(CLEAR_SEEN).await?;
        }
        write(&writing, changes, resync.is_running).await?;
        let mut removed = 0;
        if resync.ends {
            removed = writing.execute_typed(REMOVE_UNSEEN, &[]).await?;
            writing.batch_execute(CLEAR_SEEN).await?;
        }
        writing.commit().await?;
        Ok(removed)
    }
}

async fn connect(url: &PostgresUrl) -> Result<Client, Failure> {
    url.connect_to_primary().await.map_err(Failure::Other)
}

/// From pg_class: `to_regclass` fails without a privilege.
async fn count_tables(opening: &Transaction<'_>) -> Result<i64, Failure> {
    let query = "SELECT count(*) FROM pg_class WHERE relname = ANY ($1) AND pg_table_is_visible(oid)";
    let names = TABLES.as_slice();
    Ok(opening.query_typed_one(query, &params![TEXT_ARRAY: names]).await?.try_get(0)?)
}

/// Sends all statements before it waits for their results.
async fn write(
    writing: &Transaction<'_>,
    changes: &MirrorChanges,
    is_rereading: bool,
) -> Result<(), tokio_postgres::Error> {
    let put = &put_batch("::timestamptz", "::numeric");
    try_join_all(changes.batches.iter().map(|batch| async move {
        let values = batch.values().map(value);
        let values: Vec<(&(dyn ToSql + Sync), Type)> =
            values.iter().map(|(value, kind)| (&**value as &(dyn ToSql + Sync), kind.clone())).collect();
        writing.execute_typed(put, &values).await
    }))
    .await?;
    if is_rereading {
        let ids = changes.batches.iter().map(|batch| batch.batch_id.as_str());
        try_join_all(ids.map(|id| execute(writing, MARK_SEEN, id))).await?;
    }
    for statement in [REMOVE, UNMARK] {
        try_join_all(changes.removed.iter().map(|id| execute(writing, statement, id))).await?;
    }
    Ok(())
}

async fn execute(writing: &Transaction<'_>, statement: &str, id: &str) -> Result<u64, tokio_postgres::Error> {
    writing.execute_typed(statement, &params![TEXT: id]).await
}

/// PostgreSQL has no NUL in text: it becomes `�`.
fn value(value: FieldValue<'_>) -> (Box<dyn ToSql + Sync>, Type) {
    match value {
        // Null has no type of its own: TEXT would not fit a number, so the server decides.
        FieldValue::Null => (Box::new(None::<String>), Type::UNKNOWN),
        FieldValue::Text(text) => (Box::new(text.replace('\0', "\u{FFFD}")), Type::TEXT),
        FieldValue::Instant(instant) => (Box::new(instant.to_string()), Type::TEXT),
        FieldValue::Count(count) => (Box::new(i64::try_from(count).unwrap_or(i64::MAX)), Type::INT8),
        FieldValue::Decimal(decimal) => (Box::new(decimal.to_string()), Type::TEXT),
        FieldValue::Flag(flag) => (Box::new(flag), Type::BOOL),
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Failure::Other(describe_postgres_error(&error))
    }
}
