//! A whole site on loopback: three PostgreSQL servers with synchronous replication, three nodes, HAProxy, demo data.
//!
//! `cargo xtask cluster` runs one for a developer; [`crate::failover`] tests one.
//!
//! | module | what it owns |
//! |---|---|
//! | [`service`] | a `batchscan serve` or `demo` process |
//! | [`balancer`] | HAProxy |
//! | [`cli`] | the operator's commands |
//! | [`http`] | an HTTP client |

use std::io::BufRead;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use batchscan_testbed::{Cluster, Replication, Settings};

use crate::workspace::Workspace;
use balancer::Balancer;
use cli::Cli;
use http::{Client, Credential};
use service::Service;

pub(crate) mod balancer;
pub(crate) mod cli;
pub(crate) mod http;
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

    /// Kills a part that a developer named, and repairs the site. Returns what happened.
    fn kill(&mut self, part: &str) -> Result<String> {
        let report = match part {
            "primary" => {
                let killed = self.databases.primary().name();
                self.databases.primary().kill()?;
                self.databases.fail_over()?;
                self.databases.rejoin_dead()?;
                format!(
                    "killed {killed}, promoted {}, {killed} follows it now",
                    self.databases.primary().name()
                )
            }
            "standby" => {
                let killed = self.databases.standbys()[0];
                killed.kill()?;
                self.restart_standby(0)?;
                format!("killed {} and started it again", killed.name())
            }
            "node" => {
                self.nodes[0].kill()?;
                self.nodes[0].start_again()?;
                format!("killed {} and started it again", self.nodes[0].url())
            }
            _ => return Ok(HELP.to_owned()),
        };
        self.wait_until_healthy()?;
        Ok(report)
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

/// `cargo xtask cluster`.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let mut site = Site::start(workspace, workspace.build_executable()?)?;
    println!("{}", site.description());
    for line in std::io::stdin().lock().lines() {
        println!("{}", site.kill(line?.trim())?);
    }
    println!("stopping everything");
    Ok(())
}

/// The batches of a demo as its v1 sends them: a JSON array that `import` reads.
pub(crate) fn demo_batches(workspace: &Workspace, cli: &Cli, count: u32) -> Result<Vec<u8>> {
    let demo = Service::demo(cli, count, workspace.log_file("demo.log")?)?;
    let mut client = Client::new(demo.port);
    let token = client.token(&demo.demo_credential()?)?;
    let response = client
        .get("/v1/batches", &token, "")
        .map_err(|failure| anyhow!("no batches from the demo: {}", failure.reason))?;
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
