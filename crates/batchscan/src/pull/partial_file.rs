//! `FILE.part`: the incomplete output file.
//!
//! Bytes are written before the journal that covers them, so the journal never claims more than is in the file. A
//! checksum detects bytes that the disk lost.

use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use flate2::{Crc, CrcReader};
use rustix::fs::OFlags;

use super::journal::{Journal, Next, Settings};
use crate::atomic_file::with_suffix;

/// A killed pull repeats at most this much work. A journal per page would cost a tenth of the time.
const JOURNAL_INTERVAL: Duration = Duration::from_millis(100);

/// A partial file, locked for this process.
#[derive(Debug)]
pub(crate) struct PartialFile {
    path: PathBuf,
    file: File,
    crc: Crc,
    pub(crate) journal: Journal,
    journal_written: Instant,
}

impl PartialFile {
    pub(crate) fn path_for(target: &Path) -> PathBuf {
        with_suffix(target, ".part")
    }

    /// Starts an empty file. Discards what an earlier pull has left.
    pub(crate) fn create(target: &Path, journal: Journal) -> anyhow::Result<Self> {
        let path = Self::path_for(target);
        let file = open_locked(&path)?;
        if file.metadata()?.len() > 0 && !Journal::path(&path).exists() {
            bail!("{} already exists and is not a partial pull; move it away", path.display());
        }
        let mut partial = Self { path, file, crc: Crc::new(), journal, journal_written: Instant::now() };
        partial.write_journal()?;
        partial.file.set_len(0).with_context(|| partial.cannot_write())?;
        Ok(partial)
    }

    /// Opens the file of an interrupted pull; `None` if there is none.
    pub(crate) fn resume(target: &Path, settings: &Settings) -> anyhow::Result<Option<Self>> {
        let path = Self::path_for(target);
        let Some(journal) = Journal::read(&path)? else { return Ok(None) };
        if let Some(difference) = journal.settings.difference(settings) {
            bail!(
                "{} belongs to another pull: {difference}; use the same options, or --force instead of --resume to start over",
                path.display()
            );
        }
        let mut file = open_locked(&path)?;
        let crc = verified_checksum(&mut file, &journal).with_context(|| {
            format!(
                "{} does not match its journal; use --force instead of --resume to start over",
                path.display()
            )
        })?;
        file.set_len(journal.bytes)?;
        file.seek(SeekFrom::End(0))?;
        Ok(Some(Self { path, file, crc, journal, journal_written: Instant::now() }))
    }

    /// The journal of an interrupted pull with batches. An error if that pull is still running.
    pub(crate) fn interrupted(target: &Path) -> anyhow::Result<Option<Journal>> {
        let path = Self::path_for(target);
        // A damaged journal cannot be resumed, so nothing is lost.
        let journal = Journal::read(&path).ok().flatten().filter(|journal| journal.batches > 0);
        if journal.is_some() && path.exists() {
            open_locked(&path)?;
        }
        Ok(journal)
    }

    /// The number of bytes written.
    pub(crate) fn len(&self) -> u64 {
        self.journal.bytes
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The file that a binary format is written to.
    pub(crate) fn converted_path(&self) -> PathBuf {
        with_suffix(&self.path, ".made")
    }

    /// Appends a page. Writes the journal if it is due.
    pub(crate) fn append(&mut self, bytes: &[u8], batches: u64, next: Next) -> anyhow::Result<()> {
        self.file.write_all(bytes).with_context(|| self.cannot_write())?;
        self.crc.update(bytes);
        self.journal.bytes += bytes.len() as u64;
        self.journal.crc32 = self.crc.sum();
        self.journal.batches += batches;
        self.journal.next = next;
        if self.journal_written.elapsed() < JOURNAL_INTERVAL { Ok(()) } else { self.write_journal() }
    }

    pub(crate) fn write_journal(&mut self) -> anyhow::Result<()> {
        self.journal.write(&self.path).with_context(|| self.cannot_write())?;
        self.journal_written = Instant::now();
        Ok(())
    }

    pub(crate) fn reader(&self) -> anyhow::Result<File> {
        Ok(self.file.try_clone()?)
    }

    pub(crate) fn sync(&self) -> anyhow::Result<()> {
        self.file.sync_all().with_context(|| self.cannot_write())
    }

    /// Checks that no other process has replaced or changed the file.
    pub(crate) fn verify(&self) -> anyhow::Result<()> {
        if !is_at(&self.file, &self.path) || self.file.metadata()?.len() != self.journal.bytes {
            bail!("{} was changed by another program; pull again", self.path.display());
        }
        Ok(())
    }

    /// Removes all files. The journal last: a file without one looks like a foreign file.
    pub(crate) fn remove(self) {
        // Left by a pull that was killed while it converted.
        let _ = std::fs::remove_file(self.converted_path());
        let _ = std::fs::remove_file(&self.path);
        let _ = std::fs::remove_file(Journal::path(&self.path));
    }

    /// Removes the journal, after the file was renamed.
    pub(crate) fn remove_journal(self) {
        let _ = std::fs::remove_file(Journal::path(&self.path));
    }

    fn cannot_write(&self) -> String {
        format!("cannot write {}", self.path.display())
    }
}

/// Opens or creates the file, for this process only. In append mode, so that a foreign truncation shows in the length.
fn open_locked(path: &Path) -> anyhow::Result<File> {
    let cannot = || format!("cannot write {}", path.display());
    loop {
        let mut options = OpenOptions::new();
        // Does not follow a link.
        let options =
            options.read(true).append(true).create(true).custom_flags(OFlags::NOFOLLOW.bits() as i32);
        let file = options.open(path).with_context(cannot)?;
        if !file.metadata()?.is_file() {
            bail!("{} already exists and is not a regular file; move it away", path.display());
        }
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                bail!("{} is locked by another pull; wait until it ends", path.display())
            }
            Err(TryLockError::Error(error)) => return Err(error).with_context(cannot),
        }
        // The pull that had the lock may have renamed the file in the meantime.
        if is_at(&file, path) {
            return Ok(file);
        }
    }
}

/// Whether the path still refers to the open file.
fn is_at(file: &File, path: &Path) -> bool {
    let same = |mine: Metadata, there: Metadata| (there.dev(), there.ino()) == (mine.dev(), mine.ino());
    file.metadata().is_ok_and(|mine| std::fs::symlink_metadata(path).is_ok_and(|there| same(mine, there)))
}

/// Compares the file with the length and checksum in its journal.
fn verified_checksum(file: &mut File, journal: &Journal) -> anyhow::Result<Crc> {
    let mut reader = CrcReader::new(file.take(journal.bytes));
    std::io::copy(&mut reader, &mut std::io::sink())?;
    let mut crc = Crc::new();
    crc.combine(reader.crc());
    if reader.get_ref().limit() > 0 || crc.sum() != journal.crc32 {
        bail!("bytes are missing or changed");
    }
    Ok(crc)
}

#[cfg(test)]
mod tests {
    use super::*;
    use batchscan_model::DateRange;

    fn settings(start: &str) -> Settings {
        Settings {
            url: "http://a".into(),
            client_id: "i".into(),
            start_date: Some(start.into()),
            end_date: None,
            format: "csv".into(),
            selection: None,
            columns: None,
        }
    }

    fn journal() -> Journal {
        Journal::new(settings("30d"), DateRange::default(), None)
    }

    fn create(target: &Path) -> PartialFile {
        PartialFile::create(target, journal()).unwrap()
    }

    /// Decision 045.
    #[test]
    fn resume_keeps_the_bytes_in_the_journal_and_cuts_off_the_rest() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.csv");
        let mut partial = create(&target);
        partial.append(b"one\n", 1, Next::After("c1".into())).unwrap();
        partial.write_journal().unwrap();
        // A page that is not in the journal.
        partial.file.write_all(b"tw").unwrap();
        drop(partial);
        let mut again = PartialFile::resume(&target, &settings("30d")).unwrap().unwrap();
        assert_eq!((again.len(), again.journal.batches), (4, 1));
        assert_eq!(again.journal.next, Next::After("c1".into()));
        again.append(b"two\n", 1, Next::End).unwrap();
        assert_eq!(std::fs::read(again.path()).unwrap(), b"one\ntwo\n");
        again.remove();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn changes_by_other_programs_are_detected() {
        let folder = tempfile::tempdir().unwrap();
        let (target, part) = (folder.path().join("a.csv"), folder.path().join("a.csv.part"));
        let mut partial = create(&target);
        partial.append(b"one\n", 1, Next::After("c".into())).unwrap();
        partial.verify().unwrap();
        OpenOptions::new().write(true).open(&part).unwrap().set_len(0).unwrap();
        partial.append(b"two\n", 1, Next::End).unwrap();
        assert!(partial.verify().unwrap_err().to_string().contains("changed by another program"));
        partial.remove();
        let mut partial = create(&target);
        partial.append(b"one\n", 1, Next::End).unwrap();
        std::fs::remove_file(&part).unwrap();
        std::fs::write(&part, "one\n").unwrap();
        assert!(partial.verify().is_err());
    }

    #[test]
    fn links_are_not_followed_and_pipes_are_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let (target, precious) = (folder.path().join("a.csv"), folder.path().join("precious"));
        std::fs::write(&precious, "mine").unwrap();
        std::os::unix::fs::symlink(&precious, folder.path().join("a.csv.part")).unwrap();
        assert!(PartialFile::create(&target, journal()).is_err());
        std::fs::remove_file(folder.path().join("a.csv.part")).unwrap();
        std::os::unix::fs::symlink(&precious, folder.path().join("a.csv.part.json.new")).unwrap();
        PartialFile::create(&target, journal()).unwrap().remove();
        let pipe = folder.path().join("a.csv.part.json");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
            .unwrap();
        assert!(PartialFile::resume(&target, &settings("30d")).is_err());
        assert_eq!(std::fs::read(&precious).unwrap(), b"mine");
    }
}
