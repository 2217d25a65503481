//! A whole site on loopback: three PostgreSQL servers with synchronous replication, three nodes, HAProxy, demo data.
//!
//! `cargo xtask cluster` runs one for a developer, or for the test in `xtask/failover`.
//!
//! | module | what it owns |
//! |---|---|
//! | [`service`] | a `batchscan serve` or `demo` process |
//! | [`balancer`] | HAProxy |
//! | [`cli`] | the operator's commands |

use std::io::BufRead;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use batchscan_testbed::{Cluster, Replication, Settings, http};
use serde_json::json;

use crate::workspace::Workspace;
use balancer::Balancer;
use cli::{Cli, Credential};
use service::Service;

pub(crate) mod balancer;
pub(crate) mod cli;
pub(crate) mod service;

/// The organisation of every site.
pub(crate) const ORGANISATION: &str = "Green Valley Nursery";
const DATABASE: &str = "batchscan";
/// As many nodes as the deployed balancer has servers.
const NODES: usize = 3;
/// Small pages, so that reading everything takes many requests.
const PAGE_SIZE: u16 = 100;
/// Eight megabytes: more than sockets buffer, so that a stream lasts while its reader is slow.
const BATCHES: u32 = 12_000;

/// A running site. Everything ends when this is dropped, and when our process ends.
#[derive(Debug)]
pub(crate) struct Site {
    // Dropped in this order: clients before servers.
    pub(crate) balancer: Balancer,
    pub(crate) nodes: Vec<Service>,
    pub(crate) databases: Cluster,
    pub(crate) cli: Cli,
    pub(crate) credential: Credential,
    /// The batches that were imported at the start, as a JSON array in wire form.
    pub(crate) imported: Vec<u8>,
}

impl Site {
    /// Starts everything and waits until it is healthy.
    pub(crate) fn start(workspace: &Workspace, executable: PathBuf) -> Result<Self> {
        let databases = Cluster::start(&Settings::default(), Replication::Synchronous)?;
        databases.primary().create_database(DATABASE)?;
        let cli = Cli::new(executable, databases.url(DATABASE));
        let imported = demo_batches(workspace, &cli, BATCHES)?;
        let credential = add_organisation(&cli, &imported)?;
        let node =
            |number| Service::serve(&cli, PAGE_SIZE, workspace.log_file(&format!("node{number}.log"))?);
        let nodes = (1..=NODES).map(node).collect::<Result<Vec<_>>>()?;
        let balancer = Balancer::start(workspace, &nodes)?;
        Ok(Self { balancer, nodes, databases, cli, credential, imported })
    }

    /// Waits until every node is up and every standby has everything that the primary has.
    pub(crate) fn wait_until_healthy(&self) -> Result<()> {
        let primary = self.databases.primary();
        self.databases.standbys().iter().try_for_each(|standby| standby.wait_to_catch_up_with(primary))?;
        self.balancer.wait_until_all_are_up()
    }

    /// Starts a killed standby again.
    pub(crate) fn restart_standby(&self, index: usize) -> Result<()> {
        let standby = self.databases.standbys()[index];
        standby.start_again()?;
        self.databases.primary().wait_for_standbys(&[standby.name()])
    }

    /// Executes a line of input.
    fn execute(&mut self, line: &str) -> Result<()> {
        let words: Vec<&str> = line.split(' ').collect();
        let databases = &self.databases;
        match words[..] {
            ["primary"] => self.execute_all(&["kill primary", "promote", "rejoin", "wait"]),
            ["standby"] => self.execute_all(&["kill standby 0", "start standby 0", "wait"]),
            ["node"] => self.execute_all(&["kill node 0", "start node 0", "wait"]),
            ["kill", "primary"] => databases.primary().kill(),
            ["promote"] => databases.fail_over(),
            ["rejoin"] => databases.rejoin_dead(),
            ["kill", "standby", index] => databases.standbys()[index.parse::<usize>()?].kill(),
            ["start", "standby", index] => self.restart_standby(index.parse()?),
            [action, "node", index] => {
                let node = self.nodes.get_mut(index.parse::<usize>()?).context("no such node")?;
                match action {
                    "kill" => node.kill(),
                    "stop" => node.stop(),
                    _ => node.start_again(),
                }
            }
            ["wait"] => self.wait_until_healthy(),
            ["wait", "for", "balancer"] => self.balancer.wait_until_all_are_up(),
            _ => bail!("unknown command: {line}"),
        }
    }

    fn execute_all(&mut self, lines: &[&str]) -> Result<()> {
        lines.iter().try_for_each(|line| self.execute(line))
    }

    /// For a program.
    fn json(&self, workspace: &Workspace) -> Result<String> {
        let imported = workspace.log_file("imported.json")?;
        std::fs::write(&imported, &self.imported)?;
        let node = |node: &Service| json!({ "port": node.port, "operator_port": node.operator_port });
        let Credential { client_id, client_secret } = &self.credential;
        let site = json!({
            "port": self.balancer.port,
            "nodes": self.nodes.iter().map(node).collect::<Vec<_>>(),
            "standbys": self.databases.standbys().len(),
            "organisation": ORGANISATION,
            "credential": { "client_id": client_id, "client_secret": client_secret },
            "imported": imported,
            "balancer_log": self.balancer.log_file(),
            "logs": imported.parent(),
            "executable": self.cli.executable,
            "database": self.cli.database,
        });
        Ok(site.to_string())
    }

    fn description(&self) -> String {
        let Credential { client_id, client_secret } = &self.credential;
        let url = format!("http://127.0.0.1:{}", self.balancer.port);
        let mut lines =
            vec![format!("\n{ORGANISATION}: {BATCHES} batches\n"), format!("  balancer       {url}")];
        for node in &self.nodes {
            lines.push(format!("  node           {}   metrics on port {}", node.url(), node.operator_port));
        }
        lines.push(format!("  database       {}", self.cli.database));
        for server in self.databases.nodes() {
            let pid = server.pid().unwrap_or_default();
            lines.push(format!("  {}            port {}   process {pid}", server.name(), server.port()));
        }
        lines.push(format!("  client id      {client_id}\n  client secret  {client_secret}\n"));
        lines.push(format!(
            "  TOKEN=$(curl -s {url}/v2/auth -d grant_type=client_credentials -d client_id={client_id} \
             -d client_secret={client_secret} | sed 's/.*\"access_token\":\"\\([^\"]*\\)\".*/\\1/')\n  \
             curl -s -H \"Authorization: Bearer $TOKEN\" {url}/v2/batches\n"
        ));
        lines.join("\n") + "\n" + HELP
    }
}

const HELP: &str = "Type primary, standby or node to kill one and repair the site. Ctrl-C or the end of input stops everything.";

/// `cargo xtask cluster`. With `--json`, for a program.
pub(crate) fn run(workspace: &Workspace, is_json: bool) -> Result<()> {
    let mut site = Site::start(workspace, workspace.build_executable()?)?;
    println!("{}", if is_json { site.json(workspace)? } else { site.description() });
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        match site.execute(line.trim()) {
            Ok(()) => println!("done: {line}"),
            Err(error) if is_json => return Err(error.context(line)),
            Err(error) => println!("{error:#}\n{HELP}"),
        }
    }
    if !is_json {
        println!("stopping everything");
    }
    Ok(())
}

/// The batches of a demo as its v1 sends them: a JSON array that `import` reads.
pub(crate) fn demo_batches(workspace: &Workspace, cli: &Cli, count: u32) -> Result<Vec<u8>> {
    let demo = Service::demo(cli, count, workspace.log_file("demo.log")?)?;
    let Credential { client_id, client_secret } = demo.demo_credential()?;
    let address = ("127.0.0.1", demo.port);
    let token = http::request_token(address, &client_id, &client_secret)?.token().context("no token")?;
    let response = http::get(address, "/v1/batches", &token).context("no batches from the demo")?;
    if response.status != 200 {
        bail!("the demo responded with {}", response.status);
    }
    Ok(response.body)
}

/// Adds the organisation with batches and a credential.
pub(crate) fn add_organisation(cli: &Cli, batches: &[u8]) -> Result<Credential> {
    cli.add_organisation(ORGANISATION)?;
    cli.import(ORGANISATION, "json", batches).context("cannot import the demo's batches")?;
    cli.issue_credential(ORGANISATION)
}
