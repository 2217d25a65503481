//! Holds the built executable against the interface: `batchscan check` runs on a `batchscan demo`, which is on SQLite,
//! and on a `batchscan serve` over a real PostgreSQL.
//!
//! Both are asked to end; a regular end is part of what is checked.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, anyhow};
use batchscan_testbed::{Postgres, Settings};

use crate::cluster::http::Credential;
use crate::cluster::nodes::Node;
use crate::cluster::operator::Operator;
use crate::cluster::{ORGANISATION, demo_batches, furnish};
use crate::demo::Demo;
use crate::process;
use crate::workspace::Workspace;

/// A few pages of 1000, as a nursery has them after a year.
const BATCHES: u32 = 3_000;
/// What `serve` has unless told otherwise.
const PAGE_SIZE: u16 = 1_000;

/// Checks both stores strictly.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let executable = workspace.release_executable("batchscan")?;
    check_on_sqlite(workspace, &executable)?;
    check_on_postgres(workspace, &executable).context("on PostgreSQL")
}

fn check_on_sqlite(workspace: &Workspace, executable: &Path) -> Result<()> {
    let mut demo = Demo::of(executable, BATCHES, workspace.scratch_file("demo.log")?)?;
    let outcome = demo.greeting().and_then(|greeting| {
        println!("demo on {}", greeting.url);
        let credential = Credential { client_id: greeting.client_id, client_secret: greeting.client_secret };
        check(executable, &greeting.url, &credential)?;
        demo.end()
    });
    outcome.map_err(|error| anyhow!("{error:#}\n{}", demo.log_tail()))
}

fn check_on_postgres(workspace: &Workspace, executable: &Path) -> Result<()> {
    let postgres = Postgres::start(&Settings::default())?;
    let operator = Operator::new(executable, postgres.url(&postgres.fresh_database()?));
    operator.add_organisation(ORGANISATION)?;
    let credential = furnish(&operator, &demo_batches(workspace, executable, BATCHES)?)?;
    let mut node = Node::start(&operator, PAGE_SIZE, workspace.scratch_file("node.log")?)?;
    println!("serve on {}, over PostgreSQL on port {}", node.url(), postgres.port());
    check(executable, &node.url(), &credential).map_err(|error| anyhow!("{error:#}\n{}", node.log_tail()))?;
    node.stop()?;
    println!("serve ended with 0");
    Ok(())
}

/// The secret goes by the environment, as it should in practice: arguments are visible to every user.
fn check(executable: &Path, url: &str, credential: &Credential) -> Result<()> {
    let mut command = Command::new(executable);
    process::without_settings(&mut command);
    command.args(["check", url, "--client-id", &credential.client_id, "--strict"]);
    process::run(command.env("BATCHSCAN_CLIENT_SECRET", &credential.client_secret))
}
