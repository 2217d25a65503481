//! Three PostgreSQL servers, one of them the primary, as a site has them that survives the loss of one. Fails
//! over when told to, never by itself.

use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, bail};

use crate::postgres::Postgres;
use crate::settings::Settings;

/// When a commit counts as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replication {
    /// When the primary has it.
    Asynchronous,
    /// When the primary and one standby have it: then the loss of the primary loses nothing.
    Synchronous,
}

/// Three servers, `db1` to `db3`; at first `db1` is the primary.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<Postgres>,
    primary: AtomicUsize,
}

impl Cluster {
    /// Makes the three, and waits until both standbys stream.
    ///
    /// # Errors
    ///
    /// When one of them does not start.
    pub fn start(settings: &Settings, replication: Replication) -> Result<Self> {
        let settings = match replication {
            Replication::Asynchronous => settings.clone(),
            Replication::Synchronous => settings
                .clone()
                .with("synchronous_standby_names", "ANY 1 (db1,db2,db3)")
                .with("synchronous_commit", "on"),
        };
        let db1 = Postgres::start_named("db1", &settings)?;
        let (db2, db3) = (db1.standby("db2")?, db1.standby("db3")?);
        let cluster = Self { nodes: vec![db1, db2, db3], primary: AtomicUsize::new(0) };
        cluster.primary().wait_for_standbys(&["db2", "db3"])?;
        Ok(cluster)
    }

    /// `postgres://postgres@127.0.0.1:P1,127.0.0.1:P2,127.0.0.1:P3/DATABASE`, whoever is the primary.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        let hosts: Vec<String> = self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port())).collect();
        format!("postgres://postgres@{}/{database}", hosts.join(","))
    }

    /// The three, by their names.
    #[must_use]
    pub fn nodes(&self) -> &[Postgres] {
        &self.nodes
    }

    /// The primary; after its death still the dead one, until [`Self::fail_over`].
    #[must_use]
    pub fn primary(&self) -> &Postgres {
        &self.nodes[self.primary.load(Ordering::SeqCst)]
    }

    /// All but the primary, dead or alive.
    #[must_use]
    pub fn standbys(&self) -> Vec<&Postgres> {
        let primary = self.primary();
        self.nodes.iter().filter(|node| node.port() != primary.port()).collect()
    }

    /// After the primary was killed or stopped: promotes the living standby that has the most, and lets the
    /// others follow it.
    ///
    /// # Errors
    ///
    /// When the primary runs, even if frozen: two primaries would be worse than none. Or when no standby lives.
    pub fn fail_over(&self) -> Result<()> {
        if self.primary().is_running() {
            bail!("{} is the primary and runs", self.primary().name());
        }
        let mut living: Vec<(u64, &Postgres)> = Vec::new();
        for standby in self.standbys().into_iter().filter(|standby| standby.is_running()) {
            // Until then it may still receive, and be ahead of the one that is chosen.
            standby.wait_to_lose_its_primary()?;
            living.push((standby.received_lsn()?, standby));
        }
        let (_, chosen) = *living.iter().max_by_key(|(received, _)| received).context("no standby lives")?;
        chosen.promote()?;
        let index = self.nodes.iter().position(|node| node.port() == chosen.port());
        self.primary.store(index.unwrap_or_default(), Ordering::SeqCst);
        let others = living.iter().map(|(_, standby)| *standby).filter(|other| other.port() != chosen.port());
        self.gather(others)
    }

    /// Brings every dead server back, as a standby with the primary's data.
    ///
    /// # Errors
    ///
    /// When the primary cannot be reached, or one does not start.
    pub fn rejoin_dead(&self) -> Result<()> {
        let dead: Vec<&Postgres> = self.standbys().into_iter().filter(|node| !node.is_running()).collect();
        dead.iter().try_for_each(|node| node.rejoin(self.primary()))?;
        let names: Vec<&str> = dead.iter().map(|node| node.name()).collect();
        self.primary().wait_for_standbys(&names)
    }

    fn gather<'a>(&self, standbys: impl Iterator<Item = &'a Postgres>) -> Result<()> {
        let primary = self.primary();
        let mut names = Vec::new();
        for standby in standbys {
            standby.follow(primary)?;
            names.push(standby.name());
        }
        primary.wait_for_standbys(&names)
    }
}
