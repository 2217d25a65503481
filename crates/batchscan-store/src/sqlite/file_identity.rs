//! Detects that the database file was moved or replaced while it is open.
//!
//! The open file would stay readable: this process would serve old data and miss revocations.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::errors::StoreError;

/// How often the path is checked. A revocation must take effect within five seconds.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The file that was opened.
#[derive(Debug)]
pub(super) struct FileIdentity {
    path: PathBuf,
    opened: Option<(u64, u64)>,
    start: Instant,
    next_check_millis: AtomicU64,
    is_replaced: AtomicBool,
}

impl FileIdentity {
    pub(super) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            opened: device_and_inode(path),
            start: Instant::now(),
            next_check_millis: AtomicU64::new(0),
            is_replaced: AtomicBool::new(false),
        }
    }

    /// `Ok` if the path still leads to the open file, as of a second ago at most.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let now = millis(self.start.elapsed());
        if now >= self.next_check_millis.load(Ordering::Relaxed) {
            self.next_check_millis.store(now + millis(CHECK_INTERVAL), Ordering::Relaxed);
            self.is_replaced.store(device_and_inode(&self.path) != self.opened, Ordering::Relaxed);
        }
        if self.is_replaced.load(Ordering::Relaxed) {
            let why = "the database file was moved or replaced: restart the service";
            return Err(StoreError::Unreachable(why.into()));
        }
        Ok(())
    }
}

fn device_and_inode(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
