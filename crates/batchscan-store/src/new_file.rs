//! A new file that gets its name only when it is complete.

use std::fmt::Display;
use std::fs::{self, File, OpenOptions};
use std::io::{Error, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use tempfile::TempPath;

use crate::errors::AdminError;

/// The end of the temporary name.
const PARTIAL: &str = ".batchscan-partial";
/// The ends of the files that SQLite writes next to it.
const SIDE_FILES: [&str; 3] = ["-journal", "-shm", "-wal"];

/// A file that is being written, readable by its owner only. Removed if it is not finished; after a crash, the next one
/// in the same folder removes it.
#[derive(Debug)]
pub(crate) struct NewFile {
    path: PathBuf,
    /// Removed before the partial file, while no other process can create one.
    side_files: SideFiles,
    partial: TempPath,
    /// Locked, so that two processes do not write the same file.
    file: File,
}

impl NewFile {
    /// Fails if the name is taken.
    pub(crate) fn create(path: &Path) -> Result<Self, AdminError> {
        check_free(path)?;
        let partial = with_suffix(path, PARTIAL);
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let file = remove_left(folder.unwrap_or(Path::new("."))).and_then(|()| create_locked(&partial));
        let file = file.map_err(|error| unwritable(path, &error))?;
        let side_files = SideFiles(partial.clone());
        let partial = TempPath::try_from_path(partial).map_err(|error| unwritable(path, &error))?;
        Ok(Self { path: path.to_owned(), side_files, partial, file })
    }

    /// Where it is until it is complete.
    pub(crate) fn partial_path(&self) -> &Path {
        &self.partial
    }

    /// Why it cannot be written. Names the file instead of its temporary name.
    pub(crate) fn error(&self, cause: &impl Display) -> AdminError {
        let (path, partial) = (self.path.display().to_string(), self.partial_path().display().to_string());
        let cause = cause.to_string().replace(&partial, &path);
        AdminError::TargetUnwritable { path: self.path.clone(), cause }
    }

    /// Gives the file its name, unless that was taken meanwhile. Returns its size in bytes.
    pub(crate) fn finish(self) -> Result<u64, AdminError> {
        let Self { path, side_files: _side_files, partial, file } = self;
        let synced = file.sync_all().and_then(|()| file.metadata());
        let bytes = synced.map_err(|error| unwritable(&path, &error))?.len();
        check_free(&path)?;
        partial.persist_noclobber(&path).map_err(|failed| match failed.error.kind() {
            ErrorKind::AlreadyExists => AdminError::TargetExists(path.clone()),
            _ => unwritable(&path, &failed.error),
        })?;
        Ok(bytes)
    }
}

/// What SQLite may leave next to the partial file after an error.
#[derive(Debug)]
struct SideFiles(PathBuf);

impl Drop for SideFiles {
    fn drop(&mut self) {
        for suffix in SIDE_FILES {
            let _ = fs::remove_file(with_suffix(&self.0, suffix));
        }
    }
}

/// Fails if there is such a file, or one that SQLite would take for its write-ahead log or journal.
fn check_free(path: &Path) -> Result<(), AdminError> {
    for suffix in ["", "-wal", "-journal"] {
        let taken = with_suffix(path, suffix);
        if taken.symlink_metadata().is_ok() {
            return Err(AdminError::TargetExists(taken));
        }
    }
    Ok(())
}

/// Creates an empty file that no one else can read.
fn create_locked(path: &Path) -> Result<File, Error> {
    let busy = || Error::new(ErrorKind::ResourceBusy, "another process is writing it");
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path);
    let file = file.map_err(|error| if error.kind() == ErrorKind::AlreadyExists { busy() } else { error })?;
    file.try_lock().map_err(|_| busy())?;
    // Before it was locked, another process may have removed it.
    if inode(path) == Some(file.metadata()?.ino()) { Ok(file) } else { Err(busy()) }
}

/// Removes what crashed processes have left. Files that are being written are locked.
fn remove_left(folder: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let is_ours = entry.file_name().to_str().is_some_and(|name| name.ends_with(PARTIAL));
        if !is_ours || !entry.file_type()?.is_file() {
            continue;
        }
        let path = entry.path();
        let Ok(file) = File::open(&path) else { continue };
        if file.try_lock().is_ok() && inode(&path) == Some(file.metadata()?.ino()) {
            for suffix in SIDE_FILES.into_iter().chain([""]) {
                match fs::remove_file(with_suffix(&path, suffix)) {
                    Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
        }
    }
    Ok(())
}

fn inode(path: &Path) -> Option<u64> {
    fs::metadata(path).map(|metadata| metadata.ino()).ok()
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

fn unwritable(path: &Path, error: &Error) -> AdminError {
    AdminError::TargetUnwritable { path: path.to_owned(), cause: error.to_string() }
}
