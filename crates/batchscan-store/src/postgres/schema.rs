//! Migrates the schema, under a lock.

use std::time::Duration;

use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error};

use super::failure::describe;
use super::hosts::Hosts;
use super::route::Route;
use crate::errors::{OpenError, StoreError};
use crate::migrations;
use crate::types::Freshness;

/// The advisory lock under which the schema is changed ("bsca").
const LOCK: i64 = 0x6273_6361;
/// How long a process waits for another one that migrates.
const LOCK_TIMEOUT: Duration = Duration::from_secs(600);

/// The state of a database's schema.
struct Schema {
    encoding: String,
    /// 0 if there is no schema yet.
    version: i32,
    /// Whether tables with our names exist.
    has_tables: bool,
}

impl Schema {
    /// Whether there is nothing, or tables with a version.
    fn is_consistent(&self) -> bool {
        (self.version == 0) != self.has_tables
    }

    /// The pending migrations. Rejects a database of another program or of a newer version.
    fn script(&self, url: &str) -> Result<Option<String>, OpenError> {
        if self.encoding != "UTF8" {
            return Err(OpenError::Encoding { url: url.into(), encoding: self.encoding.clone() });
        }
        // Another program may have a table with one of our names, or a history table with our name, but not both.
        if !self.is_consistent() {
            return Err(OpenError::Foreign(url.into()));
        }
        migrations::script(migrations::POSTGRES, self.version)
    }
}

/// Creates or migrates the tables. If the schema is current, no primary is needed.
pub(super) async fn migrate(hosts: &Hosts, url: &str, create: bool) -> Result<(), OpenError> {
    let script = read_from_any(hosts.command_route(Freshness::Any), url).await?.script(url);
    if matches!(script, Ok(None)) {
        return Ok(());
    }
    // A standby may not have the tables yet (decision 041): the primary decides.
    let Ok(lease) = hosts.command_route(Freshness::Latest).next().await else {
        script?;
        return Err(OpenError::NoPrimary(url.into()));
    };
    let schema = read(&lease).await.map_err(|error| open_error(url, &error))?;
    if schema.script(url)?.is_some() {
        if schema.version == 0 && !create {
            return Err(OpenError::Empty(url.into()));
        }
        run_migrations(&lease, url).await?;
    }
    lease.release();
    Ok(())
}

pub(super) fn store_error(url: &str, error: StoreError) -> OpenError {
    match error {
        StoreError::Unreachable(cause) => OpenError::Unreachable { url: url.into(), cause },
        StoreError::Unreadable(cause) | StoreError::Rejected(cause) | StoreError::Broken(cause) => {
            OpenError::Other(cause)
        }
    }
}

/// Reads the schema from the first host that responds.
async fn read_from_any(mut route: Route<'_>, url: &str) -> Result<Schema, OpenError> {
    loop {
        let lease = route.next().await.map_err(|error| store_error(url, error))?;
        let work = async {
            match read(&lease).await {
                Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
                    Ok(Err(describe(&error)))
                }
                schema => Ok(Ok(schema?)),
            }
        };
        let result = lease.run(work).await;
        if let Some(schema) = route.finish(lease, result).map_err(|error| store_error(url, error))? {
            let hint = "use the role that created batchscan's tables, or grant it to this role";
            return schema
                .map_err(|cause| OpenError::Refused { url: url.into(), cause: format!("{cause}: {hint}") });
        }
    }
}

/// Reads twice if another process may have migrated during the first read, which looks like another program's tables.
async fn read(client: &Client) -> Result<Schema, Error> {
    let schema = read_once(client).await?;
    if schema.is_consistent() { Ok(schema) } else { read_once(client).await }
}

async fn read_once(client: &Client) -> Result<Schema, Error> {
    // From pg_class and not with to_regclass(), which uses cached names: after waiting for the migration lock it would not
    // see the tables that another process has just created.
    let query = "
        SELECT current_setting('server_encoding'),
               EXISTS (SELECT 1 FROM pg_class WHERE relname = 'schema_history' AND pg_table_is_visible(oid)),
               EXISTS (SELECT 1 FROM pg_class
                       WHERE relname IN ('organisation', 'credential', 'secret', 'service_key', 'batch',
                                         'batch_tombstone', 'batches') AND pg_table_is_visible(oid))";
    let row = client.query_typed_one(query, &[]).await?;
    let mut schema = Schema { encoding: row.try_get(0)?, version: 0, has_tables: row.try_get(2)? };
    if row.try_get(1)? {
        let version: i64 = client.query_typed_one(migrations::CURRENT_VERSION, &[]).await?.try_get(0)?;
        schema.version = i32::try_from(version).unwrap_or(i32::MAX);
    }
    Ok(schema)
}

/// Migrates in one transaction, which also holds the lock: behind a pooler, a session could lose it. If anything fails,
/// the connection is closed, which rolls back.
async fn run_migrations(client: &Client, url: &str) -> Result<(), OpenError> {
    let failed = |error: Error| open_error(url, &error);
    let lock = format!(
        "BEGIN; SET LOCAL statement_timeout = '{}s'; SET LOCAL idle_in_transaction_session_timeout = 0;
         SELECT pg_advisory_xact_lock({LOCK});
         SET LOCAL statement_timeout = 0; SET LOCAL standard_conforming_strings = on",
        LOCK_TIMEOUT.as_secs()
    );
    client.batch_execute(&lock).await.map_err(failed)?;
    // Another process may have migrated while this one waited.
    if let Some(script) = read(client).await.map_err(failed)?.script(url)? {
        client.batch_execute(&script).await.map_err(failed)?;
    }
    client.batch_execute("COMMIT").await.map_err(failed)
}

fn open_error(url: &str, error: &Error) -> OpenError {
    let (url, cause) = (url.to_owned(), describe(error));
    match error.code() {
        Some(code) if *code == SqlState::INSUFFICIENT_PRIVILEGE => OpenError::Refused {
            url,
            cause: format!("{cause}: the role must own the database, or have CREATE on its schema"),
        },
        Some(_) => OpenError::Other(cause),
        None => OpenError::Unreachable { url, cause },
    }
}
