//! `FILE.pulled.json`: the ETag and the size and time of the file after the last pull, for `--if-changed`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use anyhow::Context;
use serde::{Deserialize, Serialize};

use crate::atomic_file::{self, with_suffix};

/// The state has a few hundred bytes.
const STATE_BYTES_MAX: u64 = 256 * 1024;

/// The arguments of a pull, as typed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Settings {
    pub(crate) url: String,
    pub(crate) client_id: String,
    pub(crate) start_date: Option<String>,
    pub(crate) end_date: Option<String>,
    pub(crate) format: String,
    /// The selected batches; `None` for all.
    pub(crate) selection: Option<String>,
    /// The chosen fields; `None` for all.
    pub(crate) columns: Option<String>,
}

impl Settings {
    /// The first difference, for a note.
    pub(crate) fn difference(&self, other: &Self) -> Option<String> {
        let or = |value: &Option<String>, none: &str| value.clone().unwrap_or_else(|| none.into());
        let text = |value| or(value, "none");
        let all = |value| or(value, "all");
        let pairs = [
            ("url", self.url.clone(), other.url.clone()),
            ("client id", self.client_id.clone(), other.client_id.clone()),
            ("start date", text(&self.start_date), text(&other.start_date)),
            ("end date", text(&self.end_date), text(&other.end_date)),
            ("format", self.format.clone(), other.format.clone()),
            ("selection", all(&self.selection), all(&other.selection)),
            ("list of columns", all(&self.columns), all(&other.columns)),
        ];
        let (what, mine, theirs) = pairs.into_iter().find(|(_, mine, theirs)| mine != theirs)?;
        Some(format!("its {what} is {mine}, not {theirs}"))
    }
}

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
        let text = read_small(&path).with_context(|| format!("cannot read {}", path.display()))?;
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
    pub(crate) fn write(
        file: &Path,
        settings: Settings,
        (from, to): (Option<String>, Option<String>),
        etag: String,
        batches: u64,
    ) -> anyhow::Result<()> {
        let path = path_for(file);
        let cannot = || format!("cannot write {}", path.display());
        let (bytes, modified_nanos) = size_and_time(file).with_context(cannot)?;
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
    let nanos = |time: Duration| i128::try_from(time.as_nanos()).unwrap_or(i128::MAX);
    let modified = metadata.modified()?.duration_since(UNIX_EPOCH);
    Ok((metadata.len(), modified.map_or_else(|before| -nanos(before.duration()), nanos)))
}

/// `None` if there is no such file.
fn read_small(path: &Path) -> std::io::Result<Option<Vec<u8>>> {
    let metadata = match std::fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !metadata.is_file() || metadata.len() > STATE_BYTES_MAX {
        return Err(ErrorKind::InvalidData.into());
    }
    std::fs::read(path).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        LastPull::write(&file, settings, (None, None), "W/\"1\"".into(), 1).unwrap();
        assert_eq!(LastPull::read(&file).unwrap().unwrap().etag, "W/\"1\"");
        std::fs::write(&file, "another").unwrap();
        assert_eq!(LastPull::read(&file).unwrap(), None);
        std::fs::remove_file(&file).unwrap();
        assert_eq!(LastPull::read(&file).unwrap(), None);
    }
}
