//! Developer commands: `cargo xtask test`, `tidy`, `gate`, `sbom`, `package`, `release`, `cluster`, `failover`.
//!
//! Links no crate of the workspace except the testbed, so that it builds in seconds even if the tree does not compile.

use std::process::ExitCode;

use anyhow::{Result, bail};

use workspace::{Workspace, run_command};

mod cluster;
mod conformance;
mod dependencies;
mod failover;
mod gate;
mod package;
mod test;
mod tidy;
mod windows;
mod workspace;

const USAGE: &str = "\
Usage: cargo xtask COMMAND

  test [STEP...]  Run every check, or only the named steps; windows runs only if it is named
  tidy            Check decisions, links between documents, and migrations
  gate            Count the instructions of the hot paths and compare them with xtask/gate-budget.txt
  sbom            Print what the executable is made of, as CycloneDX JSON
  package [--target TARGET]
                  Build the Debian package, with manual pages and shell completions; of what was built for a target
  windows-build   Build batchscan.exe
  release         Build what is published into target/release-files, and try each file; as root
  cluster         Run three PostgreSQL servers, three nodes and HAProxy with demo data; kill parts on request
  failover [--rounds N] [--write]
                  Kill parts of such a cluster under load and check every response; --write updates docs/FAILOVER.md

BATCHSCAN_EXE names the executable to run. Without it, cluster and failover build one.";

#[expect(clippy::print_stderr, reason = "errors belong on stderr")]
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[&str]) -> Result<()> {
    let workspace = Workspace::find()?;
    match arguments {
        ["test", steps @ ..] => test::run(&workspace, steps),
        ["tidy"] => tidy::run(&workspace),
        ["gate"] => gate::run(&workspace),
        ["sbom"] => dependencies::print_sbom(&workspace),
        ["package"] => package::run(&workspace),
        ["package", "--target", target] => package::run_for(&workspace, target),
        ["windows-build"] => windows::build(&workspace),
        ["release"] => run_command(workspace.command("python3").arg("xtask/release.py")),
        ["cluster"] => cluster::run(&workspace, false),
        ["cluster", "--json"] => cluster::run(&workspace, true),
        ["failover", options @ ..] => failover::run(&workspace, options),
        [] | ["help" | "-h" | "--help"] => {
            println!("{USAGE}\n\nSteps of test: {}", test::step_names().join(" "));
            Ok(())
        }
        _ => bail!("unknown arguments: {}\n\n{USAGE}", arguments.join(" ")),
    }
}
