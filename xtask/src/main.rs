//! What developers run: `cargo xtask test`, `tidy`, `gate`, `clients`, `pulls`, `race`, `dashboard`,
//! `screenshots`, `cluster`, `failover`.
//!
//! - [`mod@test`] does everything a change must pass, in order, and stops at the first failure;
//! - [`tidy`] holds the tree against the rules that no compiler checks;
//! - [`gate`] holds the hot path against its budget of instructions;
//! - [`clients`] tries other people's libraries and our own recipes on a running service;
//! - [`pulls`] holds what `batchscan pull` makes against the service, and its speed against a Python loop;
//! - [`dashboard`] runs the dashboard's own tests, opens it in a real browser, and makes the README's pictures;
//! - [`cluster`] runs a whole site on loopback: databases, nodes, a balancer;
//! - [`failover`] breaks such a site under load, counts every request and holds the counts against rules;
//! - [`conformance`] checks the executable against the interface, on both stores.
//!
//! Knows the other crates by their names, commands and files alone and links none of them but the testbed, which
//! knows nothing of batchscan: so it builds in seconds and can judge a tree that does not compile.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod clients;
mod cluster;
mod conformance;
mod dashboard;
mod demo;
mod failover;
mod gate;
mod install;
mod process;
mod pulls;
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

#[derive(Clone, Subcommand)]
enum Task {
    /// Do everything a change must pass: install tools, lint, build, test, check conformance, try clients, break a cluster, gate
    Test,
    /// Hold the tree against its rules: walls between modules, docs, migrations, decisions, links
    Tidy,
    /// Hold the hot path against its budget of instructions, counted by callgrind
    Gate,
    /// Try other people's client libraries, our recipes and our Python package on a running service
    Clients(clients::Wish),
    /// Pull in every format from a service that fails now and then, and read the files back with other people's libraries
    Pulls(pulls::Wish),
    /// Time a pull to CSV against the usual Python loop, in turn
    Race(pulls::RaceWish),
    /// Test the dashboard: its types, its units, and a real browser on the real executable
    Dashboard(cluster::Built),
    /// Make the README's pictures of the dashboard anew
    Screenshots(cluster::Built),
    /// Run a whole site on loopback: three PostgreSQL servers, three nodes, HAProxy, demo data
    Cluster(cluster::Wish),
    /// Kill parts of such a site under load, count every request, and fail if a rule is broken
    Failover(failover::Plan),
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
        Task::Clients(wish) => clients::run(&workspace, &wish),
        Task::Pulls(wish) => pulls::run(&workspace, &wish),
        Task::Race(wish) => pulls::race(&workspace, &wish),
        Task::Dashboard(built) => dashboard::run(&workspace, &built),
        Task::Screenshots(built) => dashboard::screenshots(&workspace, &built),
        Task::Cluster(wish) => cluster::run(&workspace, &wish),
        Task::Failover(plan) => failover::run(&workspace, &plan),
    }
}
