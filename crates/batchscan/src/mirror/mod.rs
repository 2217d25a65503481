//! A user's copy of their batches: an SQLite file, or tables in their own PostgreSQL database. Knows nothing about HTTP.
//!
//! Changes and the position after them are written in one transaction. If the service cannot continue from the position,
//! everything is read again: `mirror_seen` collects the ids, and at the end, what is not in it is deleted. Until then,
//! readers see the old batches.

mod postgres;
mod sqlite;

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{anyhow, bail};
use batchscan_model::{Batch, Field, Kind};
use batchscan_store::DatabaseUrl;

use postgres::PostgresMirror;
use sqlite::SqliteMirror;

/// The tables. A target has all of them or none.
const TABLES: [&str; 3] = ["batches", "mirror_position", "mirror_seen"];
const TABLES_COUNT: i64 = TABLES.len() as i64;

const READ_POSITION: &str = "SELECT service, since, is_rereading FROM mirror_position";
const FIRST_POSITION: &str = "INSERT INTO mirror_position VALUES ('', '', FALSE)";
/// Only from the position at which this process is: another process may write, too.
const SET_POSITION: &str =
    "UPDATE mirror_position SET service = $1, since = $2, is_rereading = $3 WHERE since = $4";
const REMOVE: &str = "DELETE FROM batches WHERE batch_id = $1";
const UNMARK: &str = "DELETE FROM mirror_seen WHERE batch_id = $1";
const MARK_SEEN: &str = "INSERT INTO mirror_seen VALUES ($1) ON CONFLICT DO NOTHING";
const CLEAR_SEEN: &str = "DELETE FROM mirror_seen";
const REMOVE_UNSEEN: &str =
    "DELETE FROM batches WHERE NOT EXISTS (SELECT 1 FROM mirror_seen s WHERE s.batch_id = batches.batch_id)";

/// The tables, in types that both databases know, except for times and decimals.
fn create_tables(time: &str, decimal: &str) -> String {
    let column = |field: Field| {
        let kind = match field.kind() {
            Kind::Id => "TEXT PRIMARY KEY",
            Kind::Name | Kind::Text | Kind::Link => "TEXT",
            Kind::Instant => time,
            Kind::Count => "BIGINT",
            Kind::Decimal => decimal,
            Kind::Flag => "BOOLEAN",
        };
        format!("{field} {kind}{}", if field.is_nullable() { "" } else { " NOT NULL" })
    };
    format!(
        "CREATE TABLE batches ({});
         CREATE TABLE mirror_position (service TEXT NOT NULL, since TEXT NOT NULL, is_rereading BOOLEAN NOT NULL);
         CREATE TABLE mirror_seen (batch_id TEXT PRIMARY KEY NOT NULL);
         {FIRST_POSITION};",
        Field::ALL.map(column).join(", ")
    )
}

/// Adds a batch or replaces it. The casts make a time or a decimal of a text.
fn put_batch(time_cast: &str, decimal_cast: &str) -> String {
    let names = Field::ALL.map(Field::name);
    let cast = |field: &Field| match field.kind() {
        Kind::Instant => time_cast,
        Kind::Decimal => decimal_cast,
        _ => "",
    };
    let value = |(index, field): (usize, &Field)| format!("${}{}", index + 1, cast(field));
    let values: Vec<String> = Field::ALL.iter().enumerate().map(value).collect();
    let set = names.map(|name| format!("{name} = excluded.{name}"));
    format!(
        "INSERT INTO batches ({}) VALUES ({}) ON CONFLICT (batch_id) DO UPDATE SET {}",
        names.join(", "),
        values.join(", "),
        set.join(", ")
    )
}

/// Why one database operation failed, before the target is named.
enum Failure {
    NotAMirror,
    Conflict,
    Other(String),
}

/// Changes to write in one transaction.
#[derive(Debug)]
pub(crate) struct MirrorChanges {
    /// Batches that are new or changed.
    pub(crate) batches: Vec<Batch>,
    /// The ids of removed batches.
    pub(crate) removed: Vec<String>,
    /// The position after these changes.
    pub(crate) since: String,
    /// Whether more changes follow.
    pub(crate) more: bool,
    /// Whether these are the first changes of a complete state that replaces everything.
    pub(crate) restarts: bool,
}

/// Where a mirror is in the changes of a service.
#[derive(Clone, Debug)]
struct MirrorPosition {
    service: String,
    /// Empty before the first changes.
    since: String,
    /// Whether everything is being read again.
    is_rereading: bool,
}

impl MirrorPosition {
    /// The position after changes. Once everything was read again, what was not seen is deleted.
    fn after(&self, changes: &MirrorChanges) -> (Self, Resync) {
        let is_rereading = changes.restarts || self.is_rereading;
        let resync = Resync {
            begins: changes.restarts,
            is_running: is_rereading,
            ends: is_rereading && !changes.more,
        };
        let (service, since) = (self.service.clone(), changes.since.clone());
        (Self { service, since, is_rereading: is_rereading && changes.more }, resync)
    }
}

/// What a transaction does for reading everything again.
#[derive(Clone, Copy)]
struct Resync {
    begins: bool,
    is_running: bool,
    ends: bool,
}

/// An open mirror.
#[derive(Debug)]
pub(crate) struct MirrorDatabase {
    target: Target,
    name: String,
    position: MirrorPosition,
}

#[derive(Debug)]
enum Target {
    /// Shared with the thread that writes.
    Sqlite(Arc<Mutex<SqliteMirror>>),
    Postgres(Box<PostgresMirror>),
}

impl MirrorDatabase {
    /// Opens a mirror of this service, or creates it.
    pub(crate) async fn open(url: &DatabaseUrl, service: &str) -> anyhow::Result<Self> {
        let name = match url {
            DatabaseUrl::Sqlite(path) => path.display().to_string(),
            DatabaseUrl::Postgres(url) => url.to_string(),
        };
        let opened = match url {
            DatabaseUrl::Sqlite(path) => {
                let path = path.clone();
                run_blocking(move || SqliteMirror::open(&path))
                    .await
                    .map(|(mirror, position)| (Target::Sqlite(Arc::new(Mutex::new(mirror))), position))
            }
            DatabaseUrl::Postgres(url) => PostgresMirror::open(url)
                .await
                .map(|(mirror, position)| (Target::Postgres(Box::new(mirror)), position)),
        };
        let (target, mut position) = opened.map_err(|failure| failure.for_target(&name))?;
        if !position.since.is_empty() && position.service != service {
            bail!(
                "{name} is a mirror of {}: choose another --output, or, if only the address has changed, run there \
                 UPDATE mirror_position SET service = '{service}'; nothing was changed",
                position.service
            );
        }
        service.clone_into(&mut position.service);
        Ok(Self { target, name, position })
    }

    /// The position from which to continue; `None` in a new mirror.
    pub(crate) fn since(&self) -> Option<&str> {
        Some(self.position.since.as_str()).filter(|since| !since.is_empty())
    }

    /// The target, without a password.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Writes changes and the position after them in one transaction. Returns how many batches were deleted because they
    /// were not seen when everything was read again.
    pub(crate) async fn apply(&mut self, changes: MirrorChanges) -> anyhow::Result<u64> {
        let (next, resync) = self.position.after(&changes);
        let since = self.position.since.clone();
        let applied = match &mut self.target {
            Target::Sqlite(mirror) => {
                let (mirror, next) = (Arc::clone(mirror), next.clone());
                run_blocking(move || {
                    let mut mirror = mirror.lock().unwrap_or_else(PoisonError::into_inner);
                    mirror.apply(&changes, &since, &next, resync)
                })
                .await
            }
            Target::Postgres(mirror) => mirror.apply(&changes, &since, &next, resync).await,
        };
        let removed = applied.map_err(|failure| failure.for_target(&self.name))?;
        self.position = next;
        Ok(removed)
    }
}

/// Off the runtime's threads: SQLite may wait a minute for its lock.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|panicked| Err(Failure::Other(panicked.to_string())))
}

impl Failure {
    fn for_target(self, target: &str) -> anyhow::Error {
        match self {
            Failure::NotAMirror => {
                anyhow!("{target} exists and is not a mirror: choose another --output; nothing was changed")
            }
            Failure::Conflict => {
                anyhow!("another process writes to {target}: run only one `batchscan mirror` for it")
            }
            Failure::Other(cause) => anyhow!("cannot use {target}: {cause}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    /// On one thread: what releases the lock runs while the mirror waits for it.
    #[tokio::test]
    async fn a_mirror_that_waits_for_sqlite_does_not_stop_other_tasks() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mirror.db");
        let url = DatabaseUrl::Sqlite(path.clone());
        let mut mirror = MirrorDatabase::open(&url, "http://service").await.unwrap();
        let reader = Connection::open(&path).unwrap();
        reader.execute_batch("BEGIN IMMEDIATE").unwrap();
        let release = async { reader.execute_batch("COMMIT").unwrap() };
        let batch = r#"{"batch_id":"a","batch_name":"n","batch_creation_date":"1970-01-01T00:00:00Z",
                        "number_of_images":1,"warnings":false}"#;
        let batches = vec![Batch::from_json(batch).unwrap()];
        let since = "1".to_owned();
        let changes = MirrorChanges { batches, removed: Vec::new(), since, more: false, restarts: false };
        let (applied, ()) = tokio::join!(mirror.apply(changes), release);
        applied.unwrap();
        let rows: i64 = reader.query_row("SELECT count(*) FROM batches", [], |row| row.get(0)).unwrap();
        assert_eq!(rows, 1);
    }
}
