//! `FILE.part`: the file while it grows, and beside it the journal that says how far it is whole.
//!
//! Bytes are written first, then, every now and then, the journal that vouches for them: whatever kills the program, the
//! journal never promises more than is there. A checksum tells if the disk lost some of it all the same.

use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use flate2::Crc;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use super::{Settings, place};

/// A pull that is killed does at most so much of its work again; a journal for each page would be a tenth of all work.
const VOUCHED_EVERY: Duration = Duration::from_millis(100);

/// Where a walk stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Next {
    /// Nothing is there yet.
    Begin,
    /// After the page that gave this cursor.
    After(String),
    /// All is there.
    End,
}

/// How far a file is whole, and what it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Journal {
    pub(crate) settings: Settings,
    /// What the dates meant when the pull began: `30d` is another day tomorrow.
    pub(crate) from: Option<String>,
    pub(crate) to: Option<String>,
    /// The ETag at the beginning.
    pub(crate) etag: Option<String>,
    pub(crate) next: Next,
    pub(crate) batches: u64,
    bytes: u64,
    crc32: u32,
}

impl Journal {
    pub(crate) fn new(settings: Settings, from: Option<String>, to: Option<String>) -> Self {
        Self { settings, from, to, etag: None, next: Next::Begin, batches: 0, bytes: 0, crc32: 0 }
    }
}

/// A growing file that is nobody else's.
#[derive(Debug)]
pub(crate) struct Partial {
    path: PathBuf,
    file: File,
    crc: Crc,
    pub(crate) journal: Journal,
    vouched: Instant,
}

impl Partial {
    /// The name of a file while it grows.
    pub(crate) fn path_for(target: &Path) -> PathBuf {
        place::beside(target, ".part")
    }

    /// Begins anew. What an earlier pull left is given up.
    pub(crate) fn begin(target: &Path, journal: Journal) -> anyhow::Result<Self> {
        let path = Self::path_for(target);
        let file = locked(&path)?;
        if file.metadata()?.len() > 0 && !journal_path(&path).exists() {
            bail!("{} is in the way, and no pull has left it there; move it away", path.display());
        }
        let partial = Self { path, file, crc: Crc::new(), journal, vouched: Instant::now() };
        partial.write_journal()?;
        partial.file.set_len(0).with_context(|| partial.cannot_write())?;
        Ok(partial)
    }

    /// Goes on with what an earlier pull left; nothing if it left nothing.
    pub(crate) fn resume(target: &Path, settings: &Settings) -> anyhow::Result<Option<Self>> {
        let path = Self::path_for(target);
        let Some(journal) = read_journal(&path)? else { return Ok(None) };
        if let Some(difference) = journal.settings.difference(settings) {
            bail!(
                "{} was begun by another pull: {difference}; repeat that one, or leave --resume out to begin anew",
                path.display()
            );
        }
        let mut file = locked(&path)?;
        let crc = checked(&mut file, &journal).with_context(|| {
            format!("{} is not as its journal says; leave --resume out to begin anew", path.display())
        })?;
        file.set_len(journal.bytes)?;
        file.seek(SeekFrom::End(0))?;
        Ok(Some(Self { path, file, crc, journal, vouched: Instant::now() }))
    }

    /// How many batches of an earlier pull of the same settings a new one would give up; nothing if there are none.
    pub(crate) fn kept_batches(target: &Path, settings: &Settings) -> Option<u64> {
        let journal = read_journal(&Self::path_for(target)).ok()??;
        (journal.settings == *settings && journal.batches > 0).then_some(journal.batches)
    }

    /// Whether nothing has been written yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.journal.bytes == 0
    }

    /// The bytes so far.
    pub(crate) fn len(&self) -> u64 {
        self.journal.bytes
    }

    /// Where it grows.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where a file that is made at the end grows.
    pub(crate) fn made_path(&self) -> PathBuf {
        place::beside(&self.path, ".made")
    }

    /// Adds a page, and vouches for it if that is due.
    pub(crate) fn append(&mut self, bytes: &[u8], batches: u64, next: Next) -> anyhow::Result<()> {
        self.file.write_all(bytes).with_context(|| self.cannot_write())?;
        self.crc.update(bytes);
        self.journal.bytes += bytes.len() as u64;
        self.journal.crc32 = self.crc.sum();
        self.journal.batches += batches;
        self.journal.next = next;
        if self.vouched.elapsed() < VOUCHED_EVERY { Ok(()) } else { self.vouch() }
    }

    /// Vouches for all that was added.
    pub(crate) fn vouch(&mut self) -> anyhow::Result<()> {
        self.write_journal()?;
        self.vouched = Instant::now();
        Ok(())
    }

    /// The file from its beginning, for reading.
    pub(crate) fn reader(&mut self) -> anyhow::Result<File> {
        let mut file = self.file.try_clone()?;
        file.seek(SeekFrom::Start(0))?;
        Ok(file)
    }

    /// Makes sure that all of it is on the disk.
    pub(crate) fn sync(&self) -> anyhow::Result<()> {
        self.file.sync_all().with_context(|| self.cannot_write())
    }

    /// Makes sure that it is this file that has the name, and that it has all bytes.
    pub(crate) fn verify(&self) -> anyhow::Result<()> {
        if !is_at(&self.file, &self.path) || self.file.metadata()?.len() != self.journal.bytes {
            bail!("{} was changed by somebody else while it grew; pull again", self.path.display());
        }
        Ok(())
    }

    /// Takes all of it away. The journal goes last: a file without one is taken for a stranger's.
    pub(crate) fn remove(self) {
        // A pull that was killed while it made its file has left that.
        let _ = std::fs::remove_file(self.made_path());
        let _ = std::fs::remove_file(&self.path);
        let _ = std::fs::remove_file(journal_path(&self.path));
    }

    /// Takes the journal away, once the file has its own name.
    pub(crate) fn remove_journal(self) {
        let _ = std::fs::remove_file(journal_path(&self.path));
    }

    /// Written beside and renamed, so that a journal is always a whole one.
    fn write_journal(&self) -> anyhow::Result<()> {
        let text = serde_json::to_vec(&self.journal)?;
        place::write_small(&journal_path(&self.path), &text).with_context(|| self.cannot_write())
    }

    fn cannot_write(&self) -> String {
        format!("cannot write {}", self.path.display())
    }
}

fn journal_path(part: &Path) -> PathBuf {
    place::beside(part, ".json")
}

fn read_journal(part: &Path) -> anyhow::Result<Option<Journal>> {
    let path = journal_path(part);
    let Some(text) = place::read_small(&path).with_context(|| format!("cannot read {}", path.display()))?
    else {
        return Ok(None);
    };
    let journal = serde_json::from_slice(&text)
        .with_context(|| format!("{} is damaged; leave --resume out to begin anew", path.display()))?;
    Ok(Some(journal))
}

/// Opens the file, or makes it, for this process alone. What is written goes to its end, wherever that is by then: bytes
/// that somebody else took away are missed in its length.
fn locked(path: &Path) -> anyhow::Result<File> {
    let cannot = || format!("cannot write {}", path.display());
    loop {
        let mut options = OpenOptions::new();
        // A link could lead to anything; it is not followed.
        let options =
            options.read(true).append(true).create(true).custom_flags(OFlags::NOFOLLOW.bits() as i32);
        let file = options.open(path).with_context(cannot)?;
        if !file.metadata()?.is_file() {
            bail!("{} is in the way, and is not a regular file; move it away", path.display());
        }
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                bail!("another pull is writing {}; wait for its end", path.display())
            }
            Err(TryLockError::Error(error)) => return Err(error).with_context(cannot),
        }
        // Between opening and locking, the pull that had it may have given the file its own name.
        if is_at(&file, path) {
            return Ok(file);
        }
    }
}

/// Whether a name still stands for the file that was opened under it.
fn is_at(file: &File, path: &Path) -> bool {
    let same = |mine: Metadata, there: Metadata| (there.dev(), there.ino()) == (mine.dev(), mine.ino());
    file.metadata().is_ok_and(|mine| std::fs::symlink_metadata(path).is_ok_and(|there| same(mine, there)))
}

/// Reads what the journal vouches for; fails if it is not that.
fn checked(file: &mut File, journal: &Journal) -> anyhow::Result<Crc> {
    let mut crc = Crc::new();
    let mut left = Read::by_ref(file).take(journal.bytes);
    let mut buffer = vec![0; 256 * 1024];
    loop {
        match left.read(&mut buffer)? {
            0 => break,
            read => crc.update(&buffer[..read]),
        }
    }
    if left.limit() > 0 || crc.sum() != journal.crc32 {
        bail!("bytes are missing or changed");
    }
    Ok(crc)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(start: &str) -> Settings {
        Settings {
            url: "http://a".into(),
            client_id: "i".into(),
            start_date: Some(start.into()),
            end_date: None,
            format: "csv".into(),
        }
    }

    fn begun(target: &Path) -> Partial {
        Partial::begin(target, Journal::new(settings("30d"), None, None)).unwrap()
    }

    /// Decision 045.
    #[test]
    fn what_was_vouched_for_is_kept_and_the_rest_is_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.csv");
        let mut partial = begun(&target);
        partial.append(b"one\n", 1, Next::After("c1".into())).unwrap();
        partial.vouch().unwrap();
        // A page that was written, and not vouched for.
        partial.file.write_all(b"tw").unwrap();
        drop(partial);
        let mut again = Partial::resume(&target, &settings("30d")).unwrap().unwrap();
        assert_eq!((again.len(), again.journal.batches), (4, 1));
        assert_eq!(again.journal.next, Next::After("c1".into()));
        again.append(b"two\n", 1, Next::End).unwrap();
        assert_eq!(std::fs::read(again.path()).unwrap(), b"one\ntwo\n");
        again.remove();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_pull_of_other_settings_is_not_gone_on_with() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.csv");
        drop(begun(&target));
        let error = Partial::resume(&target, &settings("7d")).unwrap_err().to_string();
        assert!(error.contains("its start date is 30d, not 7d"), "{error}");
        assert!(Partial::resume(&folder.path().join("b.csv"), &settings("7d")).unwrap().is_none());
    }

    #[test]
    fn bytes_that_the_disk_lost_are_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.csv");
        for damage in [&b""[..], b"on", b"onX\n"] {
            let mut partial = begun(&target);
            partial.append(b"one\n", 1, Next::End).unwrap();
            partial.vouch().unwrap();
            drop(partial);
            std::fs::write(folder.path().join("a.csv.part"), damage).unwrap();
            let error = Partial::resume(&target, &settings("30d")).unwrap_err().to_string();
            assert!(error.contains("not as its journal says"), "{error}");
        }
    }

    #[test]
    fn a_file_that_somebody_else_changed_while_it_grew_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let (target, part) = (folder.path().join("a.csv"), folder.path().join("a.csv.part"));
        let mut partial = begun(&target);
        partial.append(b"one\n", 1, Next::After("c".into())).unwrap();
        partial.verify().unwrap();
        OpenOptions::new().write(true).open(&part).unwrap().set_len(0).unwrap();
        partial.append(b"two\n", 1, Next::End).unwrap();
        assert!(partial.verify().unwrap_err().to_string().contains("changed by somebody else"));
        partial.remove();
        let mut partial = begun(&target);
        partial.append(b"one\n", 1, Next::End).unwrap();
        std::fs::remove_file(&part).unwrap();
        std::fs::write(&part, "one\n").unwrap();
        assert!(partial.verify().is_err());
    }

    #[test]
    fn no_link_is_followed_and_no_pipe_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let (target, precious) = (folder.path().join("a.csv"), folder.path().join("precious"));
        std::fs::write(&precious, "mine").unwrap();
        let journal = || Journal::new(settings("30d"), None, None);
        std::os::unix::fs::symlink(&precious, folder.path().join("a.csv.part")).unwrap();
        assert!(Partial::begin(&target, journal()).is_err());
        std::fs::remove_file(folder.path().join("a.csv.part")).unwrap();
        std::os::unix::fs::symlink(&precious, folder.path().join("a.csv.part.json.new")).unwrap();
        Partial::begin(&target, journal()).unwrap().remove();
        let pipe = folder.path().join("a.csv.part.json");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
            .unwrap();
        assert!(Partial::resume(&target, &settings("30d")).is_err());
        assert_eq!(std::fs::read(&precious).unwrap(), b"mine");
    }

    #[test]
    fn only_one_pull_writes_a_file_and_none_writes_over_a_strangers() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.csv");
        let first = begun(&target);
        let again =
            || Partial::begin(&target, Journal::new(settings("30d"), None, None)).unwrap_err().to_string();
        assert!(again().starts_with("another pull is writing"), "{}", again());
        first.remove();
        std::fs::write(folder.path().join("a.csv.part"), "mine").unwrap();
        assert!(again().contains("is in the way"), "{}", again());
    }
}
