//! Where packages live: virtual environments of Python and a folder of Node's, pinned, in the target folder.
//!
//! Each is made once and kept under a key over all that it was made from. The tree itself stays clean.

use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::process;
use crate::workspace::Workspace;

/// Our own Python package, relative to the root. It is used from there: clones may share one target folder, and what is
/// installed in it could be another clone's.
pub(crate) const PACKAGE: &str = "clients/python";
/// The programs and what they need.
pub(crate) const MATRIX: &str = "clients/matrix";

/// Written last, so that a home whose making broke off is made anew.
const COMPLETE: &str = "complete";

/// A virtual environment to be made: its name and its requirements.
type Plan = (&'static str, &'static str);

const MATRIX_VENV: Plan = ("matrix", "clients/matrix/requirements.txt");
const PACKAGE_VENV: Plan = ("package", "clients/python/requirements-test.txt");
const AIRBYTE_VENV: Plan = ("airbyte", "clients/matrix/requirements-airbyte.txt");
const SINGER_VENV: Plan = ("singer", "clients/matrix/requirements-singer.txt");
const OPENAPI_VENV: Plan = ("openapi", "clients/openapi/requirements.txt");

/// All of them, ready.
pub(crate) struct Homes {
    matrix: PathBuf,
    package: PathBuf,
    airbyte: PathBuf,
    singer: PathBuf,
    openapi: PathBuf,
    /// Holds `node_modules` and, beside them, Node's programs.
    node: PathBuf,
}

impl Homes {
    /// Makes what is not there yet.
    pub(crate) fn make(workspace: &Workspace) -> Result<Self> {
        let folder = workspace.scratch_file("clients")?;
        Ok(Self {
            matrix: planned(workspace, MATRIX_VENV)?,
            package: planned(workspace, PACKAGE_VENV)?,
            airbyte: planned(workspace, AIRBYTE_VENV)?,
            singer: planned(workspace, SINGER_VENV)?,
            openapi: planned(workspace, OPENAPI_VENV)?,
            node: node(&workspace.root.join(MATRIX), &folder).context("no home for Node's programs")?,
        })
    }

    /// The Python that has the libraries of the matrix.
    pub(crate) fn python(&self) -> PathBuf {
        python_of(&self.matrix)
    }

    /// The Python that has what our own package is tested with.
    pub(crate) fn package_python(&self) -> PathBuf {
        python_of(&self.package)
    }

    /// A program of those that read our OpenAPI document.
    pub(crate) fn openapi_program(&self, name: &str) -> PathBuf {
        self.openapi.join("bin").join(name)
    }

    /// A program of Node's, where it finds its packages.
    pub(crate) fn node_program(&self, name: &str) -> PathBuf {
        self.node.join(name)
    }

    /// A PATH on which `python` is the matrix's; of the others only the programs that it lacks are found.
    pub(crate) fn path(&self) -> Result<OsString> {
        let own = [&self.matrix, &self.airbyte, &self.singer].map(|home| home.join("bin"));
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::join_paths(own.into_iter().chain(std::env::split_paths(&path))).context("PATH is odd")
    }
}

/// The Python that has pandas, pyarrow, openpyxl and requests, without the homes of all others.
pub(crate) fn data_python(workspace: &Workspace) -> Result<PathBuf> {
    planned(workspace, PACKAGE_VENV).map(|home| python_of(&home))
}

fn python_of(home: &Path) -> PathBuf {
    home.join("bin/python")
}

fn planned(workspace: &Workspace, (name, requirements): Plan) -> Result<PathBuf> {
    let folder = workspace.scratch_file("clients")?;
    venv(&folder, name, &workspace.root.join(requirements))
        .with_context(|| format!("no home for {requirements}"))
}

/// A virtual environment with what a file of requirements names. Always an environment: a system's own Python refuses to
/// be installed into.
pub(crate) fn venv(folder: &Path, name: &str, requirements: &Path) -> Result<PathBuf> {
    let version = process::stdout_of(Command::new("python3").arg("--version"))?;
    kept(folder, name, &[version, text(requirements)?], |home| {
        process::run(Command::new("python3").args(["-m", "venv"]).arg(home))?;
        let mut pip = Command::new(home.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        process::run(pip.arg("--requirement").arg(requirements))
    })
}

fn node(programs: &Path, folder: &Path) -> Result<PathBuf> {
    let manifests = ["package.json", "package-lock.json"].map(|name| programs.join(name));
    let mut sources = vec![process::stdout_of(Command::new("node").arg("--version"))?];
    for manifest in &manifests {
        sources.push(text(manifest)?);
    }
    let home = kept(folder, "node", &sources, |home| {
        fs::create_dir_all(home)?;
        copy_into(home, &manifests)?;
        let quietly = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
        process::run(Command::new("npm").args(quietly).current_dir(home))
    })?;
    // Node looks for packages beside the program that imports them.
    copy_into(&home, &files_ending(programs, ".mjs")?)?;
    Ok(home)
}

/// The files of a folder whose names end so, in order.
pub(crate) fn files_ending(folder: &Path, ending: &str) -> Result<Vec<PathBuf>> {
    let read = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut paths: Vec<PathBuf> = read.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.to_string_lossy().ends_with(ending));
    paths.sort();
    Ok(paths)
}

/// The folder that was made from these sources; what was made from others goes.
fn kept(
    folder: &Path,
    name: &str,
    sources: &[String],
    make: impl FnOnce(&Path) -> Result<()>,
) -> Result<PathBuf> {
    let home = folder.join(format!("{name}-{}", key(sources)));
    if home.join(COMPLETE).is_file() {
        return Ok(home);
    }
    fs::create_dir_all(folder)?;
    for entry in fs::read_dir(folder)?.flatten() {
        if entry.file_name().to_string_lossy().starts_with(&format!("{name}-")) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    make(&home)?;
    fs::write(home.join(COMPLETE), "")?;
    Ok(home)
}

fn key(sources: &[String]) -> String {
    let mut hasher = DefaultHasher::new();
    for source in sources {
        // The length first, so that a line that moves from one source to the next makes a difference.
        hasher.write_usize(source.len());
        hasher.write(source.as_bytes());
    }
    format!("{:016x}", hasher.finish())
}

fn text(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn copy_into(folder: &Path, files: &[PathBuf]) -> Result<()> {
    for file in files {
        let name = file.file_name().with_context(|| format!("{} has no name", file.display()))?;
        fs::copy(file, folder.join(name)).with_context(|| format!("cannot copy {}", file.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("xtask-homes-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    #[test]
    fn a_home_is_made_once_and_anew_when_its_sources_change() {
        let folder = folder("once");
        let make = |home: &Path| Ok(fs::create_dir_all(home)?);
        let first = kept(&folder, "a", &["x==1".into()], make).unwrap();
        let again = kept(&folder, "a", &["x==1".into()], |_| anyhow::bail!("made twice")).unwrap();
        assert_eq!(first, again);
        let second = kept(&folder, "a", &["x==2".into()], make).unwrap();
        assert!(second.is_dir() && !first.exists());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_home_whose_making_broke_off_is_made_anew() {
        let folder = folder("broken");
        let broken = kept(&folder, "a", &[], |home| {
            fs::create_dir_all(home)?;
            anyhow::bail!("no network")
        });
        assert!(broken.is_err());
        kept(&folder, "a", &[], |home| Ok(fs::create_dir(home)?)).unwrap();
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn every_source_counts_and_so_does_where_it_ends() {
        let key_of = |sources: &[&str]| key(&sources.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(key_of(&["a", "b"]), key_of(&["a", "b"]));
        assert_ne!(key_of(&["a", "b"]), key_of(&["a", "c"]));
        assert_ne!(key_of(&["ab", "c"]), key_of(&["a", "bc"]));
    }
}
