//! Saved logins by name, in `profiles.json` in the user's config folder.
//! Rejects a file that other users can read. No error contains the file's content.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use batchscan_model::ClientSecret;
use batchscan_store::platform::private;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::error::Category;

use crate::{atomic_file, platform};

/// Enough for thousands of profiles. Bounds the memory for a wrong file.
const PROFILES_BYTES_MAX: u64 = 1024 * 1024;

/// Short enough for a table column.
const NAME_BYTES_MAX: usize = 40;

/// The profile that is used if none is named.
pub(crate) const DEFAULT_NAME: &str = "default";

/// A profile's name: 1 to 40 of `[A-Za-z0-9_.-]`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct ProfileName(String);

impl ProfileName {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        if (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_allowed) {
            return Ok(Self(text.to_owned()));
        }
        Err(format!("must have 1 to {NAME_BYTES_MAX} letters, digits, underscores, dots and hyphens"))
    }

    pub(crate) fn is_default(&self) -> bool {
        self.0 == DEFAULT_NAME
    }
}

impl fmt::Display for ProfileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The address of a service and the credentials for it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Profile {
    pub(crate) url: String,
    pub(crate) client_id: String,
    #[serde(serialize_with = "write_secret", deserialize_with = "read_secret")]
    pub(crate) client_secret: ClientSecret,
    /// Certificates to trust in addition to the system's; an absolute path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ca_cert: Option<PathBuf>,
}

fn write_secret<S: Serializer>(secret: &ClientSecret, file: S) -> Result<S::Ok, S::Error> {
    file.serialize_str(secret.reveal())
}

fn read_secret<'de, D: Deserializer<'de>>(file: D) -> Result<ClientSecret, D::Error> {
    String::deserialize(file).map(ClientSecret::new)
}

/// `$XDG_CONFIG_HOME/batchscan` (`%LOCALAPPDATA%\batchscan` on Windows), or `.config/batchscan` in the home folder.
pub(crate) fn folder(config_home: Option<&OsStr>, home: Option<&OsStr>) -> anyhow::Result<PathBuf> {
    // The XDG specification says to ignore relative paths.
    let absolute = |path: Option<&OsStr>| path.map(PathBuf::from).filter(|path| path.is_absolute());
    let config = absolute(config_home).or_else(|| absolute(home).map(|home| home.join(".config")));
    let config =
        config.with_context(|| format!("no config folder: set HOME or {}", platform::CONFIG_VARIABLE));
    Ok(config?.join("batchscan"))
}

/// The profiles of a folder.
#[derive(Debug)]
pub(crate) struct Profiles {
    folder: PathBuf,
    named: BTreeMap<ProfileName, Profile>,
}

impl Profiles {
    /// Reads the profiles of a folder. A missing folder has none.
    pub(crate) fn load(folder: &Path) -> anyhow::Result<Self> {
        Ok(Self { folder: folder.to_owned(), named: read(&file_of(folder))? })
    }

    pub(crate) fn get(&self, name: &ProfileName) -> anyhow::Result<&Profile> {
        if let Some(profile) = self.named.get(name) {
            return Ok(profile);
        }
        let known: Vec<&str> = self.named.keys().map(|name| name.0.as_str()).collect();
        if known.is_empty() {
            bail!("profile {name} not found: no profiles are saved; save one with `batchscan login`");
        }
        bail!("profile {name} not found: saved profiles are {}", known.join(", "))
    }

    pub(crate) fn list(&self) -> impl Iterator<Item = (&ProfileName, &Profile)> {
        self.named.iter()
    }

    pub(crate) fn path(&self) -> PathBuf {
        file_of(&self.folder)
    }

    /// Saves a profile, replacing one of the same name.
    pub(crate) fn save(&mut self, name: &ProfileName, profile: Profile) -> anyhow::Result<()> {
        make_private_folder(&self.folder)?;
        self.change(|named| named.insert(name.clone(), profile).is_some()).map(drop)
    }

    /// Removes a profile; false if there was none.
    pub(crate) fn remove(&mut self, name: &ProfileName) -> anyhow::Result<bool> {
        if !self.folder.is_dir() {
            return Ok(false);
        }
        self.change(|named| named.remove(name).is_some())
    }

    /// Changes the current content of the file: another login may have written it after it was loaded.
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

fn file_of(folder: &Path) -> PathBuf {
    folder.join("profiles.json")
}

fn make_private_folder(folder: &Path) -> anyhow::Result<()> {
    platform::create_private_folder(folder)
        .with_context(|| format!("cannot create the folder {}", folder.display()))
}

/// Locks out other logins until it is dropped: each holds the lock for milliseconds. Locks a separate file, because
/// `profiles.json` gets replaced.
fn lock(folder: &Path) -> anyhow::Result<File> {
    let path = folder.join("profiles.lock");
    let file = private(OpenOptions::new().write(true).create(true).truncate(false)).open(&path);
    let locked = file.and_then(|file| file.lock().map(|()| file));
    locked.with_context(|| format!("cannot lock {}", path.display()))
}

fn read(path: &Path) -> anyhow::Result<BTreeMap<ProfileName, Profile>> {
    let shown = path.display();
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeMap::new()),
        file => file.with_context(|| format!("cannot read {shown}"))?,
    };
    let metadata = file.metadata().with_context(|| format!("cannot read {shown}"))?;
    if platform::is_open_to_others(&metadata) {
        bail!("{shown} contains secrets, but other users can read or write it: run `chmod 600 {shown}`");
    }
    let mut bytes = Vec::new();
    file.take(PROFILES_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read {shown}"))?;
    if bytes.len() as u64 > PROFILES_BYTES_MAX {
        bail!("{shown} is damaged: it has more than {PROFILES_BYTES_MAX} bytes");
    }
    parse(&bytes).map_err(|error| anyhow::anyhow!("{shown} is damaged: {error}"))
}

fn parse(bytes: &[u8]) -> Result<BTreeMap<ProfileName, Profile>, String> {
    let named: BTreeMap<String, Profile> = serde_json::from_slice(bytes).map_err(|error| describe(&error))?;
    let parse_name = |(name, profile): (String, Profile)| {
        Ok((ProfileName::parse(&name).map_err(|error| format!("a profile name {error}"))?, profile))
    };
    named.into_iter().map(parse_name).collect()
}

/// Without the parser's own message, which could contain a misplaced secret.
fn describe(error: &serde_json::Error) -> String {
    let what = match error.classify() {
        Category::Eof => "unexpected end of file",
        Category::Data => "expected a profile with url, client_id and client_secret",
        Category::Syntax | Category::Io => "invalid JSON",
    };
    format!("line {}, column {}: {what}", error.line(), error.column())
}

fn write(path: &Path, named: &BTreeMap<ProfileName, Profile>) -> anyhow::Result<()> {
    let mut text = serde_json::to_vec_pretty(named)?;
    text.push(b'\n');
    if text.len() as u64 > PROFILES_BYTES_MAX {
        bail!("too many profiles (at most {PROFILES_BYTES_MAX} bytes): remove some with `batchscan logout`");
    }
    Ok(atomic_file::write_private(path, &text)?)
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
        Profile { url, client_id: "bs_a".into(), client_secret: ClientSecret::new(SECRET), ca_cert: None }
    }

    fn error_of(text: &str) -> String {
        let home = TempDir::new().unwrap();
        let path = file_of(home.path());
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let error = Profiles::load(home.path()).unwrap_err();
        format!("{error:#}").replace(&path.display().to_string(), "PATH")
    }

    #[test]
    fn a_saved_profile_can_be_loaded_until_it_is_removed() {
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
    fn errors_of_a_damaged_file_have_the_position_but_no_content() {
        assert_eq!(error_of("{\n  \"a\": hush"), "PATH is damaged: line 2, column 8: invalid JSON");
        assert_eq!(error_of("{\"a\": {"), "PATH is damaged: line 1, column 7: unexpected end of file");
        assert_eq!(
            error_of("{\"a\": \"hush-hush\"}"),
            "PATH is damaged: line 1, column 17: expected a profile with url, client_id and client_secret"
        );
        for wrong in [
            "\"hush-hush\"",
            "{\"a\": {\"url\": \"u\", \"client_id\": \"c\", \"client_secret\": [\"hush-hush\"]}}",
            "{\"a\": {\"url\": \"u\", \"client_id\": \"c\", \"hush-hush\": \"x\"}}",
            "{\"a\": {\"url\": \"u\", \"client_id\": \"c\"}}",
        ] {
            let error = error_of(wrong);
            assert!(error.contains("line 1, column ") && !error.contains("hush"), "{error}");
        }
        let stored = "{\"url\": \"u\", \"client_id\": \"c\", \"client_secret\": \"hush-hush\"}";
        assert!(error_of(&format!("{{\"a b\": {stored}}}")).contains("a profile name must have 1 to 40"));
        assert!(error_of(&" ".repeat(1024 * 1024 + 1)).contains("more than 1048576 bytes"));
    }

    #[test]
    fn debug_output_has_no_secret() {
        let home = TempDir::new().unwrap();
        let mut profiles = Profiles::load(home.path()).unwrap();
        profiles.save(&name("north"), profile()).unwrap();
        let text = format!("{profiles:?}");
        assert!(text.contains("[redacted]") && !text.contains(SECRET), "{text}");
    }

    #[test]
    fn concurrent_logins_are_all_saved() {
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
    fn names_need_no_quoting() {
        assert!(ProfileName::parse("north_2.prod-a").is_ok() && ProfileName::parse(&"x".repeat(40)).is_ok());
        for wrong in ["", "a b", "ä", "a/b", "a\n", &"x".repeat(41)] {
            assert!(ProfileName::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_folder_is_in_the_users_config() {
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
