//! Detects that the database file was moved or replaced while it is open.
//!
//! The open file would stay readable: this process would serve old data and miss revocations.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::errors::StoreError;
use crate::platform::file_id;

/// How often the path is checked. A revocation must take effect within five seconds.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The file that was opened.
#[derive(Debug)]
pub(super) struct FileIdentity {
    path: PathBuf,
    opened: Option<(u64, u64)>,
    /// When the path was checked, and whether it led to another file.
    checked: Mutex<(Instant, bool)>,
}

impl FileIdentity {
    pub(super) fn new(path: &Path) -> Self {
        let checked = Mutex::new((Instant::now(), false));
        Self { path: path.to_owned(), opened: file_id(path).ok(), checked }
    }

    /// `Ok` if the path still leads to the open file, as of a second ago at most.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let mut checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        if checked.0.elapsed() >= CHECK_INTERVAL {
            *checked = (Instant::now(), file_id(&self.path).ok() != self.opened);
        }
        Self::require(!checked.1)
    }

    /// `Ok` if the path leads to the open file now: what is committed must not be lost.
    pub(super) fn check_now(&self) -> Result<(), StoreError> {
        Self::require(file_id(&self.path).ok() == self.opened)
    }

    fn require(is_same: bool) -> Result<(), StoreError> {
        if is_same {
            return Ok(());
        }
        let why = "the database file was moved or replaced: restart the service";
        Err(StoreError::Unreachable(why.into()))
    }
}
