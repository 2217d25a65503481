//! `cargo xtask failover`: kills parts of a site under load and checks every response.
//!
//! | module | what it owns |
//! |---|---|
//! | [`expected`] | what the organisation must contain |
//! | [`idle`] | a mirror of an organisation that does not change |
//! | [`load`] | the clients |
//! | [`mirrors`] | copies of an organisation that changes |
//! | [`writers`] | imports and credentials during the run |
//! | [`tally`] | counts of requests by outcome |
//! | [`report`] | rows, rules, `docs/FAILOVER.md` |

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::cluster::Site;
use crate::cluster::http::Client;
use crate::workspace::Workspace;
use expected::Expected;
use idle::IdleMirror;
use load::{Load, LoadClient};
use mirrors::Mirrors;
use report::{Row, WriteGap, Writes};
use tally::Tally;
use writers::Acknowledged;

mod expected;
mod idle;
mod load;
mod lock;
mod mirrors;
mod report;
mod tally;
mod writers;

const DOCUMENT: &str = "docs/FAILOVER.md";
const MIXED_CLIENTS: usize = 4;
const SLOW_CLIENTS: usize = 2;
const MIRRORS: usize = 3;
/// Right responses after a kill that show that reads continue: many from every client, about a second.
const READS_SHOWN: u64 = 300;
/// Only to prevent hanging.
const READS_TIMEOUT: Duration = Duration::from_secs(300);
const WRITE_TIMEOUT: Duration = Duration::from_secs(300);

/// Kills the primary, a standby and a node in each round. Then restarts all nodes one by one, once for every two rounds.
pub(crate) fn run(workspace: &Workspace, rounds: usize, write_document: bool) -> Result<()> {
    run_on(workspace, workspace.build_executable()?, rounds, write_document)
}

/// The step of `cargo xtask test`.
pub(crate) fn run_short(workspace: &Workspace) -> Result<()> {
    run_on(workspace, workspace.executable()?, 2, false)
}

fn run_on(workspace: &Workspace, executable: PathBuf, rounds: usize, write_document: bool) -> Result<()> {
    let start = Instant::now();
    let mut site = Site::start(workspace, executable)?;
    println!("site started in {:.1} s\n{}", start.elapsed().as_secs_f64(), report::TABLE_HEAD);
    let idle_mirror = IdleMirror::start(workspace, &site)?;
    let (rows, writes) = run_under_load(&mut site, rounds)?;
    idle_mirror.receive_change(&site)?;
    println!(
        "acknowledged: {} batches, {} secrets; lost: {}",
        writes.batches,
        writes.secrets,
        writes.lost.len()
    );
    writes.failed_commands.iter().for_each(|error| println!("failed and repeated: {error}"));
    if write_document {
        let command = format!("cargo xtask failover --rounds {rounds} --write");
        let path = workspace.root.join(DOCUMENT);
        let document = std::fs::read_to_string(&path).context(DOCUMENT)?;
        std::fs::write(&path, report::update(&document, &command, &rows, &writes)?)?;
        println!("updated {DOCUMENT}");
    }
    let broken = report::broken_rules(&rows, &writes);
    if !broken.is_empty() {
        let log = workspace.log_file("haproxy.log")?;
        std::fs::write(&log, site.balancer.log())?;
        bail!("broken rules (logs are next to {}):\n{}", log.display(), broken.join("\n"));
    }
    Ok(())
}

/// Runs clients and writers during all events, then looks for losses.
fn run_under_load(site: &mut Site, rounds: usize) -> Result<(Vec<Row>, Writes)> {
    let expected = Expected::new(&site.imported)?;
    let (tally, acknowledged, is_over) = (Tally::default(), Acknowledged::default(), AtomicBool::new(false));
    let (cli, credential) = (site.cli.clone(), site.credential.clone());
    let load =
        Load { port: site.balancer.port, credential, expected: &expected, tally: &tally, is_over: &is_over };
    let (load, mirrors) = (&load, &Mirrors::new(site)?);
    let rows = std::thread::scope(|scope| {
        for number in 0..MIXED_CLIENTS {
            scope.spawn(move || LoadClient::new(load, number).run_mixed());
        }
        for number in 0..SLOW_CLIENTS {
            scope.spawn(move || LoadClient::new(load, number).run_slow());
        }
        for _ in 0..MIRRORS {
            scope.spawn(|| mirrors.follow(&is_over));
        }
        scope.spawn(|| mirrors.change(&is_over));
        scope.spawn(|| writers::import(&cli, &expected, &acknowledged, &is_over));
        scope.spawn(|| writers::issue(&cli, load, &acknowledged));
        let mut run = Run { site, tally: &tally, acknowledged: &acknowledged, rows: Vec::new() };
        let result = run.all_events(rounds);
        is_over.store(true, Ordering::Relaxed);
        result.map(|()| run.rows)
    })?;
    let writes = Writes {
        batches: expected.acknowledged().len(),
        secrets: acknowledged.credentials().len(),
        failed_commands: acknowledged.failed_commands(),
        lost: [find_losses(site, &expected, &acknowledged)?, mirrors.differences(site)?].concat(),
    };
    Ok((rows, writes))
}

/// Asks every node for everything that was acknowledged.
fn find_losses(site: &Site, expected: &Expected, acknowledged: &Acknowledged) -> Result<Vec<String>> {
    site.wait_until_healthy()?;
    let mut lost = Vec::new();
    for node in &site.nodes {
        let mut client = Client::new(node.port);
        let token = client.token(&site.credential)?;
        let mut verifier = expected.final_verifier();
        match client.get("/v1/batches", &token, "") {
            Ok(response) => lost.extend(verifier.array(&response.body).and_then(|()| verifier.end()).err()),
            Err(failure) => lost.push(failure.reason),
        }
        for credential in acknowledged.credentials() {
            let error = client.token(&credential).err();
            lost.extend(error.map(|error| format!("{}: {error:#}", credential.client_id)));
        }
    }
    Ok(lost)
}

struct Run<'a> {
    site: &'a mut Site,
    tally: &'a Tally,
    acknowledged: &'a Acknowledged,
    rows: Vec<Row>,
}

impl Run<'_> {
    fn all_events(&mut self, rounds: usize) -> Result<()> {
        self.event("undisturbed", |run| {
            run.wait_for_reads()?;
            run.acknowledged.wait_for_import_after(Instant::now(), WRITE_TIMEOUT)?;
            Ok(None)
        })?;
        for round in 1..=rounds {
            self.event("primary killed", Self::replace_primary)?;
            self.event("standby killed", |run| run.replace_standby(round))?;
            self.event(report::NODE_KILLED, |run| run.replace_node(round))?;
        }
        for _ in 0..rounds / 2 {
            self.event("rolling restart", Self::restart_nodes)?;
        }
        Ok(())
    }

    fn replace_primary(&mut self) -> Result<Option<WriteGap>> {
        let databases = &self.site.databases;
        databases.primary().kill()?;
        let killed_at = Instant::now();
        self.wait_for_reads()?;
        let promoted_at = Instant::now();
        databases.fail_over()?;
        let written_at = self.acknowledged.wait_for_import_after(promoted_at, WRITE_TIMEOUT)?;
        databases.rejoin_dead()?;
        Ok(Some((written_at - killed_at, written_at - promoted_at)))
    }

    fn replace_standby(&mut self, round: usize) -> Result<Option<WriteGap>> {
        let index = round % self.site.databases.standbys().len();
        self.site.databases.standbys()[index].kill()?;
        self.wait_for_reads()?;
        self.site.restart_standby(index)?;
        Ok(None)
    }

    fn replace_node(&mut self, round: usize) -> Result<Option<WriteGap>> {
        let index = round % self.site.nodes.len();
        let node = &mut self.site.nodes[index];
        self.tally.expect_kill(node.process_id()?);
        node.kill()?;
        self.wait_for_reads()?;
        self.site.nodes[index].start_again()?;
        Ok(None)
    }

    fn restart_nodes(&mut self) -> Result<Option<WriteGap>> {
        for index in 0..self.site.nodes.len() {
            self.site.nodes[index].stop()?;
            self.wait_for_reads()?;
            self.site.nodes[index].start_again()?;
            // As an operator does: the next node only when the balancer considers this one up.
            self.site.balancer.wait_until_all_are_up()?;
        }
        Ok(None)
    }

    /// Does something, waits until the site is healthy, and adds a row with the requests of that time.
    fn event(
        &mut self,
        event: &'static str,
        action: impl FnOnce(&mut Self) -> Result<Option<WriteGap>>,
    ) -> Result<()> {
        let gap = action(self).context(event)?;
        self.site.wait_until_healthy().with_context(|| format!("after {event}"))?;
        // Requests that started during the event end before the next.
        self.wait_for_reads()?;
        let row = Row { event, times: 1, counts: self.tally.take(), gap };
        println!("{}", row.line());
        self.rows.push(row);
        Ok(())
    }

    fn wait_for_reads(&self) -> Result<()> {
        self.tally.wait_for_right(READS_SHOWN, READS_TIMEOUT).context("reads do not continue")
    }
}
