//! `cargo xtask dashboard`: the dashboard's own tests, then a real browser on the real executable; `screenshots`.
//!
//! Knows of `web/` its npm scripts alone.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::cluster::Built;
use crate::process;
use crate::workspace::Workspace;

const WEB: &str = "web";
/// Where the README finds its pictures.
const PICTURES: &str = "docs/pictures";
/// npm's own note of what it installed.
const INSTALLED: &str = "node_modules/.package-lock.json";

/// Types, units, and a browser on the executable that the step before built.
pub(crate) fn run_step(workspace: &Workspace) -> Result<()> {
    try_all(workspace, &workspace.release_executable("batchscan")?)
}

/// The same on an executable of the caller's choice.
pub(crate) fn run(workspace: &Workspace, built: &Built) -> Result<()> {
    try_all(workspace, &built.executable(workspace)?)
}

/// Makes the README's pictures anew.
pub(crate) fn screenshots(workspace: &Workspace, built: &Built) -> Result<()> {
    let executable = built.executable(workspace)?;
    let web = installed(workspace)?;
    let pictures = workspace.root.join(PICTURES);
    std::fs::create_dir_all(&pictures).with_context(|| format!("cannot make {}", pictures.display()))?;
    let mut npm = npm(&web, &["run", "--silent", "pictures", "--"]);
    process::run(npm.arg(&pictures).env("BATCHSCAN_EXE", executable))
}

fn try_all(workspace: &Workspace, executable: &Path) -> Result<()> {
    let web = installed(workspace)?;
    process::run(&mut npm(&web, &["run", "--silent", "check"]))?;
    process::run(&mut npm(&web, &["run", "--silent", "test"]))?;
    process::run(npm(&web, &["run", "--silent", "e2e"]).env("BATCHSCAN_EXE", executable))
}

/// The folder with its packages in place, as the lock file has them.
fn installed(workspace: &Workspace) -> Result<PathBuf> {
    let web = workspace.root.join(WEB);
    if !is_newer(&web.join(INSTALLED), &web.join("package-lock.json")) {
        let quietly =
            ["ci", "--include=dev", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
        process::run(&mut npm(&web, &quietly))?;
    }
    Ok(web)
}

fn is_newer(made: &Path, source: &Path) -> bool {
    let changed = |path: &Path| path.metadata().and_then(|data| data.modified()).ok();
    changed(made).is_some_and(|made| changed(source).is_some_and(|source| made >= source))
}

fn npm(web: &Path, arguments: &[&str]) -> Command {
    let mut npm = Command::new("npm");
    process::without_settings(&mut npm);
    npm.args(arguments).current_dir(web);
    npm
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_installed_anew_when_the_lock_file_is_newer_or_nothing_is_there() {
        let folder = std::env::temp_dir().join(format!("xtask-dashboard-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (lock, made) = (folder.join("lock"), folder.join("made"));
        std::fs::write(&lock, "").unwrap();
        assert!(!is_newer(&made, &lock));
        std::fs::write(&made, "").unwrap();
        assert!(is_newer(&made, &lock));
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
        std::fs::File::open(&lock).unwrap().set_modified(later).unwrap();
        assert!(!is_newer(&made, &lock));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
