//! A new file that gets its name only when it is complete.

use std::fmt::Display;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

use crate::errors::AdminError;

/// A file that is being written, readable by its owner only. Removed if it is not finished.
#[derive(Debug)]
pub(crate) struct NewFile {
    path: PathBuf,
    partial: NamedTempFile,
}

impl NewFile {
    /// Fails if the name is taken.
    pub(crate) fn create(path: &Path) -> Result<Self, AdminError> {
        if path.exists() {
            return Err(AdminError::TargetExists(path.to_owned()));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let partial = Builder::new()
            .prefix(&format!("{name}."))
            .suffix(".partial")
            .permissions(Permissions::from_mode(0o600))
            .tempfile_in(folder)
            .map_err(|error| unwritable(path, &error))?;
        Ok(Self { path: path.to_owned(), partial })
    }

    /// Where it is until it is complete.
    pub(crate) fn partial_path(&self) -> &Path {
        self.partial.path()
    }

    /// Why it cannot be written. Names the file instead of its temporary name.
    pub(crate) fn error(&self, cause: &impl Display) -> AdminError {
        let (path, partial) = (self.path.display().to_string(), self.partial_path().display().to_string());
        let cause = cause.to_string().replace(&partial, &path);
        AdminError::TargetUnwritable { path: self.path.clone(), cause }
    }

    /// Gives the file its name, unless that was taken meanwhile. Returns its size in bytes.
    pub(crate) fn finish(self) -> Result<u64, AdminError> {
        let Self { path, partial } = self;
        let file = partial.as_file();
        let synced = file.sync_all().and_then(|()| file.metadata());
        let bytes = synced.map_err(|error| unwritable(&path, &error))?.len();
        partial.persist_noclobber(&path).map_err(|failed| match failed.error.kind() {
            std::io::ErrorKind::AlreadyExists => AdminError::TargetExists(path.clone()),
            _ => unwritable(&path, &failed.error),
        })?;
        Ok(bytes)
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> AdminError {
    AdminError::TargetUnwritable { path: path.to_owned(), cause: error.to_string() }
}
