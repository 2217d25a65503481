//! `cargo xtask failover`: a site under steady load, things that are killed, and every request counted.
//!
//! | module | what it owns |
//! |---|---|
//! | [`known`] | what the organisation is known to hold |
//! | [`judge`] | whether a walk is right |
//! | [`tally`] | counts of requests by their outcome |
//! | [`load`] | the clients |
//! | [`writers`] | those who import and issue |
//! | [`rounds`] | what is killed when |
//! | [`report`] | rows, rules, `docs/FAILOVER.md` |

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Result, bail};
use clap::Args;

use crate::cluster::http::{Ask, Client};
use crate::cluster::{Built, Site};
use crate::workspace::Workspace;
use judge::Walk;
use known::Known;
use load::{Load, MIXED_CLIENTS, SLOW_CLIENTS, Visitor};
use report::{Ledger, Row};
use rounds::Director;
use tally::Tally;
use writers::Acknowledged;

mod judge;
mod known;
mod load;
mod report;
mod rounds;
mod tally;
mod writers;

/// Where `--write` writes.
const DOCUMENT: &str = "docs/FAILOVER.md";

/// What is done.
#[derive(Args, Clone, Debug)]
pub(crate) struct Plan {
    /// Rounds: in each the primary, a standby and a node are killed
    #[arg(long, value_name = "N", default_value_t = 10)]
    rounds: usize,
    /// Rolling restarts of all nodes, after the rounds
    #[arg(long, value_name = "N", default_value_t = 3)]
    rolling: usize,
    /// Write the result to docs/FAILOVER.md
    #[arg(long)]
    write: bool,
    #[command(flatten)]
    built: Built,
}

/// Goes through with a plan.
pub(crate) fn run(workspace: &Workspace, plan: &Plan) -> Result<()> {
    go_through(workspace, &plan.built.executable(workspace)?, plan)
}

/// Two rounds and one rolling restart, with the executable that is there: a step of `cargo xtask test`.
pub(crate) fn run_short(workspace: &Workspace) -> Result<()> {
    let plan = Plan { rounds: 2, rolling: 1, write: false, built: Built::default() };
    go_through(workspace, &workspace.release_executable("batchscan")?, &plan)
}

fn go_through(workspace: &Workspace, executable: &Path, plan: &Plan) -> Result<()> {
    let begun = Instant::now();
    let mut site = Site::start(workspace, executable)?;
    println!("site started in {:.1} s", begun.elapsed().as_secs_f64());
    let known = Known::new(&site.imported)?;
    let (rows, ledger) = perform(&mut site, &known, plan)?;
    println!(
        "acknowledged: {} batches, {} secrets; commands that failed and were run again: {}; {:.0} s in all",
        ledger.batches,
        ledger.credentials,
        ledger.failed_commands.len(),
        begun.elapsed().as_secs_f64()
    );
    ledger.failed_commands.iter().for_each(|said| println!("    {said}"));
    if plan.write {
        let command =
            format!("cargo xtask failover --rounds {} --rolling {} --write", plan.rounds, plan.rolling);
        std::fs::write(workspace.root.join(DOCUMENT), report::document(&command, &rows, &ledger))?;
        println!("wrote {DOCUMENT}");
    }
    let broken = report::broken_rules(&rows, &ledger);
    if !broken.is_empty() {
        let log = workspace.scratch_file("haproxy.log")?;
        std::fs::write(&log, site.balancer.log())?;
        bail!("rules were broken (logs are in {}):\n{}", log.display(), broken.join("\n"));
    }
    Ok(())
}

/// Runs the load and the writers while the plan is gone through, and looks for losses afterwards.
fn perform(site: &mut Site, known: &Known, plan: &Plan) -> Result<(Vec<Row>, Ledger)> {
    let (tally, acknowledged, is_over) = (Tally::default(), Acknowledged::default(), AtomicBool::new(false));
    let (operator, credential) = (site.operator.clone(), site.credential.clone());
    let load = Load { url: site.balancer.url(), credential, known, tally: &tally, is_over: &is_over };
    let rows = std::thread::scope(|scope| {
        for number in 0..MIXED_CLIENTS {
            let load = &load;
            scope.spawn(move || Visitor::new(load, number).mix());
        }
        for number in 0..SLOW_CLIENTS {
            let load = &load;
            scope.spawn(move || Visitor::new(load, number).stream());
        }
        scope.spawn(|| writers::import(&operator, known, &acknowledged, &is_over));
        scope.spawn(|| writers::issue(&operator, &load, &acknowledged));
        let rows = direct(site, &tally, &acknowledged, plan);
        is_over.store(true, Ordering::Relaxed);
        rows
    })?;
    let ledger = Ledger {
        batches: known.acknowledged().len(),
        credentials: acknowledged.credentials().len(),
        failed_commands: acknowledged.failed_commands(),
        lost: losses(site, known, &acknowledged)?,
    };
    Ok((rows, ledger))
}

fn direct(site: &mut Site, tally: &Tally, acknowledged: &Acknowledged, plan: &Plan) -> Result<Vec<Row>> {
    let mut director = Director { site, tally, acknowledged, rows: Vec::new() };
    director.warm_up()?;
    for round in 1..=plan.rounds {
        director.round(round)?;
    }
    for round in 1..=plan.rolling {
        director.roll(round)?;
    }
    Ok(director.rows)
}

/// What was acknowledged and is not there, asked of every node.
fn losses(site: &Site, known: &Known, acknowledged: &Acknowledged) -> Result<Vec<String>> {
    site.wait_until_healthy()?;
    let mut lost = Vec::new();
    for node in &site.nodes {
        let client = Client::new(&node.url());
        let token = client.token(&site.credential)?;
        let ask = Ask { path: "/v1/batches", token: &token, ..Ask::default() };
        match client.get(&ask) {
            Ok(answer) => lost.extend(load::judge_array(Walk::over_everything(known), &answer.body).err()),
            Err(broken) => lost.push(broken.why),
        }
        for credential in acknowledged.credentials() {
            let refused = client.token(&credential).err();
            lost.extend(refused.map(|error| format!("{}: {error:#}", credential.client_id)));
        }
    }
    Ok(lost)
}
