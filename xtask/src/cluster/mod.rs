//! A whole site on loopback: three PostgreSQL servers, three nodes, a balancer, and an organisation with batches.
//!
//! `cargo xtask cluster` shows it to a developer; [`crate::failover`] breaks it. What stands here is real: the built
//! executable, PostgreSQL with synchronous replication, and HAProxy with the configuration that operators are given.
//!
//! | module | what it owns |
//! |---|---|
//! | [`nodes`] | one `batchscan serve` |
//! | [`balancer`] | HAProxy in front of the nodes |
//! | [`operator`] | the operator's commands |
//! | [`patroni`] | database nodes that Patroni looks after |
//! | [`http`] | a client of the interface |

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use batchscan_testbed::{Cluster, Postgres, Replication, Settings};
use clap::Args;

use crate::demo::Demo;
use crate::process;
use crate::workspace::Workspace;
use balancer::Balancer;
use http::{Ask, Client, Credential};
use nodes::Node;
use operator::Operator;
use patroni::{Member, Patroni};

pub(crate) mod balancer;
pub(crate) mod http;
pub(crate) mod nodes;
pub(crate) mod operator;
mod patroni;

/// The organisation on the site.
pub(crate) const ORGANISATION: &str = "Green Valley Nursery";
const DATABASE: &str = "batchscan";
/// As many nodes as the deployed balancer has servers.
const NODES: usize = 3;
/// A small page, so that a walk is many requests.
const PAGE_SIZE: u16 = 100;
/// Eight megabytes: more than sockets hold, so that a stream lasts while its reader is slow.
const BATCHES: u32 = 12_000;

/// Which executable is run.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Built {
    /// Run this executable; without it, one is built for release from this tree
    #[arg(long, value_name = "FILE")]
    executable: Option<PathBuf>,
}

impl Built {
    pub(crate) fn executable(&self, workspace: &Workspace) -> Result<PathBuf> {
        if let Some(path) = &self.executable {
            return path.canonicalize().with_context(|| format!("cannot find {}", path.display()));
        }
        process::run(&mut workspace.cargo(&["build", "--release", "--package", "batchscan"]))?;
        workspace.release_executable("batchscan")
    }
}

/// A running site. Dropping it takes everything down, and so does our own end.
#[derive(Debug)]
pub(crate) struct Site<D = Cluster> {
    // Dropped in this order: nobody asks one who is gone.
    pub(crate) balancer: Balancer,
    pub(crate) nodes: Vec<Node>,
    pub(crate) databases: D,
    pub(crate) operator: Operator,
    pub(crate) credential: Credential,
    /// The batches that were imported at the start, as the JSON array in which they go out.
    pub(crate) imported: Vec<u8>,
}

impl Site {
    /// Starts everything and waits until all of it is healthy.
    pub(crate) fn start(workspace: &Workspace, executable: &Path) -> Result<Self> {
        let databases = Cluster::start(&Settings::default(), Replication::Synchronous)?;
        databases.primary().create_database(DATABASE)?;
        let operator = Operator::new(executable, databases.url(DATABASE));
        operator.add_organisation(ORGANISATION)?;
        Self::on(databases, workspace, operator)
    }

    /// Waits until every part is up, and every standby shows all that the primary has.
    pub(crate) fn wait_until_healthy(&self) -> Result<()> {
        catch_up(&self.databases)?;
        self.balancer.wait_until_all_are_up()
    }
}

impl Site<Patroni> {
    /// The same, with Patroni as the one who promotes.
    fn start_with_patroni(workspace: &Workspace, executable: &Path) -> Result<Self> {
        let databases = Patroni::start(workspace)?;
        databases.create_database(DATABASE)?;
        let operator = Operator::new(executable, databases.url(DATABASE));
        operator.add_organisation(ORGANISATION)?;
        Self::on(databases, workspace, operator)
    }
}

impl<D> Site<D> {
    /// Everything but the databases, on databases that know the organisation.
    fn on(databases: D, workspace: &Workspace, operator: Operator) -> Result<Self> {
        let imported = demo_batches(workspace, &operator.executable, BATCHES)?;
        let credential = furnish(&operator, &imported)?;
        let log = |number: usize| workspace.scratch_file(&format!("node{number}.log"));
        let nodes = (1..=NODES)
            .map(|number| Node::start(&operator, PAGE_SIZE, log(number)?))
            .collect::<Result<Vec<_>>>()?;
        let balancer = Balancer::start(workspace, &nodes)?;
        Ok(Self { balancer, nodes, databases, operator, credential, imported })
    }
}

/// What `cargo xtask cluster` is told.
#[derive(Args, Clone, Debug)]
pub(crate) struct Wish {
    /// Let Patroni and etcd look after the databases: it promotes a standby by itself when the primary is killed
    #[arg(long)]
    patroni: bool,
    #[command(flatten)]
    built: Built,
}

/// `cargo xtask cluster`: starts a site, says where everything is, and runs until standard input ends.
pub(crate) fn run(workspace: &Workspace, wish: &Wish) -> Result<()> {
    let executable = wish.built.executable(workspace)?;
    if wish.patroni {
        let site = Site::start_with_patroni(workspace, &executable)?;
        let member = |member: &Member| {
            let rest = format!("http://127.0.0.1:{}/cluster", member.rest_port);
            format!("  {}            port {}   process {}   {rest}", member.name, member.port, member.pid())
        };
        show(&site, site.databases.members.iter().map(member).collect())
    } else {
        let site = Site::start(workspace, &executable)?;
        let server = |server: &Postgres| {
            let pid = server.pid().unwrap_or_default();
            format!("  {}            port {}   process {pid}", server.name(), server.port())
        };
        show(&site, site.databases.nodes().iter().map(server).collect())
    }
}

fn show<D>(site: &Site<D>, databases: Vec<String>) -> Result<()> {
    println!("{}", greeting(site, databases));
    // Ctrl-C and SIGTERM end us at once; whatever we started notices and ends, too.
    std::io::stdin().read_to_end(&mut Vec::new())?;
    println!("taking everything down");
    Ok(())
}

/// The batches of a demo, as its v1 gives them: a JSON array that `import` takes.
pub(crate) fn demo_batches(workspace: &Workspace, executable: &Path, count: u32) -> Result<Vec<u8>> {
    let mut demo = Demo::of(executable, count, workspace.scratch_file("demo.log")?)?;
    let greeting = demo.greeting()?;
    let client = Client::new(&greeting.url);
    let credential = Credential { client_id: greeting.client_id, client_secret: greeting.client_secret };
    let token = client.token(&credential)?;
    let answer = client
        .get(&Ask { path: "/v1/batches", token: &token, ..Ask::default() })
        .map_err(|lost| anyhow::anyhow!("the demo gave no batches: {}", lost.why))?;
    if answer.status != 200 {
        bail!("the demo answered {}", answer.status);
    }
    // It would wait for our idle connection.
    drop(client);
    demo.end()?;
    Ok(answer.body)
}

/// Gives the organisation batches and a credential.
pub(crate) fn furnish(operator: &Operator, batches: &[u8]) -> Result<Credential> {
    operator.import(ORGANISATION, "json", batches).context("the demo's batches were not taken")?;
    operator.issue_credential(ORGANISATION)
}

/// Waits until every standby shows all that the primary has written by now.
fn catch_up(databases: &Cluster) -> Result<()> {
    let primary = databases.primary();
    databases.standbys().iter().try_for_each(|standby| standby.wait_to_catch_up_with(primary))
}

fn greeting<D>(site: &Site<D>, databases: Vec<String>) -> String {
    let url = site.balancer.url();
    let Credential { client_id, client_secret } = &site.credential;
    let mut lines = vec![format!("\n{ORGANISATION}: {BATCHES} batches\n"), format!("  balancer       {url}")];
    for (number, node) in (1..).zip(&site.nodes) {
        lines.push(format!("  node {number}         {}   operator {}", node.url(), node.operator_url()));
    }
    lines.push(format!("  database       {}", site.operator.database));
    lines.extend(databases);
    lines.push(format!("  client id      {client_id}\n  client secret  {client_secret}\n\nPaste these:\n"));
    lines.push(format!(
        "  TOKEN=$(curl -s {url}/v2/auth -d grant_type=client_credentials -d client_id={client_id} \
         -d client_secret={client_secret} | sed 's/.*\"access_token\":\"\\([^\"]*\\)\".*/\\1/')"
    ));
    lines.push(format!("  curl -s -H \"Authorization: Bearer $TOKEN\" {url}/v2/batches\n"));
    lines.push("Ctrl-C, or the end of standard input, takes everything down.".to_owned());
    lines.join("\n")
}
