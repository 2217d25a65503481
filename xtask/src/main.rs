//! What developers run: `cargo xtask test`, `cargo xtask tidy`, `cargo xtask gate`.
//!
//! - [`mod@test`] does everything a change must pass, in order, and stops at the first failure;
//! - [`tidy`] holds the tree against the rules that no compiler checks;
//! - [`gate`] holds the hot path against its budget of instructions.
//!
//! Knows the other crates by their names, commands and files alone and links none of them, so that it builds
//! in seconds and can judge a tree that does not compile.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod conformance;
mod gate;
mod install;
mod process;
mod test;
mod tidy;
mod workspace;

/// What developers run.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Clone, Copy, Subcommand)]
enum Task {
    /// Do everything a change must pass: install tools, lint, build, test, check conformance, gate
    Test,
    /// Hold the tree against its rules: walls between modules, docs, migrations, decisions, links
    Tidy,
    /// Hold the hot path against its budget of instructions, counted by callgrind
    Gate,
}

#[expect(clippy::print_stderr, reason = "the one line that says what failed belongs on stderr")]
fn main() -> ExitCode {
    match run(Arguments::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> anyhow::Result<()> {
    let workspace = workspace::Workspace::find()?;
    match task {
        Task::Test => test::run(&workspace),
        Task::Tidy => tidy::run(&workspace),
        Task::Gate => gate::run(&workspace),
    }
}
