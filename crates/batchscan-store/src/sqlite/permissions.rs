//! Who may open the file: its owner. In a folder that gives its files to its group (mode 2770), also the group.

use std::fs::{OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;

const SETS_GROUP_AND_GROUP_WRITES: u32 = 0o2020;

/// Creates the file before SQLite does, so that other users can never read it.
pub(super) fn create(path: &Path, folder: &Path) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let folder = folder.metadata()?;
    // What root creates in the folder of the service belongs to the service.
    if file.metadata()?.uid() == 0 && folder.uid() != 0 {
        fchown(&file, Some(folder.uid()), Some(folder.gid()))?;
    }
    if is_shared(folder.mode()) {
        file.set_permissions(Permissions::from_mode(0o660))?;
    }
    Ok(())
}

/// What to change, if other users can open the file.
pub(super) fn check(path: &Path) -> Option<String> {
    let folder = path.parent().and_then(|folder| folder.metadata().ok()).map_or(0, |folder| folder.mode());
    let (others, right) = if is_shared(folder) { (0o007, "660") } else { (0o077, "600") };
    let is_open = path.metadata().ok()?.mode() & others != 0;
    is_open.then(|| format!("{0} can be opened by other users: run `chmod {right} {0}`", path.display()))
}

fn is_shared(folder_mode: u32) -> bool {
    folder_mode & SETS_GROUP_AND_GROUP_WRITES == SETS_GROUP_AND_GROUP_WRITES
}
