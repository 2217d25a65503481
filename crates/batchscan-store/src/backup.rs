//! Backups: the whole database as one SQLite file.

use std::path::Path;

use crate::dump::DumpFilter;
use crate::errors::{AdminError, OpenError};
use crate::new_file::NewFile;
use crate::sqlite::SqliteStore;
use crate::store::{Database, Store};
use crate::types::{OpenOptions, Progress};

impl Store {
    /// Writes a snapshot of the whole database to a new SQLite file. Returns its size in bytes.
    pub async fn backup(&self, to: &Path, progress: Progress) -> Result<u64, AdminError> {
        match &self.database {
            Database::Sqlite(store) => store.backup(to, progress).await,
            Database::Postgres(_) => {
                let file = NewFile::create(to)?;
                dump_into(self, &file, progress).await?;
                file.finish()
            }
        }
    }
}

async fn dump_into(store: &Store, file: &NewFile, progress: Progress) -> Result<(), AdminError> {
    let target = SqliteStore::open(file.partial_path(), OpenOptions::FOR_COPY).await;
    let target = target.map_err(|error| match error {
        OpenError::DiskFull => AdminError::DiskFull,
        OpenError::Unwritable { cause, .. } => file.error(&cause),
        error => file.error(&error),
    })?;
    let target = Store::new(Database::Sqlite(target));
    let total = store.orgs().await?.iter().map(|org| org.batches).sum();
    store
        .copy_into(&target, DumpFilter { orgs: None, with_admin: true }, &|done| progress(done, total))
        .await?;
    // Dropping the last connection merges the write-ahead log into the file.
    target.finish_copy().await
}
