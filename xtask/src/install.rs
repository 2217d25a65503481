//! Installs what the tests need and the machine lacks, through its package manager, and says so.
//!
//! Where it cannot, it fails with the line to type: nothing is skipped in silence.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, anyhow, bail};

use crate::process;
use crate::workspace::Workspace;

/// A program that the steps run, and the Debian package that brings it.
struct Tool {
    program: &'static str,
    package: &'static str,
}

const TOOLS: &[Tool] = &[
    Tool { program: "valgrind", package: "valgrind" },
    Tool { program: "curl", package: "curl" },
    Tool { program: "git", package: "git" },
    Tool { program: "initdb", package: "postgresql" },
    Tool { program: "haproxy", package: "haproxy" },
    Tool { program: "pgbouncer", package: "pgbouncer" },
];

/// Debian's home of servers, which is not on every user's PATH.
const SERVERS: &str = "/usr/sbin";
/// Debian keeps PostgreSQL's programs off the PATH, in `bin` of a folder a version.
const POSTGRES_VERSIONS: &str = "/usr/lib/postgresql";

/// The toolchain's own parts: the cargo command and the rustup component that brings it.
const COMPONENTS: &[(&str, &str)] = &[("fmt", "rustfmt"), ("clippy", "clippy")];

/// Makes sure that every program the steps run is there.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    require_components(workspace)?;
    let packages = missing_packages(is_there);
    if packages.is_empty() {
        println!("nothing to install");
        return Ok(());
    }
    println!("missing on this machine: {}; installing with apt-get", packages.join(" "));
    install(&packages).map_err(|error| anyhow!("{error:#}; install by hand: {}", packages.join(" ")))?;
    let still = missing_packages(is_there);
    if !still.is_empty() {
        bail!("apt-get succeeded, yet their programs are not found: {}", still.join(" "));
    }
    Ok(())
}

fn require_components(workspace: &Workspace) -> Result<()> {
    for (subcommand, component) in COMPONENTS {
        if process::stdout_of(&mut workspace.cargo(&[subcommand, "--version"])).is_err() {
            bail!("cargo {subcommand} is missing; run `rustup component add {component}`");
        }
    }
    Ok(())
}

fn missing_packages(is_there: impl Fn(&str) -> bool) -> Vec<&'static str> {
    TOOLS.iter().filter(|tool| !is_there(tool.program)).map(|tool| tool.package).collect()
}

/// Whether a program is on the PATH, or where Debian puts servers.
fn is_there(program: &str) -> bool {
    let versions = fs::read_dir(POSTGRES_VERSIONS).into_iter().flatten().flatten();
    let mut folders = versions.map(|version| version.path().join("bin")).chain([PathBuf::from(SERVERS)]);
    process::is_on_path(program) || folders.any(|folder| folder.join(program).is_file())
}

fn install(packages: &[&str]) -> Result<()> {
    if !process::is_on_path("apt-get") {
        bail!("this machine has no apt-get");
    }
    let is_root = process::stdout_of(Command::new("id").arg("-u"))?.trim() == "0";
    if !is_root && !process::is_on_path("sudo") {
        bail!("installing needs root, and this machine has no sudo");
    }
    process::run(&mut apt_get(is_root, &["update"]))?;
    let arguments = [&["install", "--yes", "--no-install-recommends"], packages].concat();
    process::run(&mut apt_get(is_root, &arguments))
}

/// `env` comes after sudo, which drops the caller's variables.
fn apt_get(is_root: bool, arguments: &[&str]) -> Command {
    let mut command = Command::new(if is_root { "env" } else { "sudo" });
    if !is_root {
        command.arg("env");
    }
    command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get"]).args(arguments);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_missing_is_installed() {
        assert_eq!(missing_packages(|program| program != "valgrind"), ["valgrind"]);
        assert!(missing_packages(|_| true).is_empty());
    }

    #[test]
    fn a_program_that_nobody_has_is_missing() {
        assert!(is_there("sh"));
        assert!(!is_there("no-such-program"));
    }

    #[test]
    fn apt_get_runs_under_sudo_for_everyone_but_root() {
        let line = |is_root| process::command_line(&apt_get(is_root, &["update"]));
        assert_eq!(line(true), "env DEBIAN_FRONTEND=noninteractive apt-get update");
        assert_eq!(line(false), "sudo env DEBIAN_FRONTEND=noninteractive apt-get update");
    }
}
