//! The file's own name: whether it may be taken, and taking it in one step.

use std::ffi::OsString;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

/// Journals and records are some hundred bytes, and a cursor.
const SMALL_BYTES_MAX: u64 = 256 * 1024;

/// Where a pull goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Standard output.
    Stdout,
    /// A file of this name.
    File(PathBuf),
}

impl Place {
    /// What `--output` names. A link is followed: its target is what gets replaced, not the link.
    pub(crate) fn new(output: &Path) -> anyhow::Result<Self> {
        if output == Path::new("-") {
            return Ok(Place::Stdout);
        }
        if output.is_symlink() {
            let cannot = || format!("cannot follow the link {}", output.display());
            return Ok(Place::File(std::fs::canonicalize(output).with_context(cannot)?));
        }
        Ok(Place::File(output.to_owned()))
    }
}

/// Makes sure, before anything is asked of a service, that a name can be taken at the end.
pub(crate) fn check_free(path: &Path, may_replace: bool) -> anyhow::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.exists()) {
        bail!("there is no folder {}; make it first", folder.display());
    }
    let Ok(there) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if there.is_dir() {
        bail!("{} is a folder; name a file in it", path.display());
    }
    if !there.is_file() {
        bail!("{} is not a regular file; use --output - and a pipe", path.display());
    }
    if !may_replace {
        bail!("{} exists; --force replaces it", path.display());
    }
    Ok(())
}

/// Gives a whole file its own name.
pub(crate) fn take(from: &Path, path: &Path, may_replace: bool) -> anyhow::Result<()> {
    check_free(path, may_replace)?;
    let cannot = || format!("cannot name {} {}", from.display(), path.display());
    if !may_replace {
        match renameat_with(CWD, from, CWD, path, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(()),
            Err(Errno::EXIST) => bail!("{} exists; --force replaces it", path.display()),
            // Not every file system can promise it; the look before has to do there.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
            Err(error) => return Err(error).with_context(cannot),
        }
    }
    if let Ok(there) = std::fs::metadata(path) {
        // Whoever may read the old file, and nobody else, may read the new one.
        std::fs::set_permissions(from, there.permissions()).with_context(cannot)?;
    }
    std::fs::rename(from, path).with_context(cannot)
}

/// The name of a file that belongs to another: `a.csv.part` to `a.csv`.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    name.into()
}

/// Writes a small file in one step: beside its name first, then under it. No link is followed.
pub(crate) fn write_small(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let new = beside(path, ".new");
    // What a pull that was killed has left, or somebody put there.
    let _ = std::fs::remove_file(&new);
    let written = File::create_new(&new).and_then(|mut file| file.write_all(bytes));
    let moved = written.and_then(|()| std::fs::rename(&new, path));
    moved.inspect_err(|_| drop(std::fs::remove_file(&new)))
}

/// Reads a small file that a pull has written; nothing if there is none.
pub(crate) fn read_small(path: &Path) -> std::io::Result<Option<Vec<u8>>> {
    let there = match std::fs::symlink_metadata(path) {
        Ok(there) => there,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !there.is_file() || there.len() > SMALL_BYTES_MAX {
        return Err(ErrorKind::InvalidData.into());
    }
    std::fs::read(path).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_taken_is_kept_unless_told_otherwise() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("a.part"), folder.path().join("a"));
        std::fs::write(&from, "new").unwrap();
        std::fs::write(&to, "old").unwrap();
        let error = take(&from, &to, false).unwrap_err().to_string();
        assert!(error.ends_with("exists; --force replaces it"), "{error}");
        assert_eq!(std::fs::read(&to).unwrap(), b"old");
        take(&from, &to, true).unwrap();
        assert_eq!(std::fs::read(&to).unwrap(), b"new");
    }

    #[test]
    fn folders_and_devices_are_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        assert!(check_free(folder.path(), true).unwrap_err().to_string().contains("is a folder"));
        assert!(
            check_free(Path::new("/dev/null"), true).unwrap_err().to_string().contains("not a regular file")
        );
    }
}
