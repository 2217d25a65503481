//! What `--if-changed` remembers of the last pull: `FILE.pulled.json`, the ETag and how the file looked.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};

use super::{Settings, place};

/// A pull that was finished.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) settings: Settings,
    /// What the dates meant.
    pub(crate) from: Option<String>,
    pub(crate) to: Option<String>,
    pub(crate) etag: String,
    pub(crate) batches: u64,
    /// How the file looked when it was finished: one that was touched since is not what was pulled.
    bytes: u64,
    modified_nanos: i128,
}

impl Record {
    /// The record of a file, if there is one and the file is as it was left.
    pub(crate) fn of(file: &Path) -> Option<Self> {
        let record: Self = serde_json::from_slice(&place::read_small(&path_for(file)).ok()??).ok()?;
        let (bytes, modified_nanos) = look(file).ok()?;
        ((record.bytes, record.modified_nanos) == (bytes, modified_nanos)).then_some(record)
    }

    /// Whether a file was once pulled, whatever has become of it.
    pub(crate) fn is_of(file: &Path) -> bool {
        file.exists() && path_for(file).exists()
    }

    /// Remembers a file that has just been finished.
    pub(crate) fn write(
        file: &Path,
        settings: Settings,
        (from, to): (Option<String>, Option<String>),
        etag: String,
        batches: u64,
    ) -> anyhow::Result<()> {
        let path = path_for(file);
        let cannot = || format!("cannot write {}", path.display());
        let (bytes, modified_nanos) = look(file).with_context(cannot)?;
        let record = Self { settings, from, to, etag, batches, bytes, modified_nanos };
        place::write_small(&path, &serde_json::to_vec(&record)?).with_context(cannot)
    }

    /// Forgets a file that will not be what was remembered.
    pub(crate) fn forget(file: &Path) {
        let _ = std::fs::remove_file(path_for(file));
    }
}

fn path_for(file: &Path) -> PathBuf {
    place::beside(file, ".pulled.json")
}

fn look(file: &Path) -> std::io::Result<(u64, i128)> {
    let there = std::fs::metadata(file)?;
    Ok((there.len(), i128::from(there.mtime()) * 1_000_000_000 + i128::from(there.mtime_nsec())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_touched_is_not_what_was_pulled() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.csv");
        let settings = Settings {
            url: "http://a".into(),
            client_id: "i".into(),
            start_date: None,
            end_date: None,
            format: "csv".into(),
        };
        std::fs::write(&file, "one").unwrap();
        Record::write(&file, settings, (None, None), "W/\"1\"".into(), 1).unwrap();
        assert_eq!(Record::of(&file).unwrap().etag, "W/\"1\"");
        std::fs::write(&file, "another").unwrap();
        assert_eq!(Record::of(&file), None);
        std::fs::remove_file(&file).unwrap();
        assert_eq!(Record::of(&file), None);
    }
}
