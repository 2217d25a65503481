//! Temporary files of imports and exports: a share of the disk for each organisation, and a reserve that none uses.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use batchscan_model::OrgId;

use crate::slots::Slot;

/// Free space that is never used, at most: a database or a log on the same disk must not fail. A tenth of a small disk.
const RESERVE_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// A folder for temporary files. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Spool(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    dir: PathBuf,
    reserve_bytes: Option<u64>,
    used: Mutex<HashMap<OrgId, u64>>,
}

impl Spool {
    /// `reserve_bytes` are never used; without it, it depends on the size of the disk.
    pub(crate) fn new(dir: PathBuf, reserve_bytes: Option<u64>) -> Self {
        Self(Arc::new(Shared { dir, reserve_bytes, used: Mutex::default() }))
    }

    /// An unnamed file of the slot's organisation. Fails if there is no space for so many bytes.
    pub(crate) fn create(&self, slot: Slot, expected_bytes: u64) -> io::Result<SpoolFile> {
        let (claim, free) = (self.claim(slot.org()), self.free_bytes()?);
        claim.check(&self.lock(), expected_bytes, free)?;
        let held = Held { slot, claim };
        Ok(SpoolFile { file: tempfile::tempfile_in(&self.0.dir)?, held })
    }

    /// Space of an organisation, of no bytes yet.
    pub(crate) fn claim(&self, org: OrgId) -> Claim {
        Claim { spool: self.clone(), org, bytes: 0 }
    }

    /// The free bytes of the disk above the reserve.
    fn free_bytes(&self) -> io::Result<u64> {
        let disk = fs4::statvfs(&self.0.dir)?;
        let reserve = self.0.reserve_bytes.unwrap_or((disk.total_space() / 10).min(RESERVE_BYTES_MAX));
        // Some file systems without a limit have no size.
        let free = if disk.total_space() == 0 { u64::MAX } else { disk.available_space() };
        Ok(free.saturating_sub(reserve))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<OrgId, u64>> {
        self.0.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Space that an organisation uses, until it is dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    spool: Spool,
    org: OrgId,
    bytes: u64,
}

impl Claim {
    /// Adds bytes that are about to be written.
    pub(crate) fn grow(&mut self, bytes: u64) -> io::Result<()> {
        // Outside the lock: a disk that does not respond must not stop the others.
        let free = self.spool.free_bytes()?;
        let mut used = self.spool.lock();
        self.check(&used, bytes, free)?;
        *used.entry(self.org).or_default() += bytes;
        self.bytes += bytes;
        Ok(())
    }

    /// Fails if so many bytes cannot be added.
    fn check(&self, used: &HashMap<OrgId, u64>, bytes: u64, free: u64) -> io::Result<()> {
        let own = used.get(&self.org).copied().unwrap_or_default();
        match fits(bytes, own, free) {
            true => Ok(()),
            false => Err(io::Error::new(ErrorKind::StorageFull, "no space is left for this organisation")),
        }
    }
}

/// Whether an organisation may add bytes to its own: it uses at most as much as is then left for the others.
fn fits(bytes: u64, own: u64, free: u64) -> bool {
    free.checked_sub(bytes).is_some_and(|left| own.saturating_add(bytes) <= left)
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut used = self.spool.lock();
        if let Some(own) = used.get_mut(&self.org) {
            *own -= self.bytes;
            if *own == 0 {
                used.remove(&self.org);
            }
        }
    }
}

/// A file that claims its space as it is written.
#[derive(Debug)]
pub(crate) struct SpoolFile {
    file: File,
    held: Held,
}

/// The slot and the space of a file: to be dropped with it.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) slot: Slot,
    claim: Claim,
}

impl SpoolFile {
    /// The complete file, from its start.
    pub(crate) fn finish(mut self) -> io::Result<(File, Held)> {
        self.file.rewind()?;
        Ok((self.file, self.held))
    }
}

impl Write for SpoolFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.held.claim.grow(bytes.len() as u64)?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for SpoolFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slots::Slots;

    /// Adds bytes while they fit. Returns how many.
    fn fill(free: &mut u64) -> u64 {
        let mut own = 0;
        while fits(1, own, *free) {
            (own, *free) = (own + 1, *free - 1);
        }
        own
    }

    #[test]
    fn no_organisation_uses_all_space() {
        let mut free = 1_000;
        assert_eq!([fill(&mut free), fill(&mut free), fill(&mut free)], [500, 250, 125]);
        assert!(!fits(2, 0, 1) && !fits(u64::MAX, 1, u64::MAX));
    }

    #[test]
    fn space_is_free_again_when_its_file_is_removed() {
        let spool = Spool::new(std::env::temp_dir(), Some(0));
        let mut file = spool.create(Slots::new(1).acquire(OrgId(1)).unwrap(), 3).unwrap();
        file.write_all(b"abc").unwrap();
        let mut other = spool.claim(OrgId(1));
        other.grow(4).unwrap();
        let (file, held) = file.finish().unwrap();
        assert_eq!((file.metadata().unwrap().len(), spool.lock()[&OrgId(1)]), (3, 7));
        drop((held, other));
        assert!(spool.lock().is_empty());
    }
}
