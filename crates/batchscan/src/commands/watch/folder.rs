//! The watched folder: which files are complete, and where they are moved.
//!
//! Only lists and renames, which also work on network shares. Two watchers of one folder may see the same file: a rename
//! fails for the second one.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use batchscan_formats::{Format, unsupported_hint};
use tokio::time::Instant;

use crate::atomic_file;
use crate::platform::skip_bytes;

/// Files that are being imported.
const IMPORTING: &str = "importing";
const DONE: &str = "done";
const FAILED: &str = "failed";
/// An older file that is empty was forgotten by its writer.
const EMPTY_TIMEOUT: Duration = Duration::from_secs(60);
/// Leaves room for what is added to a name: its place in the order, a hash, `.txt`.
const NAME_BYTES_MAX: usize = 200;

pub(super) struct Folder {
    path: PathBuf,
    stable: Duration,
    /// Every file of the last list.
    seen: HashMap<PathBuf, Seen>,
    /// The files of the last list that are left alone.
    ignored: BTreeSet<OsString>,
}

/// A version of a file, and since when it is unchanged.
#[derive(Clone, Copy)]
struct Seen {
    version: FileVersion,
    since: Instant,
    /// Its place in the order of import: its modification time before it was claimed, unless that was in the future.
    order: SystemTime,
}

/// A file to import.
pub(super) struct FoundFile {
    /// The name that its writer gave it, as text.
    pub(super) name: String,
    /// The version that is complete.
    pub(super) version: FileVersion,
    /// Whether it is in `importing`.
    pub(super) is_claimed: bool,
    /// Whether it has not changed for a while.
    pub(super) is_complete: bool,
    path: PathBuf,
    order: SystemTime,
}

/// Differs after a file was written to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct FileVersion {
    pub(super) size: u64,
    modified: SystemTime,
}

impl FileVersion {
    pub(super) fn new(metadata: &Metadata) -> io::Result<Self> {
        Ok(Self { size: metadata.len(), modified: metadata.modified()? })
    }

    /// `None` for anything but a file: a link or a pipe may have taken its place.
    pub(super) fn read(path: &Path) -> io::Result<Option<Self>> {
        let metadata = fs::symlink_metadata(path)?;
        metadata.is_file().then(|| Self::new(&metadata)).transpose()
    }
}

impl Folder {
    pub(super) fn new(path: &Path, stable: Duration) -> Self {
        Self { path: path.to_owned(), stable, seen: HashMap::new(), ignored: BTreeSet::new() }
    }

    /// How many files are left alone.
    pub(super) fn ignored(&self) -> usize {
        self.ignored.len()
    }

    /// Lists the files in the order of import: by modification time, those of earlier rounds first.
    pub(super) fn list(&mut self) -> io::Result<Vec<FoundFile>> {
        // Also if someone removed them.
        for name in [IMPORTING, DONE, FAILED] {
            let path = self.path.join(name);
            match fs::create_dir(&path) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
                Err(_) => require_folder(&path)?,
                Ok(()) => {}
            }
        }
        let (now, mut seen, mut files) = (Instant::now(), HashMap::new(), Vec::new());
        let mut ignored = BTreeSet::new();
        // `importing` is read last, so that a file that another watcher claims meanwhile is not missed.
        for (folder, is_claimed) in [(self.path.clone(), false), (self.path.join(IMPORTING), true)] {
            for entry in fs::read_dir(folder)? {
                let path = entry?.path();
                let Some(version) = version_to_import(&path)? else {
                    ignored.extend(name_if_ignored(&path));
                    continue;
                };
                let last = self.seen.get(&path).filter(|last| last.version == version).copied();
                let order = match is_claimed {
                    true => claimed_order(&path),
                    false => version.modified.min(SystemTime::now()),
                };
                let last = last.unwrap_or(Seen { version, since: now, order });
                let (is_complete, order) = (now - last.since >= self.stable, last.order);
                let name = original_name(&path, is_claimed).to_string_lossy().into_owned();
                seen.insert(path.clone(), last);
                files.push(FoundFile { name, version, is_claimed, is_complete, path, order });
            }
        }
        self.seen = seen;
        for name in ignored.difference(&self.ignored) {
            let is_empty = fs::symlink_metadata(self.path.join(name)).is_ok_and(|file| file.len() == 0);
            let why = if is_empty { "it is empty" } else { "its name has no ending of a file to import" };
            tracing::warn!(file = %name.to_string_lossy(), "leaving alone: {why}");
        }
        self.ignored = ignored;
        // Modification times are those of the last tick, on some shares of the last second: then `scans.csv` comes before
        // `scans corrected.csv`.
        files.sort_by(|a, b| {
            let by_name = || a.path.file_stem().cmp(&b.path.file_stem()).then_with(|| a.path.cmp(&b.path));
            a.order.cmp(&b.order).then(b.is_claimed.cmp(&a.is_claimed)).then_with(by_name)
        });
        Ok(files)
    }

    /// Moves a file to `importing`, and returns its new path.
    pub(super) fn claim(&self, file: &FoundFile) -> io::Result<PathBuf> {
        if file.is_claimed {
            return Ok(file.path.clone());
        }
        let name = shorten(file.path.file_name().unwrap_or_default());
        let mut nanos = file.order.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let claimed = loop {
            // Keeps its place in the order, also if it is written to.
            let mut unique = OsString::from(format!("{nanos}-{}-", std::process::id()));
            unique.push(&name);
            let path = self.path.join(IMPORTING).join(unique);
            if !path.exists() {
                break path;
            }
            nanos += 1;
        };
        fs::rename(&file.path, &claimed)?;
        Ok(claimed)
    }

    pub(super) fn move_to_done(&self, claimed: &Path, hash: &[u8; 32]) -> io::Result<()> {
        let name = original_name(claimed, true);
        fs::rename(claimed, free_path(&self.path.join(DONE), name, hash))?;
        // The errors of this file before it was corrected and moved back.
        let failed = self.path.join(FAILED).join(name);
        if !failed.exists() {
            let _ = fs::remove_file(atomic_file::with_suffix(&failed, ".txt"));
        }
        Ok(())
    }

    /// Moves a file to `failed`, next to a text file with the reason.
    pub(super) fn move_to_failed(&self, claimed: &Path, hash: &[u8; 32], reason: &str) -> io::Result<()> {
        let path = free_path(&self.path.join(FAILED), original_name(claimed, true), hash);
        let reason_path = atomic_file::with_suffix(&path, ".txt");
        atomic_file::write(&reason_path, format!("{reason}\n").as_bytes())?;
        fs::rename(claimed, &path).inspect_err(|_| {
            // If another watcher has moved the file to the same path, it is the reason of that file.
            if !path.exists() {
                let _ = fs::remove_file(&reason_path);
            }
        })
    }
}

/// A name of at most [`NAME_BYTES_MAX`] bytes with the same ending: file systems allow 255, and names get longer here.
fn shorten(name: &OsStr) -> Cow<'_, OsStr> {
    if name.len() <= NAME_BYTES_MAX {
        return name.into();
    }
    let text = name.to_string_lossy();
    let (stem, ending) = text.rsplit_once('.').unwrap_or((&text, ""));
    let stem = &stem[..stem.floor_char_boundary(NAME_BYTES_MAX.saturating_sub(ending.len() + 1))];
    OsString::from(format!("{stem}.{ending}")).into()
}

/// A link would move files to where its creator wants them.
fn require_folder(path: &Path) -> io::Result<()> {
    let kind = fs::symlink_metadata(path)?.file_type();
    let found = match kind.is_symlink() {
        _ if kind.is_dir() => return Ok(()),
        true => "a symbolic link",
        false => "not a folder",
    };
    Err(io::Error::other(format!(
        "{} is {found}: remove it, and a folder is created instead",
        path.display()
    )))
}

/// The version of a file that is to be imported; `None` for anything else in the folder.
fn version_to_import(path: &Path) -> io::Result<Option<FileVersion>> {
    if path.file_name().is_none_or(is_hidden)
        || !(Format::for_reading(path).is_some() || unsupported_hint(path).is_some())
    {
        return Ok(None);
    }
    match fs::symlink_metadata(path) {
        // Programs often create a file long before they write to it.
        Ok(metadata) if metadata.is_file() && metadata.len() > 0 => FileVersion::new(&metadata).map(Some),
        Ok(_) => Ok(None),
        // It was moved meanwhile.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The name of a file that is neither imported nor our own.
fn name_if_ignored(path: &Path) -> Option<OsString> {
    let name = path.file_name()?;
    let is_ours = path.extension().is_some_and(|ending| ending == "status");
    // An empty one is probably being written, unless it is old.
    let is_old =
        |file: &Metadata| file.modified().is_ok_and(|at| at.elapsed().is_ok_and(|age| age > EMPTY_TIMEOUT));
    let is_file =
        fs::symlink_metadata(path).is_ok_and(|file| file.is_file() && (file.len() > 0 || is_old(&file)));
    (is_file && !is_hidden(name) && !is_ours).then(|| name.to_owned())
}

/// Excel keeps a file `~$scans.xlsx` while `scans.xlsx` is open.
fn is_hidden(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.starts_with(b".") || name.starts_with(b"~$")
}

/// The name of a file before it was claimed.
fn original_name(path: &Path, is_claimed: bool) -> &OsStr {
    let name = path.file_name().unwrap_or_default();
    let mut hyphens = name.as_encoded_bytes().iter().enumerate().filter(|(_, byte)| **byte == b'-');
    match hyphens.nth(1) {
        Some((second, _)) if is_claimed => skip_bytes(name, second + 1),
        _ => name,
    }
}

/// The place of a claimed file in the order: its name begins with it.
fn claimed_order(path: &Path) -> SystemTime {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let nanos = name.split('-').next().and_then(|nanos| nanos.parse().ok());
    UNIX_EPOCH + Duration::from_nanos(nanos.unwrap_or_default())
}

/// The path for a file in a folder. A name that is taken gets a part of the hash: `scans-1a2b3c4d.csv`.
fn free_path(folder: &Path, name: &OsStr, hash: &[u8; 32]) -> PathBuf {
    let path = folder.join(name);
    if !path.exists() {
        return path;
    }
    let mut free = path.file_stem().unwrap_or_default().to_owned();
    free.push(format!("-{}.", hex(&hash[..4])));
    free.push(path.extension().unwrap_or_default());
    folder.join(free)
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    use tokio::time::sleep;

    use super::*;

    fn names(folder: &mut Folder) -> Vec<String> {
        folder.list().unwrap().into_iter().map(|file| file.name).collect()
    }

    #[test]
    fn known_files_are_listed_oldest_first() {
        let temporary = tempfile::tempdir().unwrap();
        let path = |name: &str| temporary.path().join(name);
        let mut folder = Folder::new(temporary.path(), Duration::ZERO);
        folder.list().unwrap();
        fs::create_dir(path("sub.csv")).unwrap();
        for (name, secs) in [
            ("b.csv", 2),
            ("c.JSON", 1),
            ("a corrected.csv", 2),
            ("a.csv", 2),
            ("notes.md", 1),
            (".hidden.csv", 1),
            ("~$open.xlsx", 1),
            ("x.csv.part", 1),
            ("empty.csv", 1),
        ] {
            fs::write(path(name), if name == "empty.csv" { "" } else { "x" }).unwrap();
            let file = fs::OpenOptions::new().write(true).open(path(name)).unwrap();
            file.set_modified(UNIX_EPOCH + Duration::from_secs(secs)).unwrap();
        }
        fs::write(path("new and empty.csv"), "").unwrap();
        assert_eq!(names(&mut folder), ["c.JSON", "a.csv", "a corrected.csv", "b.csv"]);
        assert_eq!(folder.ignored(), 3, "notes.md, x.csv.part and empty.csv");
        let last = folder.list().unwrap().pop().unwrap();
        let claimed = folder.claim(&last).unwrap();
        assert_eq!(names(&mut folder), ["c.JSON", "b.csv", "a.csv", "a corrected.csv"]);
        folder.move_to_done(&claimed, &[0xAB; 32]).unwrap();
        assert_eq!(names(&mut folder), ["c.JSON", "a.csv", "a corrected.csv"]);
        // Another watcher was faster.
        assert_eq!(folder.claim(&last).unwrap_err().kind(), ErrorKind::NotFound);
    }

    /// As `watch` looks at a folder, with its default settings. Then the import takes the rest of 4 s.
    #[tokio::test(start_paused = true)]
    async fn a_file_is_complete_at_most_three_seconds_after_its_last_change() {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            watch: crate::args::Watch,
        }
        let Line { watch } = clap::Parser::parse_from(["watch", "inbox", "--org", "Green Valley"]);
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("slow.ndjson");
        let mut folder = Folder::new(temporary.path(), watch.stable);
        folder.list().unwrap();
        let mut content = String::new();
        for _ in 0..10 {
            content.push_str("{}\n");
            fs::write(&path, &content).unwrap();
            sleep(watch.poll).await;
            assert!(!folder.list().unwrap()[0].is_complete);
        }
        let changed_at = Instant::now() - watch.poll;
        while !folder.list().unwrap()[0].is_complete {
            sleep(watch.poll).await;
        }
        assert_eq!(changed_at.elapsed().as_secs(), 3);
    }

    #[test]
    fn a_long_name_is_shortened() {
        let temporary = tempfile::tempdir().unwrap();
        let long = format!("{}ä.json", "é".repeat(124));
        assert_eq!(long.len(), 255);
        fs::write(temporary.path().join(&long), "x").unwrap();
        let mut folder = Folder::new(temporary.path(), Duration::ZERO);
        let found = folder.list().unwrap().pop().unwrap();
        let claimed = folder.claim(&found).unwrap();
        folder.move_to_failed(&claimed, &[0xAB; 32], "reason").unwrap();
        let failed =
            fs::read_dir(temporary.path().join(FAILED)).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = failed.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        let short = format!("{}.json", "é".repeat(97));
        assert_eq!(names, [short.clone(), format!("{short}.txt")]);
    }

    #[test]
    fn links_instead_of_the_folders_are_not_followed() {
        for name in [IMPORTING, DONE, FAILED] {
            let temporary = tempfile::tempdir().unwrap();
            let elsewhere = tempfile::tempdir().unwrap();
            let mut folder = Folder::new(temporary.path(), Duration::ZERO);
            folder.list().unwrap();
            fs::remove_dir(temporary.path().join(name)).unwrap();
            symlink(elsewhere.path(), temporary.path().join(name)).unwrap();
            let error = folder.list().err().unwrap().to_string();
            assert!(error.contains(&format!("{name} is a symbolic link: remove it")), "{error}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_from_the_future_does_not_wait_for_ever() {
        let temporary = tempfile::tempdir().unwrap();
        let path = |name: &str| temporary.path().join(name);
        // Both: the modification time of a new file is that of the last tick, which may be before the list.
        let write_in_future = |name| {
            fs::write(path(name), "x").unwrap();
            let file = fs::OpenOptions::new().write(true).open(path(name)).unwrap();
            file.set_modified(SystemTime::now() + Duration::from_secs(1_000_000)).unwrap();
        };
        write_in_future("future.csv");
        let mut folder = Folder::new(temporary.path(), Duration::from_millis(50));
        folder.list().unwrap();
        sleep(Duration::from_millis(60)).await;
        // Not complete yet, so that newer files wait for it.
        write_in_future("new.csv");
        let files = folder.list().unwrap().into_iter().map(|file| (file.name, file.is_complete));
        assert_eq!(files.collect::<Vec<_>>(), [("future.csv".into(), true), ("new.csv".into(), false)]);
    }

    #[test]
    fn a_name_keeps_its_bytes() {
        let temporary = tempfile::tempdir().unwrap();
        let name = OsStr::from_bytes(&[&[0xE9; 100], b".csv".as_slice()].concat()).to_owned();
        fs::write(temporary.path().join(&name), "x").unwrap();
        let mut folder = Folder::new(temporary.path(), Duration::ZERO);
        let found = folder.list().unwrap().pop().unwrap();
        folder.move_to_failed(&folder.claim(&found).unwrap(), &[0xAB; 32], "a reason").unwrap();
        assert!(temporary.path().join(FAILED).join(name).is_file());
    }

    #[test]
    fn a_name_that_is_taken_gets_a_part_of_the_hash() {
        let temporary = tempfile::tempdir().unwrap();
        fs::write(temporary.path().join("a.b.csv"), "").unwrap();
        let name = |name: &str| {
            free_path(temporary.path(), OsStr::new(name), &[0xAB; 32]).file_name().unwrap().to_owned()
        };
        assert_eq!(name("a.csv"), "a.csv");
        assert_eq!(name("a.b.csv"), "a.b-abababab.csv");
    }
}
