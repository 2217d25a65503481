//! batchscan's own databases: made by its commands, and kept as long as the executable stays the same.
//!
//! A thousand organisations are three thousand commands, so they are not made for every run.

use std::fs;
use std::hash::{DefaultHasher, Hasher as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::data::Source;
use super::works::Data;
use crate::cluster::http::Credential;
use crate::cluster::operator::Operator;
use crate::process;

/// How many organisations share a database in a whole run, and in a quick one.
pub(crate) const ORGANISATIONS: usize = 1_000;
pub(crate) const ORGANISATIONS_QUICK: usize = 100;
/// The only organisation of a database.
pub(crate) const ORGANISATION: &str = "Green Valley Nursery";
/// A sign of life while many are made.
const TELL_EVERY: usize = 100;

/// A database with batches in it.
#[derive(Clone, Debug)]
pub(crate) struct Database {
    pub(crate) operator: Operator,
    /// One for each organisation.
    pub(crate) credentials: Vec<Credential>,
}

/// SQLite databases in a folder.
#[derive(Debug)]
pub(crate) struct Shelf {
    folder: PathBuf,
    executable: PathBuf,
}

impl Shelf {
    /// What another executable made goes.
    pub(crate) fn open(folder: &Path, executable: &Path) -> Result<Self> {
        let name = format!("databases-{}", key(executable)?);
        for entry in fs::read_dir(folder)?.flatten() {
            let found = entry.file_name().to_string_lossy().into_owned();
            if found.starts_with("databases-") && found != name {
                fs::remove_dir_all(entry.path())?;
            }
        }
        let folder = folder.join(name);
        fs::create_dir_all(&folder)?;
        Ok(Self { folder, executable: executable.to_owned() })
    }

    /// A database with one organisation.
    pub(crate) fn single(&self, source: &Source, data: Data) -> Result<Database> {
        self.kept(&format!("one-{}", data.batches()), |operator| {
            Ok(vec![furnish(operator, &source.file(data))?])
        })
    }

    /// A database with many organisations of a thousand batches each.
    pub(crate) fn many(&self, source: &Source, organisations: usize) -> Result<Database> {
        self.kept(&format!("many-{organisations}"), |operator| {
            let batches = Data::Many.batches();
            let mut lines = source.lines(Data::Large)?;
            let mut credentials = Vec::new();
            for index in 0..organisations {
                let mine: Vec<String> = lines.by_ref().take(batches).collect::<std::io::Result<_>>()?;
                let name = format!("Nursery {index}");
                operator.add_organisation(&name)?;
                operator.import(&name, "ndjson", (mine.join("\n") + "\n").as_bytes())?;
                credentials.push(operator.issue_credential(&name)?);
                if (index + 1) % TELL_EVERY == 0 {
                    println!("  {} of {organisations} organisations", index + 1);
                }
            }
            Ok(credentials)
        })
    }

    /// The credentials are written last: a database without them is made anew.
    fn kept(&self, name: &str, make: impl FnOnce(&Operator) -> Result<Vec<Credential>>) -> Result<Database> {
        let path = self.folder.join(format!("{name}.db"));
        let operator = Operator::new(&self.executable, format!("sqlite:{}", path.display()));
        let list = self.folder.join(format!("{name}.json"));
        if let Ok(text) = fs::read_to_string(&list) {
            let credentials = serde_json::from_str(&text).context("kept credentials are odd")?;
            return Ok(Database { operator, credentials });
        }
        println!("making the database {name}, kept in {}", self.folder.display());
        remove(&path)?;
        let credentials = make(&operator)?;
        let rows: Vec<_> = credentials
            .iter()
            .map(|known| serde_json::json!({"client_id": known.client_id, "client_secret": known.client_secret}))
            .collect();
        fs::write(list, serde_json::to_string(&rows)?)?;
        Ok(Database { operator, credentials })
    }
}

impl Database {
    /// A copy in another folder that may be written to. Nobody may be using the original.
    pub(crate) fn copy(&self, folder: &Path) -> Result<Self> {
        let path = self.operator.database.strip_prefix("sqlite:").context("only SQLite is copied")?;
        if fs::metadata(format!("{path}-wal")).is_ok_and(|wal| wal.len() > 0) {
            bail!("{path} is in use");
        }
        let target = folder.join("copy.db");
        remove(&target)?;
        fs::copy(path, &target).with_context(|| format!("cannot copy {path}"))?;
        let operator = Operator::new(&self.operator.executable, format!("sqlite:{}", target.display()));
        Ok(Self { operator, credentials: self.credentials.clone() })
    }
}

/// Adds the organisation with the batches of a file, and gives its credential.
pub(crate) fn furnish(operator: &Operator, batches: &Path) -> Result<Credential> {
    operator.add_organisation(ORGANISATION)?;
    let mut import = operator.command(&["import", "--org", ORGANISATION]);
    process::stdout_of(import.arg(batches))?;
    operator.issue_credential(ORGANISATION)
}

/// Removes a database and what SQLite keeps beside it.
pub(crate) fn remove(path: &Path) -> Result<()> {
    for ending in ["", "-wal", "-shm"] {
        match fs::remove_file(format!("{}{ending}", path.display())) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}

fn key(executable: &Path) -> Result<String> {
    let mut hasher = DefaultHasher::new();
    hasher.write(&fs::read(executable).with_context(|| format!("cannot read {}", executable.display()))?);
    Ok(format!("{:016x}", hasher.finish()))
}
