//! The output file's name: whether it is free, and the rename in one step.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

/// Journals have a few hundred bytes and a cursor.
const SMALL_BYTES_MAX: u64 = 256 * 1024;

/// The file of `--output`, unless it is standard output. A symbolic link is followed, so that the link stays a link.
pub(crate) fn file_of(output: &Path) -> anyhow::Result<Option<PathBuf>> {
    if output == Path::new("-") {
        return Ok(None);
    }
    if output.is_symlink() {
        let cannot = || format!("cannot follow the link {}", output.display());
        return std::fs::canonicalize(output).map(Some).with_context(cannot);
    }
    Ok(Some(output.to_owned()))
}

/// Checks that a file can be created or replaced.
pub(crate) fn check_free(path: &Path, may_replace: bool) -> anyhow::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.exists()) {
        bail!("folder {} does not exist; create it first", folder.display());
    }
    let Ok(metadata) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if metadata.is_dir() {
        bail!("{} is a folder; name a file in it", path.display());
    }
    if !metadata.is_file() {
        bail!("{} is not a regular file; use --output - and a pipe", path.display());
    }
    if !may_replace {
        bail!("{} already exists; use --force to replace it", path.display());
    }
    Ok(())
}

pub(crate) fn rename(from: &Path, path: &Path, may_replace: bool) -> anyhow::Result<()> {
    check_free(path, may_replace)?;
    let cannot = || format!("cannot rename {} to {}", from.display(), path.display());
    if !may_replace {
        match renameat_with(CWD, from, CWD, path, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(()),
            Err(Errno::EXIST) => bail!("{} already exists; use --force to replace it", path.display()),
            // Not supported by every file system. The check above is the best we can do there.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
            Err(error) => return Err(error).with_context(cannot),
        }
    }
    if let Ok(old) = std::fs::metadata(path) {
        // The new file keeps the permissions of the old one.
        std::fs::set_permissions(from, old.permissions()).with_context(cannot)?;
    }
    std::fs::rename(from, path).with_context(cannot)
}

/// Reads a small file that a pull has written; `None` if there is none.
pub(super) fn read_small(path: &Path) -> std::io::Result<Option<Vec<u8>>> {
    let metadata = match std::fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !metadata.is_file() || metadata.len() > SMALL_BYTES_MAX {
        return Err(ErrorKind::InvalidData.into());
    }
    std::fs::read(path).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_existing_file_is_replaced_only_if_allowed() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("a.part"), folder.path().join("a"));
        std::fs::write(&from, "new").unwrap();
        std::fs::write(&to, "old").unwrap();
        let error = rename(&from, &to, false).unwrap_err().to_string();
        assert!(error.ends_with("already exists; use --force to replace it"), "{error}");
        assert_eq!(std::fs::read(&to).unwrap(), b"old");
        rename(&from, &to, true).unwrap();
        assert_eq!(std::fs::read(&to).unwrap(), b"new");
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
