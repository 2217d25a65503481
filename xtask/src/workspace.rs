//! Where things are and how crates hang together, as cargo itself tells it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::process;

/// The workspace: the part of `cargo metadata` that the tasks use.
#[derive(Debug, Deserialize)]
pub(crate) struct Workspace {
    #[serde(rename = "workspace_root")]
    pub(crate) root: PathBuf,
    target_directory: PathBuf,
    pub(crate) packages: Vec<Package>,
}

/// A crate of the workspace.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) manifest_path: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
}

/// A line of a crate's dependencies, before features and versions are resolved.
#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// Absent for a normal dependency, else `dev` or `build`.
    pub(crate) kind: Option<String>,
}

impl Workspace {
    /// Asks cargo for the workspace that this program belongs to.
    pub(crate) fn find() -> Result<Self> {
        let manifest = own_manifest();
        let mut command = Command::new(cargo_program());
        command.args(["metadata", "--format-version", "1", "--no-deps", "--manifest-path"]).arg(manifest);
        Self::from_metadata(&process::stdout_of(&mut command)?)
    }

    /// Reads what `cargo metadata --no-deps` prints.
    pub(crate) fn from_metadata(json: &str) -> Result<Self> {
        serde_json::from_str(json).context("cargo metadata has an unknown form")
    }

    /// A cargo command, at the root of the workspace.
    pub(crate) fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(cargo_program());
        command.current_dir(&self.root).args(arguments);
        // What `cargo run` says of xtask to xtask is not for the crates that are built next: some build scripts watch it,
        // and would build all that stands on them anew each time.
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
                command.env_remove(name);
            }
        }
        command
    }

    /// The absolute path of something that a release build made: `batchscan`, `examples/hot_path`.
    pub(crate) fn release_executable(&self, name: &str) -> Result<PathBuf> {
        let path = self.target_directory.join("release").join(name);
        if !path.is_file() {
            bail!("{} is missing although its build succeeded; is build.target set?", path.display());
        }
        Ok(path)
    }

    /// A file of our own in the target folder, for what a failure leaves behind to be read.
    pub(crate) fn scratch_file(&self, name: &str) -> Result<PathBuf> {
        let folder = self.target_directory.join("xtask");
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(folder.join(name))
    }

    /// A path as the tree names it: relative to the root.
    pub(crate) fn relative(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).to_string_lossy().into_owned()
    }
}

/// The cargo that started us, so that a toolchain chosen with `cargo +name` holds for every step.
fn cargo_program() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Read at run time: clones may share one target folder, so a path compiled in could be another clone's.
fn own_manifest() -> PathBuf {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from("."), PathBuf::from);
    folder.join("Cargo.toml")
}
