//! Files that get their name only when they are complete: readers see the old content or the new one, also after a crash.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::bail;
use batchscan_store::platform::private;
use tempfile::TempPath;

use crate::platform;

/// The end of the temporary name.
const PARTIAL: &str = ".batchscan-partial";

/// The ends of the files that SQLite writes next to a database.
const SIDE_FILES: [&str; 3] = ["-journal", "-shm", "-wal"];

/// A file that is being written. Removed if it is not finished; after a crash, the next one of that name removes it.
#[derive(Debug)]
pub(crate) struct NewFile {
    path: PathBuf,
    /// Removed before the partial file, while no other process can create one.
    _side_files: SideFiles,
    partial: TempPath,
    /// Locked, so that two processes do not write the same file.
    file: File,
}

impl NewFile {
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        Self::open(path, OpenOptions::new().write(true).create_new(true))
    }

    /// A file that only its owner can read. Removes what killed processes have left in the folder, under any name.
    pub(crate) fn create_private(path: &Path) -> io::Result<Self> {
        for entry in fs::read_dir(folder_of(path))? {
            let entry = entry?;
            if entry.file_name().to_str().is_some_and(|name| name.ends_with(PARTIAL)) {
                remove_left(&entry.path())?;
            }
        }
        Self::open_private(path)
    }

    /// Where it is until it is complete.
    pub(crate) fn partial_path(&self) -> &Path {
        &self.partial
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the file its name, which must be free unless `may_replace`. Keeps the permissions of a replaced file.
    pub(crate) fn finish(self, may_replace: bool) -> io::Result<()> {
        if !may_replace {
            return self.partial.persist_noclobber(&self.path).map_err(|failed| failed.error);
        }
        if let Ok(old) = fs::metadata(&self.path) {
            self.file.set_permissions(old.permissions())?;
        }
        self.replace()
    }

    fn open_private(path: &Path) -> io::Result<Self> {
        Self::open(path, private(OpenOptions::new().write(true).create_new(true)))
    }

    fn open(path: &Path, options: &OpenOptions) -> io::Result<Self> {
        let busy = || io::Error::new(ErrorKind::ResourceBusy, "another process is writing it");
        let partial = with_suffix(path, PARTIAL);
        remove_left(&partial)?;
        let file = options.open(&partial).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => busy(),
            _ => error,
        })?;
        // Before it was locked, another process may have removed it.
        if !platform::lock_new_file(&file, &partial) {
            return Err(busy());
        }
        let _side_files = SideFiles(partial.clone());
        Ok(Self { path: path.to_owned(), _side_files, partial: TempPath::try_from_path(partial)?, file })
    }

    fn replace(mut self) -> io::Result<()> {
        // Not `persist`, which fails on Windows while a program reads the old file.
        fs::rename(&self.partial, &self.path)?;
        self.partial.disable_cleanup(true);
        Ok(())
    }
}

/// What SQLite may leave next to a partial file after an error.
#[derive(Debug)]
struct SideFiles(PathBuf);

impl Drop for SideFiles {
    fn drop(&mut self) {
        for suffix in SIDE_FILES {
            let _ = fs::remove_file(with_suffix(&self.0, suffix));
        }
    }
}

/// Writes a file that can be recreated. Does not wait for the disk.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut new = NewFile::create(path)?;
    new.file.write_all(bytes)?;
    new.replace()
}

/// Writes a file that only its owner can read, and that survives a power failure.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut new = NewFile::open_private(path)?;
    new.file.write_all(bytes)?;
    new.file.sync_all()?;
    new.replace()?;
    // The rename must reach the disk as well.
    platform::sync_folder(folder_of(path))
}

/// Checks that a file of `--output` can be created or replaced.
pub(crate) fn check_free(path: &Path, may_replace: bool) -> anyhow::Result<()> {
    let folder = folder_of(path);
    if !folder.exists() {
        bail!("folder {} does not exist; create it first", folder.display());
    }
    if path.file_name().is_some_and(|name| !platform::is_valid_name(name)) {
        bail!("{} is not a valid file name on this system", path.display());
    }
    let Ok(metadata) = fs::symlink_metadata(path) else { return Ok(()) };
    if metadata.is_dir() {
        bail!("{} is a folder; name a file in it", path.display());
    }
    if !metadata.is_file() {
        bail!("{} is not a regular file; use --output - and a pipe", path.display());
    }
    if !may_replace {
        bail!("{} already exists; use --force to replace it", path.display());
    }
    if platform::is_in_use(path) {
        bail!("{} is open in another program; close it there first", path.display());
    }
    Ok(())
}

pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The path with an ending added: `a.csv` and `.txt` become `a.csv.txt`.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// Removes what a killed process has left, but not a file that is being written.
fn remove_left(partial: &Path) -> io::Result<()> {
    if !fs::symlink_metadata(partial).is_ok_and(|metadata| metadata.is_file()) {
        return Ok(());
    }
    platform::remove_abandoned(partial, || drop(SideFiles(partial.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_existing_file_is_replaced_only_if_allowed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let new = || {
            let mut new = NewFile::create(&path).unwrap();
            new.file.write_all(b"new").unwrap();
            new
        };
        fs::write(&path, "old").unwrap();
        assert_eq!(new().finish(false).unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        new().finish(true).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn one_process_writes_and_what_a_killed_one_left_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let new = NewFile::create(&path).unwrap();
        assert_eq!(write(&path, b"other").unwrap_err().kind(), ErrorKind::ResourceBusy);
        drop(new);
        fs::write(with_suffix(&path, PARTIAL), "left").unwrap();
        write(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_with_the_temporary_name_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, precious) = (folder.path().join("a"), folder.path().join("precious"));
        fs::write(&precious, "mine").unwrap();
        std::os::unix::fs::symlink(&precious, with_suffix(&path, PARTIAL)).unwrap();
        assert!(write(&path, b"new").is_err());
        assert_eq!(fs::read(&precious).unwrap(), b"mine");
    }

    #[test]
    fn folders_and_devices_are_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        for (path, expected) in
            [(folder.path(), "is a folder"), (Path::new("/dev/null"), "not a regular file")]
        {
            assert!(check_free(path, true).unwrap_err().to_string().contains(expected));
        }
    }
}
