//! Backups: the whole database as one SQLite file.

use std::fs::OpenOptions as FileOptions;
use std::path::Path;

use batchscan_model::UtcInstant;

use crate::change::Change;
use crate::dump::DumpFilter;
use crate::errors::{AdminError, OpenError, unwritable};
use crate::platform;
use crate::sqlite::{self, SqliteStore};
use crate::store::{Database, Store};
use crate::types::{OpenOptions, Progress};

impl Store {
    /// Writes a snapshot of the whole database to a new or empty SQLite file, which only its owner can read.
    pub async fn backup(&self, to: &Path, progress: Progress) -> Result<(), AdminError> {
        let file = platform::private(FileOptions::new().write(true).create(true).truncate(false)).open(to);
        let bytes = file.and_then(|file| file.metadata()).map_err(|error| unwritable(to, &error))?.len();
        if bytes > 0 {
            return Err(AdminError::TargetExists(to.to_owned()));
        }
        match &self.database {
            Database::Sqlite(store) => store.backup(to, progress).await,
            Database::Postgres(_) => dump_into(self, to, progress).await,
        }
    }

    /// Records a backup in its own audit log: a database that is restored from it had this backup.
    pub async fn record_in_backup(backup: &Path, to: &Path, now: UtcInstant) -> Result<(), AdminError> {
        open_copy(backup).await?.record_backup(to, now).await
    }

    /// Records a backup in the audit log.
    pub async fn record_backup(&self, to: &Path, now: UtcInstant) -> Result<(), AdminError> {
        self.record("backup", to, now).await
    }

    /// Records in the audit log that this database was restored from a backup.
    pub async fn record_restore(&self, backup: &Path, now: UtcInstant) -> Result<(), AdminError> {
        self.record("restore", backup, now).await
    }

    async fn record(&self, action: &'static str, path: &Path, now: UtcInstant) -> Result<(), AdminError> {
        let path = path.display().to_string();
        self.change(now, async move |_| Ok(((), vec![Change::new(action, &path)]))).await
    }

    /// Whether another process has this SQLite database open. `false` for a file that cannot be read.
    pub fn is_in_use(path: &Path) -> bool {
        sqlite::is_in_use(path)
    }
}

async fn dump_into(store: &Store, to: &Path, progress: Progress) -> Result<(), AdminError> {
    let target = open_copy(to).await?;
    let total = store.orgs().await?.iter().map(|org| org.batches).sum();
    let all = DumpFilter { orgs: None, with_admin: true };
    store.copy_into(&target, all, &|done| progress(done, total)).await?;
    // Dropping the last connection merges the write-ahead log into the file.
    target.finish_copy().await
}

/// Dropping it merges the write-ahead log into the file.
async fn open_copy(path: &Path) -> Result<Store, AdminError> {
    let copy = SqliteStore::open(path, OpenOptions::FOR_COPY).await.map_err(|error| match error {
        OpenError::DiskFull => AdminError::DiskFull,
        OpenError::Unwritable { cause, .. } => unwritable(path, &cause),
        error => unwritable(path, &error),
    })?;
    Ok(Store::new(Database::Sqlite(copy)))
}
