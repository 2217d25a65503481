//! `FILE.pulled.json`: the ETag and the size and time of the file after the last pull, for `--if-changed`.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};

use super::journal::{Journal, Settings};
use super::target;
use crate::atomic_file::{self, with_suffix};

/// A completed pull.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LastPull {
    pub(crate) settings: Settings,
    /// The instants of the date range.
    pub(crate) from: Option<String>,
    pub(crate) to: Option<String>,
    pub(crate) etag: String,
    pub(crate) batches: u64,
    /// Size and time of the file, to detect later changes.
    bytes: u64,
    modified_nanos: i128,
}

impl LastPull {
    /// The last pull of a file, if the file has not changed since.
    pub(crate) fn read(file: &Path) -> anyhow::Result<Option<Self>> {
        let (Ok(size_and_time), path) = (size_and_time(file), path_for(file)) else { return Ok(None) };
        let text = target::read_small(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let Some(text) = text else { return Ok(None) };
        let last: Self = serde_json::from_slice(&text).with_context(|| {
            let (state, file) = (path.display(), file.display());
            format!("{state}, the state of the last pull, is damaged; use --force to replace it and {file}")
        })?;
        Ok(((last.bytes, last.modified_nanos) == size_and_time).then_some(last))
    }

    /// Whether a file was pulled before, changed or not.
    pub(crate) fn exists(file: &Path) -> bool {
        file.exists() && path_for(file).exists()
    }

    /// Saves the state of a file that is now complete.
    pub(crate) fn write(file: &Path, journal: Journal, etag: String) -> anyhow::Result<()> {
        let path = path_for(file);
        let cannot = || format!("cannot write {}", path.display());
        let (bytes, modified_nanos) = size_and_time(file).with_context(cannot)?;
        let Journal { settings, from, to, batches, .. } = journal;
        let last = Self { settings, from, to, etag, batches, bytes, modified_nanos };
        atomic_file::write(&path, &serde_json::to_vec(&last)?).with_context(cannot)
    }

    pub(crate) fn remove(file: &Path) {
        let _ = std::fs::remove_file(path_for(file));
    }
}

fn path_for(file: &Path) -> PathBuf {
    with_suffix(file, ".pulled.json")
}

fn size_and_time(file: &Path) -> std::io::Result<(u64, i128)> {
    let metadata = std::fs::metadata(file)?;
    Ok((metadata.len(), i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use batchscan_model::DateRange;

    #[test]
    fn a_changed_or_missing_file_has_no_last_pull() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.csv");
        let settings = Settings {
            url: "http://a".into(),
            client_id: "i".into(),
            start_date: None,
            end_date: None,
            format: "csv".into(),
            selection: None,
            columns: None,
        };
        std::fs::write(&file, "one").unwrap();
        let journal = Journal::new(settings, DateRange::default(), None);
        LastPull::write(&file, journal, "W/\"1\"".into()).unwrap();
        assert_eq!(LastPull::read(&file).unwrap().unwrap().etag, "W/\"1\"");
        std::fs::write(&file, "another").unwrap();
        assert_eq!(LastPull::read(&file).unwrap(), None);
        std::fs::remove_file(&file).unwrap();
        assert_eq!(LastPull::read(&file).unwrap(), None);
    }
}
