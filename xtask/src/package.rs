//! `cargo xtask package`: a Debian package with the executable, its systemd units, manual pages and shell completions.

use std::fs::File;

use anyhow::{Context, Result};

use crate::workspace::{Workspace, run_command};

const CARGO_DEB: &str = "cargo-deb@3.8.0";
const UNITS: [&str; 4] =
    ["batchscan.service", "batchscan-watch@.service", "batchscan-backup.service", "batchscan-backup.timer"];
/// The names that the shells look for.
const COMPLETIONS: [(&str, &str); 3] =
    [("bash", "batchscan.bash"), ("zsh", "_batchscan"), ("fish", "batchscan.fish")];

/// Builds the package. Its content is listed in the manifest of the executable.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    run_command(&mut workspace.cargo("build --profile dist --package batchscan"))?;
    generate(workspace, "dist")?;
    run_cargo_deb(workspace, &[])
}

/// Packages an executable that was built for this target before.
pub(crate) fn run_for(workspace: &Workspace, target: &str) -> Result<()> {
    generate(workspace, &format!("{target}/dist"))?;
    run_cargo_deb(workspace, &["--target", target])
}

fn run_cargo_deb(workspace: &Workspace, target: &[&str]) -> Result<()> {
    let cargo_deb = workspace.install_tool(CARGO_DEB)?;
    let options = "--package batchscan --profile dist --no-build --no-strip --locked --output";
    let mut command = workspace.command(cargo_deb);
    run_command(command.args(options.split(' ')).arg(workspace.built("debian", "")).args(target))
}

/// Writes what the executable and the deployment files are the source of.
fn generate(workspace: &Workspace, built: &str) -> Result<()> {
    let folder = workspace.built(built, "package");
    let man = folder.join("man");
    std::fs::create_dir_all(&man).with_context(|| format!("cannot create {}", man.display()))?;
    let executable = workspace.built(built, "batchscan");
    run_command(workspace.command(&executable).arg("man-pages").arg(&man))?;
    for (shell, name) in COMPLETIONS {
        let script = File::create(folder.join(name))?;
        run_command(workspace.command(&executable).args(["completions", shell]).stdout(script))?;
    }
    for name in UNITS {
        let unit = std::fs::read_to_string(workspace.root.join("deploy/systemd").join(name))?;
        std::fs::write(folder.join(name), unit.replace("/usr/local/bin/", "/usr/bin/"))?;
    }
    Ok(())
}
