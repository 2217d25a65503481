//! Migrations: applied once, under a lock, whoever comes first.

use std::time::Duration;

use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::PostgresUrl;
use super::failure::told;
use super::hosts::Hosts;
use super::route::Route;
use super::tls;
use crate::{Freshness, OpenError, StoreError};

mod migrations {
    //! The numbered migrations, compiled in.
    refinery::embed_migrations!("migrations/postgres");
}

/// The advisory lock under which the schema is changed ("bsca").
const LOCK: i64 = 0x6273_6361;
/// How long one process waits for another that migrates.
const MIGRATION_WAIT: Duration = Duration::from_secs(600);

/// What a database says of its schema.
struct Found {
    encoding: String,
    /// The schema's number; 0 where there is none yet.
    version: i32,
    /// Whether a table stands where ours would be.
    has_tables: bool,
}

impl Found {
    /// Whether there is nothing at all, or tables with a number.
    fn is_whole(&self) -> bool {
        (self.version == 0) != self.has_tables
    }
}

/// Makes or migrates the tables. A database whose schema is current needs no primary.
pub(super) async fn bring_up_to_date(
    hosts: &Hosts,
    url: &PostgresUrl,
    make_if_missing: bool,
) -> Result<(), OpenError> {
    let shown = url.to_string();
    let first_word = is_current(&look_at(hosts.route_at_leisure(Freshness::Any), &shown).await?, &shown);
    if matches!(first_word, Ok(true)) {
        return Ok(());
    }
    // A standby may not have heard of the tables yet (decision 041): the primary has the last word.
    let Ok(lease) = hosts.route_at_leisure(Freshness::Latest).next().await else {
        first_word?;
        return Err(OpenError::NoPrimary(shown));
    };
    let found = look(&lease).await.map_err(|error| open_error(url, &error))?;
    if !is_current(&found, &shown)? {
        if found.version == 0 && !make_if_missing {
            return Err(OpenError::Empty(shown));
        }
        migrate(&lease, &lease.host().name, url).await?;
    }
    lease.end();
    Ok(())
}

/// What the first host says that answers.
async fn look_at(mut route: Route<'_>, url: &str) -> Result<Found, OpenError> {
    loop {
        let lease = route.next().await.map_err(|error| unreachable(url, error))?;
        let looking = async {
            match look(&lease).await {
                Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
                    Ok(Err(told(&error)))
                }
                found => Ok(Ok(found?)),
            }
        };
        let outcome = lease.during(looking).await;
        if let Some(found) = route.settle(lease, outcome).map_err(|error| unreachable(url, error))? {
            let not_ours =
                |told| format!("{told}: use the role that made batchscan's tables, or grant it this one");
            return found.map_err(|told| OpenError::Refused { url: url.into(), cause: not_ours(told) });
        }
    }
}

/// The schema's number.
pub(super) async fn version(client: &Client) -> Result<i32, tokio_postgres::Error> {
    Ok(look(client).await?.version)
}

/// Looks twice where another process may have migrated during the first look: half of that is like nobody's tables.
async fn look(client: &Client) -> Result<Found, tokio_postgres::Error> {
    let found = look_once(client).await?;
    if found.is_whole() { Ok(found) } else { look_once(client).await }
}

async fn look_once(client: &Client) -> Result<Found, tokio_postgres::Error> {
    let about =
        "SELECT current_setting('server_encoding'), to_regclass('refinery_schema_history') IS NOT NULL,
                        EXISTS (SELECT 1 FROM unnest(ARRAY['organisation', 'credential', 'secret', 'service_key', 'batch',
                                                           'moved_batch', 'batches']) AS ours (name)
                                WHERE to_regclass(ours.name) IS NOT NULL)";
    let about = client.query_typed_one(about, &[]).await?;
    let mut found = Found { encoding: about.try_get(0)?, version: 0, has_tables: about.try_get(2)? };
    if about.try_get(1)? {
        let newest = "SELECT coalesce(max(version), 0) FROM refinery_schema_history";
        found.version = client.query_typed_one(newest, &[]).await?.try_get(0)?;
    }
    Ok(found)
}

/// Whether nothing is to be done; refuses a database that is not ours or is of a later program.
fn is_current(found: &Found, url: &str) -> Result<bool, OpenError> {
    if found.encoding != "UTF8" {
        return Err(OpenError::Encoding { url: url.into(), encoding: found.encoding.clone() });
    }
    // Another program's migrations may have numbers like ours, and its tables names like ours: ours have both.
    if !found.is_whole() {
        return Err(OpenError::Foreign(url.into()));
    }
    let runner = migrations::migrations::runner();
    let known = runner.get_migrations().iter().map(refinery::Migration::version).max().unwrap_or(0);
    if found.version > known {
        return Err(OpenError::NewerSchema { found: found.version, known });
    }
    Ok(found.version == known)
}

/// Migrates on a connection of its own, while `keeper` holds the lock in an open transaction. So it works behind a
/// pooler too, which would lose a lock that belongs to a session.
async fn migrate(keeper: &Client, host: &str, url: &PostgresUrl) -> Result<(), OpenError> {
    let failed = |error: tokio_postgres::Error| open_error(url, &error);
    let lock = format!(
        "BEGIN; SET LOCAL statement_timeout = '{0}s'; SET LOCAL idle_in_transaction_session_timeout = 0;
         SELECT pg_advisory_xact_lock({LOCK})",
        MIGRATION_WAIT.as_secs()
    );
    keeper.batch_execute(&lock).await.map_err(failed)?;
    let migrated = migrate_alone(keeper, host, url).await;
    keeper.batch_execute("COMMIT").await.map_err(failed)?;
    migrated
}

async fn migrate_alone(keeper: &Client, host: &str, url: &PostgresUrl) -> Result<(), OpenError> {
    let failed = |error: tokio_postgres::Error| open_error(url, &error);
    // Another process may have done it while this one waited for the lock.
    if is_current(&look(keeper).await.map_err(failed)?, &url.to_string())? {
        return Ok(());
    }
    let tls = tls::connector(&url.tls).map_err(OpenError::Other)?;
    // The keeper's own host: another one that takes writes would be an old primary.
    let config = url.hosts.iter().find_map(|(name, config)| (name == host).then_some(config));
    let config = config.ok_or_else(|| OpenError::NoPrimary(url.to_string()))?;
    let (mut client, connection) = config.connect(tls).await.map_err(failed)?;
    tokio::spawn(async move {
        let _ = connection.await;
    });
    // A migration takes its time. Said as a statement: a pooler drops what is said at the start of a session.
    client
        .batch_execute("SET statement_timeout = 0; SET standard_conforming_strings = on")
        .await
        .map_err(failed)?;
    let run = migrations::migrations::runner().run_async(&mut client).await;
    run.map(|_| ()).map_err(|error| migration_error(url, &error))
}

fn migration_error(url: &PostgresUrl, error: &refinery::Error) -> OpenError {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<tokio_postgres::Error>() {
            return open_error(url, error);
        }
        cause = error.source();
    }
    match error.kind() {
        // Somebody else's numbered migrations.
        refinery::error::Kind::DivergentVersion(..) | refinery::error::Kind::MissingVersion(_) => {
            OpenError::Foreign(url.to_string())
        }
        _ => OpenError::Other(error.to_string()),
    }
}

fn open_error(url: &PostgresUrl, error: &tokio_postgres::Error) -> OpenError {
    let (url, cause) = (url.to_string(), told(error));
    match error.code() {
        Some(code) if *code == SqlState::INSUFFICIENT_PRIVILEGE => OpenError::Refused {
            url,
            cause: format!("{cause}: the role must own the database, or have CREATE on its schema"),
        },
        Some(_) => OpenError::Other(cause),
        None => OpenError::Unreachable { url, cause },
    }
}

pub(super) fn unreachable(url: &str, error: StoreError) -> OpenError {
    match error {
        StoreError::Unreachable(cause) => OpenError::Unreachable { url: url.into(), cause },
        StoreError::Broken(cause) => OpenError::Other(cause),
    }
}
