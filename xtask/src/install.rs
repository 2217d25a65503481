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
    Tool { program: "jq", package: "jq" },
    Tool { program: "python3", package: "python3" },
    Tool { program: "node", package: "nodejs" },
    Tool { program: "npm", package: "npm" },
    Tool { program: "chromium", package: "chromium" },
    Tool { program: "Rscript", package: "r-base-core" },
];

/// A part that a program lacks unless a package of its own brings it, and the command that shows it is there.
struct Part {
    proof: &'static [&'static str],
    package: &'static str,
}

const PARTS: &[Part] = &[
    Part { proof: &["python3", "-c", "import venv"], package: "python3-venv" },
    // What a new virtual environment takes its pip from.
    Part { proof: &["python3", "-c", "import ensurepip"], package: "python3-venv" },
    // What Vite needs; and openid-client: 18 has no global `crypto`.
    Part { proof: &["node", "--eval", NODE_IS_NEW_ENOUGH], package: "nodejs" },
    Part { proof: &["Rscript", "-e", "library(httr2)"], package: "r-cran-httr2" },
    Part { proof: &["Rscript", "-e", "library(jsonlite)"], package: "r-cran-jsonlite" },
];

/// 20.19 or newer, as `crates/batchscan-web/build.rs` wants it.
const NODE_IS_NEW_ENOUGH: &str = "const [major, minor] = process.versions.node.split('.'); if (+major < 20 || (+major === 20 && +minor < 19)) process.exit(1)";

/// Debian's home of servers, which is not on every user's PATH.
const SERVERS: &str = "/usr/sbin";
/// Debian keeps PostgreSQL's programs off the PATH, in `bin` of a folder a version.
const POSTGRES_VERSIONS: &str = "/usr/lib/postgresql";

/// The toolchain's own parts: the cargo command and the rustup component that brings it.
const COMPONENTS: &[(&str, &str)] = &[("fmt", "rustfmt"), ("clippy", "clippy")];

/// Makes sure that every program the steps run is there.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    require_components(workspace)?;
    bring(TOOLS, PARTS)
}

fn bring(tools: &[Tool], parts: &[Part]) -> Result<()> {
    let packages = missing_packages(tools, parts, is_there, is_proven);
    if packages.is_empty() {
        println!("nothing to install");
        return Ok(());
    }
    println!("missing on this machine: {}; installing with apt-get", packages.join(" "));
    install(&packages).map_err(|error| anyhow!("{error:#}; install by hand: {}", packages.join(" ")))?;
    let still = missing_packages(tools, parts, is_there, is_proven);
    if !still.is_empty() {
        bail!("apt-get succeeded, yet their programs are not found, or too old: {}", still.join(" "));
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

/// Each once, tools before parts of theirs.
fn missing_packages(
    tools: &[Tool],
    parts: &[Part],
    is_there: impl Fn(&str) -> bool,
    is_proven: impl Fn(&[&str]) -> bool,
) -> Vec<&'static str> {
    let tools = tools.iter().filter(|tool| !is_there(tool.program)).map(|tool| tool.package);
    let parts = parts.iter().filter(|part| !is_proven(part.proof)).map(|part| part.package);
    let mut packages = Vec::new();
    for package in tools.chain(parts) {
        if !packages.contains(&package) {
            packages.push(package);
        }
    }
    packages
}

fn is_proven(proof: &[&str]) -> bool {
    let Some((program, arguments)) = proof.split_first() else { return false };
    process::stdout_of(Command::new(program).args(arguments)).is_ok()
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
        assert_eq!(missing_packages(TOOLS, PARTS, |program| program != "valgrind", |_| true), ["valgrind"]);
        assert!(missing_packages(TOOLS, PARTS, |_| true, |_| true).is_empty());
    }

    #[test]
    fn a_package_is_named_once_however_much_of_it_is_missing() {
        let python = |name: &str| !name.starts_with("python3");
        let missing = missing_packages(TOOLS, PARTS, python, |proof| python(proof[0]));
        assert_eq!(missing, ["python3", "python3-venv"]);
    }

    #[test]
    fn a_part_is_there_if_its_proof_succeeds() {
        assert!(is_proven(&["sh", "-c", "true"]));
        assert!(!is_proven(&["sh", "-c", "false"]));
        assert!(!is_proven(&["no-such-program"]));
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
