//! Our own Python package, held against its tests and its types.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::homes::{Homes, PACKAGE};
use crate::process;
use crate::workspace::Workspace;

/// Runs its tests, which start the executable, and checks its types strictly.
pub(crate) fn run(workspace: &Workspace, homes: &Homes, executable: &Path) -> Result<()> {
    let python = || {
        let mut command = Command::new(homes.package_python());
        process::without_settings(&mut command);
        command.current_dir(workspace.root.join(PACKAGE)).env("PYTHONDONTWRITEBYTECODE", "1");
        command
    };
    let cache = workspace.scratch_file("mypy")?;
    process::run(python().args(["-m", "mypy", "--strict", "--cache-dir"]).arg(cache).arg("src"))?;
    process::run(python().args(["-m", "pytest", "--quiet"]).env("BATCHSCAN_EXE", executable))
}
