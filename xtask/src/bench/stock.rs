//! Everything that stands ready before the first timing: executables, data, databases, PostgreSQL, the peers' homes.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use batchscan_testbed::{Postgres, Settings};

use super::Plan;
use super::contenders::{Contender, files};
use super::cores::Cores;
use super::data::{Sample, Source};
use super::databases::{self, Database, Shelf};
use super::load::Wrk;
use super::peers::Peers;
use super::works::{Data, Work};
use crate::cluster::http::Credential;
use crate::cluster::operator::Operator;
use crate::process;
use crate::workspace::Workspace;

/// The database of batchscan on the PostgreSQL server.
const OURS: &str = "batchscan";

/// What a run works with.
#[derive(Debug)]
pub(crate) struct Stock {
    pub(crate) executable: PathBuf,
    pub(crate) plain_rust: Option<PathBuf>,
    pub(crate) cores: Cores,
    pub(crate) source: Source,
    pub(crate) sample: Sample,
    pub(crate) wrk: Wrk,
    pub(crate) postgres: Option<Postgres>,
    pub(crate) peers: Option<Peers>,
    /// The root of the tree.
    pub(crate) root: PathBuf,
    /// For what is made in this run and goes with it.
    pub(crate) folder: PathBuf,
    small: Option<Database>,
    usual: Database,
    large: Option<Database>,
    many: Option<Database>,
    usual_on_postgres: Option<Database>,
}

impl Stock {
    /// Makes what the plan needs, and no more.
    pub(crate) fn make(workspace: &Workspace, plan: &Plan, executable: PathBuf) -> Result<Self> {
        let cores = Cores::choose()?;
        let home = workspace.scratch_file("bench")?;
        let folder = home.join("run");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let source = Source::make(workspace, &executable, home.join("data"))?;
        let shelf = Shelf::open(&home, &executable)?;
        let postgres = plan.contenders.iter().any(|contender| contender.uses_postgres()).then(start_postgres);
        let postgres = postgres.transpose()?;
        let usual_on_postgres = match &postgres {
            Some(postgres) if plan.has(Contender::BatchscanPostgres) => {
                Some(furnish_postgres(postgres, &executable, &source)?)
            }
            _ => None,
        };
        let stock = Self {
            plain_rust: plan.has(Contender::PlainRust).then(|| build_plain_rust(workspace)).transpose()?,
            sample: Sample::read(&source)?,
            wrk: Wrk::new(workspace.root.join("bench/load/load.lua"), &folder),
            peers: Peers::make(workspace, plan, &folder, &source, postgres.as_ref())?,
            root: workspace.root.clone(),
            small: plan.wants(Work::Scale).then(|| shelf.single(&source, Data::Small)).transpose()?,
            usual: shelf.single(&source, Data::Usual)?,
            large: plan.needs_large().then(|| shelf.single(&source, Data::Large)).transpose()?,
            many: plan.needs_many().then(|| shelf.many(&source, plan.pace.organisations)).transpose()?,
            usual_on_postgres,
            executable,
            cores,
            source,
            postgres,
            folder,
        };
        stock.write_files(plan)?;
        Ok(stock)
    }

    /// nginx serves what batchscan answers, so batchscan is asked first.
    fn write_files(&self, plan: &Plan) -> Result<()> {
        if !plan.has(Contender::Nginx) {
            return Ok(());
        }
        files::write(self, Data::Usual)?;
        if plan.wants(Work::V1) && !plan.pace.is_quick {
            files::write(self, Data::Large)?;
        }
        Ok(())
    }

    /// A database of ours.
    pub(crate) fn database(&self, contender: Contender, data: Data) -> Result<&Database> {
        let database = match (contender, data) {
            (Contender::BatchscanPostgres, Data::Usual) => self.usual_on_postgres.as_ref(),
            (Contender::BatchscanPostgres, _) => None,
            (_, Data::Small) => self.small.as_ref(),
            (_, Data::Usual) => Some(&self.usual),
            (_, Data::Large | Data::Anywhere) => self.large.as_ref(),
            (_, Data::Many) => self.many.as_ref(),
        };
        database.with_context(|| format!("{} has no database for {data:?}", contender.title()))
    }

    /// What opens the first organisation of a contender's data.
    pub(crate) fn credential(&self, contender: Contender, data: Data) -> Result<Credential> {
        if !contender.is_ours() {
            return Ok(super::peers::credential());
        }
        self.database(contender, data)?.credentials.first().cloned().context("a database without credentials")
    }

    pub(crate) fn peers(&self) -> Result<&Peers> {
        self.peers.as_ref().context("the peers were not prepared")
    }

    /// Removes what was made for this run.
    pub(crate) fn clear(self) -> Result<()> {
        fs::remove_dir_all(&self.folder).with_context(|| format!("cannot remove {}", self.folder.display()))
    }
}

/// As one who gives PostgreSQL its share of a small machine sets it.
fn start_postgres() -> Result<Postgres> {
    let own = Settings::default().with("shared_buffers", "1GB").with("max_wal_size", "2GB");
    Postgres::start(&own.with("fsync", "on").with("full_page_writes", "on"))
}

fn furnish_postgres(postgres: &Postgres, executable: &Path, source: &Source) -> Result<Database> {
    postgres.create_database(OURS)?;
    let operator = Operator::new(executable, postgres.url(OURS));
    let credential = databases::furnish(&operator, &source.file(Data::Usual))?;
    postgres.sql(OURS, "vacuum (analyze)")?;
    Ok(Database { operator, credentials: vec![credential] })
}

fn build_plain_rust(workspace: &Workspace) -> Result<PathBuf> {
    process::run(&mut workspace.cargo(&["build", "--release", "--package", "plain-rust"]))?;
    workspace.release_executable("plain-rust")
}
