//! The services somebody logged in to, by name, in `profiles.json` of the user's own configuration folder.
//! Refuses a file that others can read, and never repeats what stands in it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use batchscan_model::ClientSecret;
use serde::{Deserialize, Serialize};
use serde_json::error::Category;

/// Thousands of profiles; it bounds the memory for a file that is something else.
const PROFILES_BYTES_MAX: u64 = 1024 * 1024;

/// A name fits a column, a file name and a shell without quotes.
const NAME_BYTES_MAX: usize = 40;

/// The profile that is meant when none is named.
pub(crate) const DEFAULT_NAME: &str = "default";

/// Another login holds the lock for milliseconds; after five seconds it is one that hangs.
const LOCK_TRIES_MAX: u32 = 250;
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// A profile's name: 1 to 40 of `[A-Za-z0-9_.-]`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ProfileName(String);

impl ProfileName {
    /// The only door.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        if (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(plain) {
            return Ok(Self(text.to_owned()));
        }
        Err(format!("1 to {NAME_BYTES_MAX} letters, digits, underscores, dots and hyphens"))
    }

    /// Whether it is the name that need not be typed.
    pub(crate) fn is_default(&self) -> bool {
        self.0 == DEFAULT_NAME
    }
}

impl fmt::Display for ProfileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A service, and who asks it.
#[derive(Clone, Debug)]
pub(crate) struct Profile {
    /// Where the service is.
    pub(crate) url: String,
    /// Who asks.
    pub(crate) client_id: String,
    /// What proves it.
    pub(crate) client_secret: ClientSecret,
}

/// `$XDG_CONFIG_HOME/batchscan`, or `.config/batchscan` in the home folder.
pub(crate) fn folder(xdg_config_home: Option<&OsStr>, home: Option<&OsStr>) -> anyhow::Result<PathBuf> {
    // A relative path is to be ignored, says the XDG specification: it would be another folder from everywhere.
    let absolute = |path: Option<&OsStr>| path.map(PathBuf::from).filter(|path| path.is_absolute());
    let config = absolute(xdg_config_home).or_else(|| absolute(home).map(|home| home.join(".config")));
    Ok(config.context("there is no folder for profiles: set HOME or XDG_CONFIG_HOME")?.join("batchscan"))
}

/// All profiles of a folder, as they were when last read or changed.
#[derive(Debug)]
pub(crate) struct Profiles {
    folder: PathBuf,
    named: BTreeMap<ProfileName, Profile>,
}

impl Profiles {
    /// Reads a folder's profiles; one that is not there has none.
    pub(crate) fn load(folder: &Path) -> anyhow::Result<Self> {
        Ok(Self { folder: folder.to_owned(), named: read(&file_of(folder))? })
    }

    /// The profile of that name.
    pub(crate) fn get(&self, name: &ProfileName) -> anyhow::Result<&Profile> {
        if let Some(profile) = self.named.get(name) {
            return Ok(profile);
        }
        let known: Vec<&str> = self.named.keys().map(|name| name.0.as_str()).collect();
        if known.is_empty() {
            bail!("there is no profile {name}, nor any other: `batchscan login` saves one");
        }
        bail!("there is no profile {name}: the saved ones are {}", known.join(", "))
    }

    /// All profiles by name.
    pub(crate) fn list(&self) -> impl Iterator<Item = (&ProfileName, &Profile)> {
        self.named.iter()
    }

    /// Where they are kept.
    pub(crate) fn path(&self) -> PathBuf {
        file_of(&self.folder)
    }

    /// Saves a profile under a name, in place of the one that has it.
    pub(crate) fn save(&mut self, name: &ProfileName, profile: Profile) -> anyhow::Result<()> {
        make_private_folder(&self.folder)?;
        self.change(|named| named.insert(name.clone(), profile).is_some()).map(drop)
    }

    /// Removes a profile; false if there was none.
    pub(crate) fn remove(&mut self, name: &ProfileName) -> anyhow::Result<bool> {
        // Without a folder there is nothing to remove, and no place for a lock.
        if !self.folder.is_dir() {
            return Ok(false);
        }
        self.change(|named| named.remove(name).is_some())
    }

    /// Changes what is in the file now, which another login may have written since it was loaded.
    fn change(
        &mut self,
        change: impl FnOnce(&mut BTreeMap<ProfileName, Profile>) -> bool,
    ) -> anyhow::Result<bool> {
        let lock = lock(&self.folder)?;
        let path = file_of(&self.folder);
        let mut named = read(&path)?;
        let was_there = change(&mut named);
        write(&path, &named).with_context(|| format!("cannot write {}", path.display()))?;
        drop(lock);
        self.named = named;
        Ok(was_there)
    }
}

/// A profile as it is on disk. It has no `Debug`, for the secret's sake.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    url: String,
    client_id: String,
    client_secret: String,
}

fn file_of(folder: &Path) -> PathBuf {
    folder.join("profiles.json")
}

fn make_private_folder(folder: &Path) -> anyhow::Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.with_context(|| format!("cannot make the folder {}", folder.display()))
}

/// Holds off other logins until it is dropped. The file beside is locked: the profiles' own is replaced.
fn lock(folder: &Path) -> anyhow::Result<File> {
    let path = folder.join("profiles.lock");
    let failed = || format!("cannot lock {}", path.display());
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
    let file = file.with_context(failed)?;
    for _ in 0..LOCK_TRIES_MAX {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            Err(TryLockError::Error(error)) => return Err(error).with_context(failed),
        }
    }
    bail!("another batchscan holds {} and does not let go", path.display())
}

fn read(path: &Path) -> anyhow::Result<BTreeMap<ProfileName, Profile>> {
    let shown = path.display();
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeMap::new()),
        file => file.with_context(|| format!("cannot read {shown}"))?,
    };
    let mode = file.metadata().with_context(|| format!("cannot read {shown}"))?.permissions().mode();
    if mode & 0o077 != 0 {
        bail!("{shown} holds secrets, and others can read or write it: chmod 600 {shown}");
    }
    let mut bytes = Vec::new();
    file.take(PROFILES_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read {shown}"))?;
    if bytes.len() as u64 > PROFILES_BYTES_MAX {
        bail!("{shown} is damaged: profiles have at most {PROFILES_BYTES_MAX} bytes");
    }
    parse(&bytes).map_err(|fault| anyhow::anyhow!("{shown} is damaged: {fault}"))
}

fn parse(bytes: &[u8]) -> Result<BTreeMap<ProfileName, Profile>, String> {
    let stored: BTreeMap<String, Stored> = serde_json::from_slice(bytes).map_err(|error| fault(&error))?;
    let read = |(name, stored): (String, Stored)| {
        let Stored { url, client_id, client_secret } = stored;
        let name = ProfileName::parse(&name).map_err(|form| format!("a profile's name is {form}"))?;
        Ok((name, Profile { url, client_id, client_secret: ClientSecret::new(client_secret) }))
    };
    stored.into_iter().map(read).collect()
}

/// In our own words: the parser's could repeat a secret that stands in the wrong place.
fn fault(error: &serde_json::Error) -> String {
    let what = match error.classify() {
        Category::Eof => "the file ends too early",
        Category::Data => "this is no profile of url, client_id and client_secret",
        Category::Syntax | Category::Io => "this is not JSON",
    };
    format!("line {}, column {}: {what}", error.line(), error.column())
}

/// All or nothing: a file beside it, readable by its owner alone from the start, takes its place when it is on disk.
fn write(path: &Path, named: &BTreeMap<ProfileName, Profile>) -> anyhow::Result<()> {
    let stored: BTreeMap<&str, Stored> =
        named.iter().map(|(name, profile)| (name.0.as_str(), stored(profile))).collect();
    let mut text = serde_json::to_vec_pretty(&stored)?;
    text.push(b'\n');
    if text.len() as u64 > PROFILES_BYTES_MAX {
        bail!("profiles have at most {PROFILES_BYTES_MAX} bytes: remove some first");
    }
    let folder = path.parent().context("a file is in a folder")?;
    let private = std::fs::Permissions::from_mode(0o600);
    let mut beside =
        tempfile::Builder::new().prefix(".profiles-").permissions(private).tempfile_in(folder)?;
    beside.write_all(&text)?;
    beside.as_file().sync_all()?;
    beside.persist(path)?;
    // The new name, too, is to outlast a power cut.
    Ok(File::open(folder)?.sync_all()?)
}

fn stored(profile: &Profile) -> Stored {
    Stored {
        url: profile.url.clone(),
        client_id: profile.client_id.clone(),
        client_secret: profile.client_secret.reveal().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    const SECRET: &str = "hush-hush";

    fn name(text: &str) -> ProfileName {
        ProfileName::parse(text).unwrap()
    }

    fn profile() -> Profile {
        let url = "https://scans.example.org".to_owned();
        Profile { url, client_id: "bs_a".into(), client_secret: ClientSecret::new(SECRET) }
    }

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    /// What is said of a file with this text, its path replaced.
    fn refused(text: &str) -> String {
        let home = TempDir::new().unwrap();
        let path = file_of(home.path());
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let error = Profiles::load(home.path()).unwrap_err();
        format!("{error:#}").replace(&path.display().to_string(), "PATH")
    }

    #[test]
    fn a_saved_profile_is_there_next_time_until_it_is_removed() {
        let home = TempDir::new().unwrap();
        let folder = home.path().join("config/batchscan");
        let mut profiles = Profiles::load(&folder).unwrap();
        assert!(!profiles.remove(&name("north")).unwrap());
        profiles.save(&name("north"), profile()).unwrap();
        let mut again = Profiles::load(&folder).unwrap();
        assert_eq!(again.get(&name("north")).unwrap().client_secret.reveal(), SECRET);
        assert_eq!(again.list().map(|(name, _)| name.to_string()).collect::<Vec<_>>(), ["north"]);
        assert!(again.remove(&name("north")).unwrap());
        assert!(!again.remove(&name("north")).unwrap());
        assert_eq!(Profiles::load(&folder).unwrap().list().count(), 0);
    }

    #[test]
    fn folder_and_file_are_their_owners_alone_and_nothing_else_is_left_behind() {
        let home = TempDir::new().unwrap();
        let folder = home.path().join("batchscan");
        Profiles::load(&folder).unwrap().save(&name("north"), profile()).unwrap();
        assert_eq!((mode(&folder), mode(&file_of(&folder))), (0o700, 0o600));
        let mut left: Vec<_> =
            std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["profiles.json", "profiles.lock"]);
    }

    #[test]
    fn a_file_that_others_can_read_or_write_is_refused_with_the_remedy() {
        let home = TempDir::new().unwrap();
        let mut profiles = Profiles::load(home.path()).unwrap();
        profiles.save(&name("north"), profile()).unwrap();
        let path = file_of(home.path());
        for open in [0o640, 0o602, 0o666] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(open)).unwrap();
            let told = Profiles::load(home.path()).unwrap_err().to_string();
            assert!(told.ends_with(&format!(": chmod 600 {}", path.display())), "{told}");
            assert!(profiles.save(&name("south"), profile()).is_err());
        }
    }

    #[test]
    fn a_damaged_file_is_named_with_the_place_and_without_a_word_of_it() {
        assert_eq!(refused("{\n  \"a\": hush"), "PATH is damaged: line 2, column 8: this is not JSON");
        assert_eq!(refused("{\"a\": {"), "PATH is damaged: line 1, column 7: the file ends too early");
        assert_eq!(
            refused("{\"a\": \"hush-hush\"}"),
            "PATH is damaged: line 1, column 17: this is no profile of url, client_id and client_secret"
        );
        for wrong in [
            "\"hush-hush\"",
            "{\"a\": {\"url\": \"u\", \"client_id\": \"c\", \"client_secret\": [\"hush-hush\"]}}",
            "{\"a\": {\"url\": \"u\", \"client_id\": \"c\", \"hush-hush\": \"x\"}}",
            "{\"a\": {\"url\": \"u\", \"client_id\": \"c\"}}",
        ] {
            let told = refused(wrong);
            assert!(told.contains("line 1, column ") && !told.contains("hush"), "{told}");
        }
        let stored = "{\"url\": \"u\", \"client_id\": \"c\", \"client_secret\": \"hush-hush\"}";
        assert!(refused(&format!("{{\"a b\": {stored}}}")).contains("a profile's name is 1 to 40"));
        assert!(refused(&" ".repeat(1024 * 1024 + 1)).contains("at most 1048576 bytes"));
    }

    #[test]
    fn no_secret_is_in_debug() {
        let home = TempDir::new().unwrap();
        let mut profiles = Profiles::load(home.path()).unwrap();
        profiles.save(&name("north"), profile()).unwrap();
        let told = format!("{profiles:?}");
        assert!(told.contains("[redacted]") && !told.contains(SECRET), "{told}");
    }

    #[test]
    fn an_unknown_profile_is_answered_with_the_known_ones() {
        let home = TempDir::new().unwrap();
        let mut profiles = Profiles::load(home.path()).unwrap();
        let told = |profiles: &Profiles| profiles.get(&name("west")).unwrap_err().to_string();
        assert_eq!(told(&profiles), "there is no profile west, nor any other: `batchscan login` saves one");
        profiles.save(&name("south"), profile()).unwrap();
        profiles.save(&name("north"), profile()).unwrap();
        assert_eq!(told(&profiles), "there is no profile west: the saved ones are north, south");
    }

    #[test]
    fn logins_at_the_same_time_do_not_lose_one_another() {
        let home = TempDir::new().unwrap();
        std::thread::scope(|scope| {
            for n in 0..8 {
                let folder = home.path();
                scope.spawn(move || {
                    let mut profiles = Profiles::load(folder).unwrap();
                    profiles.save(&name(&format!("p{n}")), profile()).unwrap();
                });
            }
        });
        assert_eq!(Profiles::load(home.path()).unwrap().list().count(), 8);
    }

    #[test]
    fn a_name_needs_no_quoting() {
        assert!(ProfileName::parse("north_2.prod-a").is_ok() && ProfileName::parse(&"x".repeat(40)).is_ok());
        for wrong in ["", "a b", "ä", "a/b", "a\n", &"x".repeat(41)] {
            assert!(ProfileName::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_folder_is_the_users_own() {
        let at = |xdg: Option<&str>, home: Option<&str>| {
            folder(xdg.map(OsStr::new), home.map(OsStr::new)).map(|path| path.display().to_string()).ok()
        };
        assert_eq!(at(Some("/x"), Some("/home/ann")).unwrap(), "/x/batchscan");
        for unset in [None, Some(""), Some("relative")] {
            assert_eq!(at(unset, Some("/home/ann")).unwrap(), "/home/ann/.config/batchscan");
            assert_eq!(at(unset, None), None);
        }
    }
}
