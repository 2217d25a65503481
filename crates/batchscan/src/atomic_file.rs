//! Replaces a small file in one step: readers see the old content or the new one, also after a crash.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Writes a file that can be recreated. Does not wait for the disk.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace(path, bytes, 0o666, |_| Ok(()))
}

/// Writes a file that only its owner can read, and that survives a power failure.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace(path, bytes, 0o600, File::sync_all)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    // The rename must reach the disk as well.
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// The path with an ending added: `a.csv` and `.part` become `a.csv.part`.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

fn replace(path: &Path, bytes: &[u8], mode: u32, sync: fn(&File) -> io::Result<()>) -> io::Result<()> {
    let new = with_suffix(path, ".new");
    // Left by a killed process, or a link that must not be followed.
    let _ = std::fs::remove_file(&new);
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&new);
    let written = file.and_then(|mut file| file.write_all(bytes).and_then(|()| sync(&file)));
    let renamed = written.and_then(|()| std::fs::rename(&new, path));
    renamed.inspect_err(|_| drop(std::fs::remove_file(&new)))
}
