//! Backups: a file that has its name only when it is whole; and one snapshot of a database that is not a file, as one.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::sqlite::SqliteStore;
use crate::{AdminError, OpenError, Opening, Progress, Store, Which};

/// Dumps `store` into a new SQLite file. Gives its size in bytes.
pub(super) async fn into_file(store: &Store, to: &Path, progress: Progress) -> Result<u64, AdminError> {
    let file = NewFile::begin(to)?;
    write(store, file.path(), progress).await?;
    file.finish()
}

async fn write(store: &Store, to: &Path, progress: Progress) -> Result<(), AdminError> {
    let unopened = |error: OpenError| match error {
        OpenError::DiskFull => AdminError::DiskFull,
        error => AdminError::TargetUnwritable { path: to.to_owned(), cause: error.to_string() },
    };
    let file = Store::Sqlite(SqliteStore::open(to, Opening::FOR_COPY).await.map_err(unopened)?);
    let total = store.orgs().await?.iter().map(|org| org.batches).sum();
    store.pour_into(&file, Which::All, &|done| progress(done, total)).await?;
    // The last connection's end folds everything into the one file.
    file.finish_copy().await
}

/// A file in the making, readable by its owner alone. Gone, if it is not finished.
#[derive(Debug)]
pub(super) struct NewFile {
    to: PathBuf,
    partial: PathBuf,
}

impl NewFile {
    /// Refuses a name that is taken. The file has another one until it is whole, and no two have the same.
    pub(super) fn begin(to: &Path) -> Result<Self, AdminError> {
        if to.exists() {
            return Err(AdminError::TargetExists(to.to_owned()));
        }
        let partial = PathBuf::from(format!("{}.{}.partial", to.display(), std::process::id()));
        let file = Self { to: to.to_owned(), partial };
        // What a process of the same number left here when it was killed.
        file.remove();
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file.partial);
        made.map_err(|error| file.unwritable(&error))?;
        Ok(file)
    }

    /// Where it is until it is whole.
    pub(super) fn path(&self) -> &Path {
        &self.partial
    }

    /// Gives it its name, if that is still free, and says its size in bytes.
    pub(super) fn finish(self) -> Result<u64, AdminError> {
        let failed = |error: std::io::Error| self.unwritable(&error);
        let file = OpenOptions::new().write(true).open(&self.partial).map_err(failed)?;
        file.sync_all().map_err(failed)?;
        // A link does not replace what has come there meanwhile, as a rename would.
        match std::fs::hard_link(&self.partial, &self.to) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                return Err(AdminError::TargetExists(self.to.clone()));
            }
            // Some file systems know no links.
            Err(_) => std::fs::rename(&self.partial, &self.to).map_err(failed)?,
            Ok(()) => {}
        }
        file.metadata().map(|file| file.len()).map_err(failed)
    }

    fn unwritable(&self, error: &std::io::Error) -> AdminError {
        AdminError::TargetUnwritable { path: self.to.clone(), cause: error.to_string() }
    }

    fn remove(&self) {
        for ending in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{ending}", self.partial.display()));
        }
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        self.remove();
    }
}
