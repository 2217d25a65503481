//! A backup of a database that is not a file: one snapshot of it, as a file.

use std::path::{Path, PathBuf};

use super::sqlite::SqliteStore;
use super::{AdminError, OpenError, Progress, Store, StoreError, Which};

/// Dumps `store` into a new SQLite file, under another name until it is whole. Gives its size in bytes.
pub(super) async fn into_file(store: &Store, to: &Path, progress: Progress) -> Result<u64, AdminError> {
    if to.exists() {
        return Err(AdminError::TargetExists(to.to_owned()));
    }
    let partial = PathBuf::from(format!("{}.partial", to.display()));
    let unwritable =
        |path: &Path, cause: String| AdminError::TargetUnwritable { path: path.to_owned(), cause };
    remove(&partial);
    let written = write(store, &partial, progress).await;
    let renamed = written.and_then(|()| {
        std::fs::rename(&partial, to).map_err(|error| unwritable(to, error.to_string()))?;
        std::fs::metadata(to).map(|file| file.len()).map_err(|error| unwritable(to, error.to_string()))
    });
    if renamed.is_err() {
        remove(&partial);
    }
    renamed
}

async fn write(store: &Store, to: &Path, progress: Progress) -> Result<(), AdminError> {
    let unopened = |error: OpenError| match error {
        OpenError::DiskFull => AdminError::DiskFull,
        error => AdminError::TargetUnwritable { path: to.to_owned(), cause: error.to_string() },
    };
    let file = Store::Sqlite(SqliteStore::open(to, true).await.map_err(unopened)?);
    let total = store.orgs().await?.iter().map(|org| org.batches).sum();
    store.pour_into(&file, Which::All, &|done| progress(done, total)).await?;
    drop(file);
    synced(to).map_err(|error| StoreError::Broken(error.to_string()))?;
    Ok(())
}

/// Folded into one file by the last connection's end; and safe from a power cut before it takes its name.
fn synced(path: &Path) -> std::io::Result<()> {
    std::fs::OpenOptions::new().write(true).open(path)?.sync_all()
}

fn remove(partial: &Path) {
    for ending in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{ending}", partial.display()));
    }
}
