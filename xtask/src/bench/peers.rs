//! The peers' side of the stock: their home of Python, and the same batches in their own databases.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use batchscan_testbed::Postgres;

use super::Plan;
use super::contenders::Contender;
use super::data::Source;
use super::databases::ORGANISATION;
use super::works::{Data, Work};
use crate::clients::homes;
use crate::cluster::http::Credential;
use crate::process;
use crate::workspace::Workspace;

/// Where the peers are, relative to the root.
pub(crate) const FOLDER: &str = "bench/peers";
/// What Python's peers and the loader need, pinned.
pub(crate) const REQUIREMENTS: &str = "bench/peers/requirements.txt";
/// What opens the peers' data. As long as a real one.
const CLIENT_ID: &str = "bs_benchmark";
const CLIENT_SECRET: &str = "Zm9yLXRoZS1wZWVycy1vbmx5LW5vdC1hLXNlY3JldC0";

/// Homes and data.
#[derive(Debug)]
pub(crate) struct Peers {
    home: PathBuf,
    folder: PathBuf,
    postgres_urls: Vec<(Data, String)>,
    /// How long each load took: a rough comparison for imports.
    pub(crate) loads: Vec<Load>,
}

/// One load of batches into a peer's database.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) into: &'static str,
    pub(crate) data: Data,
    pub(crate) took: Duration,
}

/// The credential of the peers' only organisation.
pub(crate) fn credential() -> Credential {
    Credential { client_id: CLIENT_ID.to_owned(), client_secret: CLIENT_SECRET.to_owned() }
}

impl Peers {
    /// Makes what the plan needs; nothing, if it has no peers.
    pub(crate) fn make(
        workspace: &Workspace,
        plan: &Plan,
        folder: &Path,
        source: &Source,
        postgres: Option<&Postgres>,
    ) -> Result<Option<Self>> {
        if !plan.contenders.iter().any(|contender| contender.is_peer_with_data()) {
            return Ok(None);
        }
        let requirements = workspace.root.join(REQUIREMENTS);
        let home = homes::venv(&workspace.scratch_file("bench")?, "peers", &requirements)?;
        let mut peers =
            Self { home, folder: folder.to_owned(), postgres_urls: Vec::new(), loads: Vec::new() };
        let sizes: &[Data] = if plan.wants(Work::V1) && !plan.pace.is_quick {
            &[Data::Usual, Data::Large]
        } else {
            &[Data::Usual]
        };
        for data in sizes {
            peers.load(workspace, plan, source, *data, postgres)?;
        }
        Ok(Some(peers))
    }

    /// A program of the peers' home.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.home.join("bin").join(name)
    }

    /// The peers' SQLite file.
    pub(crate) fn sqlite(&self, data: Data) -> PathBuf {
        self.folder.join(format!("peers-{}.db", data.batches()))
    }

    /// The folder that Datasette serves.
    pub(crate) fn datasette(&self, data: Data) -> PathBuf {
        self.folder.join(format!("datasette-{}", data.batches()))
    }

    /// ROAPI's configuration.
    pub(crate) fn roapi(&self, data: Data) -> PathBuf {
        self.folder.join(format!("roapi-{}.yaml", data.batches()))
    }

    /// The peers' PostgreSQL database.
    pub(crate) fn postgres_url(&self, data: Data) -> Result<&str> {
        let found = self.postgres_urls.iter().find(|(known, _)| *known == data);
        found.map(|(_, url)| url.as_str()).context("the peers have no such database in PostgreSQL")
    }

    fn load(
        &mut self,
        workspace: &Workspace,
        plan: &Plan,
        source: &Source,
        data: Data,
        postgres: Option<&Postgres>,
    ) -> Result<()> {
        let folder = workspace.root.join(FOLDER);
        if plan.has(Contender::Datasette) || plan.has(Contender::PlainRust) {
            let path = self.sqlite(data).display().to_string();
            self.run_loader(&folder, source, data, ["--sqlite", &path], "SQLite")?;
        }
        if plan.has(Contender::Datasette) {
            self.set_up_datasette(&folder.join("datasette"), data)?;
        }
        if plan.has(Contender::Roapi) {
            let path = self.folder.join(format!("peers-{}.parquet", data.batches())).display().to_string();
            self.run_loader(&folder, source, data, ["--parquet", &path], "Parquet")?;
            let text = fs::read_to_string(folder.join("roapi/roapi.yaml.in"))?;
            fs::write(self.roapi(data), text.replace("@PARQUET@", &path))?;
        }
        let wants_postgres = plan.has(Contender::FastApi) || plan.has(Contender::FastApiTuned);
        if let Some(postgres) = postgres.filter(|_| wants_postgres) {
            let name = format!("peers_{}", data.batches());
            postgres.create_database(&name)?;
            let url = postgres.url(&name);
            self.run_loader(&folder, source, data, ["--postgres", &url], "PostgreSQL")?;
            self.postgres_urls.push((data, url));
        }
        Ok(())
    }

    fn run_loader(
        &mut self,
        folder: &Path,
        source: &Source,
        data: Data,
        output: [&str; 2],
        into: &'static str,
    ) -> Result<()> {
        let mut loader = Command::new(self.program("python"));
        loader.arg(folder.join("load.py")).arg(source.file(data)).args(["--organisation", ORGANISATION]);
        loader.args(["--client-id", CLIENT_ID, "--client-secret", CLIENT_SECRET]).args(output);
        let begun = Instant::now();
        process::stdout_of(loader.env("PYTHONDONTWRITEBYTECODE", "1"))?;
        self.loads.push(Load { into, data, took: begun.elapsed() });
        Ok(())
    }

    /// As its README says: the file's name is part of the URLs, and with `inspect-data.json` it is never locked.
    fn set_up_datasette(&self, settings: &Path, data: Data) -> Result<()> {
        let folder = self.datasette(data);
        fs::create_dir_all(&folder)?;
        for name in ["metadata.yaml", "settings.json"] {
            fs::copy(settings.join(name), folder.join(name))?;
        }
        fs::hard_link(self.sqlite(data), folder.join("batches.db"))?;
        let mut inspect = Command::new(self.program("datasette"));
        inspect.args(["inspect", "batches.db", "--inspect-file", "inspect-data.json"]).current_dir(&folder);
        process::stdout_of(&mut inspect).map(drop)
    }
}
