//! Watched folders: each `batchscan watch` reports from time to time, so that `status` notices one that has died.

use batchscan_model::{OrgId, UtcInstant};

use crate::change::{Change, check_token};
use crate::errors::{AdminError, StoreError};
use crate::organisations::{lock_org, org_id};
use crate::sql::{Columns, Sql, invalid, values};
use crate::store::{End, Store};

/// A watcher without a report for longer has died, or waits for an import into SQLite, which has one writer.
pub const WATCHER_TIMEOUT_SECS: i64 = 5 * 60;
/// Bytes of the name of a host, and of a folder: together they are a key, which PostgreSQL limits to 2,700 bytes.
pub const HOST_BYTES_MAX: usize = 255;
/// See [`HOST_BYTES_MAX`].
pub const FOLDER_BYTES_MAX: usize = 2_000;
/// Watchers of an organisation that are kept: those with the last reports.
const WATCHERS_MAX: i64 = 100;

/// A watcher, as it reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watcher {
    /// Its host.
    pub host: String,
    /// Its folder.
    pub folder: String,
    /// What it does.
    pub state: WatcherState,
    /// Numbers of files, and why they wait.
    pub detail: String,
    /// When it reported.
    pub seen_at: UtcInstant,
}

/// What a watcher does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatcherState {
    /// It imports files.
    Running,
    /// Files wait because of a problem.
    Waiting,
    /// An operator has stopped it.
    Stopped,
}

impl WatcherState {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Running, Self::Waiting, Self::Stopped];

    /// As it is stored and shown.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Stopped => "stopped",
        }
    }

    /// The state with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

impl Store {
    /// Records what a watcher reports. Gives up early if the database is locked: the next report follows soon.
    pub async fn record_watcher(&self, org: &str, watcher: Watcher) -> Result<(), AdminError> {
        let (org, actor) = (org.to_owned(), self.actor());
        self.change_quickly(async move |sql| {
            let org = org_id(sql, &org).await?;
            let Watcher { host, folder, state, detail, seen_at } = watcher;
            let record = "INSERT INTO watcher (org_id, host, folder, state, detail, seen_at) VALUES ($1, $2, $3, $4, $5, $6)
                          ON CONFLICT (org_id, host, folder) DO UPDATE
                          SET state = excluded.state, detail = excluded.detail, seen_at = excluded.seen_at";
            sql.execute(record, values![org, host, folder, state.name(), detail, seen_at]).await?;
            let oldest = "DELETE FROM watcher WHERE org_id = $1 AND seen_at <=
                          (SELECT seen_at FROM watcher WHERE org_id = $1 ORDER BY seen_at DESC LIMIT 1 OFFSET $2)";
            sql.execute(oldest, values![org, WATCHERS_MAX]).await?;
            // An import locks the organisation before the token, as the rows of this one do.
            check_token(sql, &actor, seen_at).await?;
            Ok(End::Commit(()))
        })
        .await
    }

    /// Forgets the watchers of an organisation that were stopped or have died. Returns their number.
    pub async fn forget_watchers(&self, org: &str, now: UtcInstant) -> Result<u64, AdminError> {
        let name = org.to_owned();
        self.change(now, async move |sql| {
            let org = lock_org(sql, &name).await?;
            let forget = "DELETE FROM watcher WHERE org_id = $1 AND (state = $2 OR seen_at < $3)";
            let dead = now.plus_secs(-WATCHER_TIMEOUT_SECS);
            let forgotten = sql.execute(forget, values![org, WatcherState::Stopped.name(), dead]).await?;
            Ok((forgotten, vec![Change::of_org("watchers forget", &name)]))
        })
        .await
    }
}

/// The watchers of an organisation, by host and folder.
pub(crate) async fn all(sql: &mut dyn Sql, org: OrgId) -> Result<Vec<Watcher>, AdminError> {
    let query =
        "SELECT host, folder, state, detail, seen_at FROM watcher WHERE org_id = $1 ORDER BY host, folder";
    sql.all(query, values![org], watcher).await
}

fn watcher(row: &dyn Columns) -> Result<Watcher, StoreError> {
    Ok(Watcher {
        host: row.string(0)?,
        folder: row.string(1)?,
        state: row.text(2)?.and_then(WatcherState::parse).ok_or_else(|| invalid("state"))?,
        detail: row.string(3)?,
        seen_at: row.instant(4)?,
    })
}
