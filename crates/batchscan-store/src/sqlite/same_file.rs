//! Notices when the database's path leads to another file than the one that is open.
//!
//! A file that was moved away or replaced stays readable to those who have it open: they would serve what nobody
//! else sees any more, and hear of no revocation.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::StoreError;

/// How often the path is looked at: well within the five seconds in which a revocation must hold.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The file as it was when it was opened.
#[derive(Debug)]
pub(super) struct SameFile {
    path: PathBuf,
    opened: Option<(u64, u64)>,
    start: Instant,
    next_look_millis: AtomicU64,
    is_gone: AtomicBool,
}

impl SameFile {
    pub(super) fn new(path: &Path) -> Self {
        let (next_look_millis, is_gone) = (AtomicU64::new(0), AtomicBool::new(false));
        Self {
            path: path.to_owned(),
            opened: identity(path),
            start: Instant::now(),
            next_look_millis,
            is_gone,
        }
    }

    /// `Ok` if the path still leads to the file that is open, as of a second ago at most.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let now = millis(self.start.elapsed());
        if now >= self.next_look_millis.load(Ordering::Relaxed) {
            self.next_look_millis.store(now + millis(LOOK_EVERY), Ordering::Relaxed);
            self.is_gone.store(identity(&self.path) != self.opened, Ordering::Relaxed);
        }
        if self.is_gone.load(Ordering::Relaxed) {
            return Err(StoreError::Unreachable(
                "the database file was moved or replaced: restart the service".into(),
            ));
        }
        Ok(())
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
