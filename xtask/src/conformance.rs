//! Runs `batchscan check` against a `batchscan demo`, which uses SQLite, and a `batchscan serve` on PostgreSQL.
//!
//! Both must exit with 0 after SIGTERM.

use anyhow::{Context, Result};
use batchscan_testbed::{Postgres, Settings};

use crate::cluster::cli::{Cli, Credential};
use crate::cluster::service::Service;
use crate::cluster::{add_organisation, demo_batches};
use crate::workspace::{Workspace, run_command};

/// A few pages of 1000.
const BATCHES: u32 = 3_000;
/// The default of `serve`.
const PAGE_SIZE: u16 = 1_000;

/// Checks both stores with `--strict`.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let demo = Service::demo(
        &Cli::new(workspace.executable()?, String::new()),
        BATCHES,
        workspace.log_file("demo.log")?,
    )?;
    let credential = demo.demo_credential()?;
    check(workspace, demo, &credential).context("on SQLite")?;

    let postgres = Postgres::start(&Settings::default())?;
    let cli = Cli::new(workspace.executable()?, postgres.url(&postgres.fresh_database()?));
    let credential = add_organisation(&cli, &demo_batches(workspace, &cli, BATCHES)?)?;
    let node = Service::serve(&cli, PAGE_SIZE, workspace.log_file("node.log")?)?;
    check(workspace, node, &credential).context("on PostgreSQL")
}

fn check(workspace: &Workspace, mut service: Service, credential: &Credential) -> Result<()> {
    let mut command = workspace.command(workspace.executable()?);
    command.args(["check", &service.url(), "--client-id", &credential.client_id, "--strict"]);
    command.env("BATCHSCAN_CLIENT_SECRET", &credential.client_secret);
    run_command(&mut command).with_context(|| service.log_tail())?;
    service.stop()
}
