//! `cargo xtask failover`: kills parts of a site under load and checks every response. The clients, the rules and the
//! order of events are in `xtask/failover`, in Python; [`crate::cluster`] does what is done to the site.

use std::path::Path;

use anyhow::Result;

use crate::workspace::{Workspace, run_command};

/// Passes the options on.
pub(crate) fn run(workspace: &Workspace, options: &[&str]) -> Result<()> {
    start(workspace, &workspace.build_executable()?, options)
}

/// The step of `cargo xtask test`.
pub(crate) fn run_short(workspace: &Workspace) -> Result<()> {
    let mut tests = workspace.command("python3");
    run_command(tests.args(["-B", "-m", "unittest", "discover", "xtask/failover"]))?;
    start(workspace, &workspace.executable()?, &["--rounds", "2"])
}

fn start(workspace: &Workspace, executable: &Path, options: &[&str]) -> Result<()> {
    let mut command = workspace.command("python3");
    command.arg("xtask/failover/run.py").arg(std::env::current_exe()?).args(options);
    run_command(command.env("BATCHSCAN_EXE", executable))
}
