//! A PostgreSQL primary and two standbys. Fails over on request, never automatically.

use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, bail};

use crate::postgres::Postgres;
use crate::settings::Settings;

/// When a commit is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replication {
    /// When the primary has it.
    Asynchronous,
    /// When the primary and one standby have it: the loss of the primary loses nothing.
    Synchronous,
}

/// Three servers, `db1` to `db3`. At first `db1` is the primary.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<Postgres>,
    primary: AtomicUsize,
}

impl Cluster {
    /// Creates the servers and waits until both standbys stream.
    pub fn start(settings: &Settings, replication: Replication) -> Result<Self> {
        let mut settings = settings.clone();
        if replication == Replication::Synchronous {
            settings = settings.with("synchronous_standby_names", "ANY 1 (db1,db2,db3)");
        }
        let db1 = Postgres::start_named("db1", &settings)?;
        let (db2, db3) = (db1.standby("db2")?, db1.standby("db3")?);
        let cluster = Self { nodes: vec![db1, db2, db3], primary: AtomicUsize::new(0) };
        cluster.primary().wait_for_standbys(&["db2", "db3"])?;
        Ok(cluster)
    }

    /// `postgres://postgres@127.0.0.1:P1,127.0.0.1:P2,127.0.0.1:P3/DATABASE`, whichever is the primary.
    pub fn url(&self, database: &str) -> String {
        let hosts: Vec<String> = self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port())).collect();
        format!("postgres://postgres@{}/{database}", hosts.join(","))
    }

    /// All three.
    pub fn nodes(&self) -> &[Postgres] {
        &self.nodes
    }

    /// The primary. After it was killed it is still this one, until [`Self::fail_over`].
    pub fn primary(&self) -> &Postgres {
        &self.nodes[self.primary.load(Ordering::SeqCst)]
    }

    /// The other two, running or not.
    pub fn standbys(&self) -> Vec<&Postgres> {
        self.nodes.iter().filter(|node| node.port() != self.primary().port()).collect()
    }

    /// Promotes the running standby that has received the most; the others follow it. Fails if the primary is running, even
    /// if frozen: there must never be two.
    pub fn fail_over(&self) -> Result<()> {
        if self.primary().is_running() {
            bail!("{} is the primary and is running", self.primary().name());
        }
        let mut running: Vec<(u64, &Postgres)> = Vec::new();
        for standby in self.standbys().into_iter().filter(|standby| standby.is_running()) {
            // Until then it may still receive something.
            standby.wait_to_lose_its_primary()?;
            running.push((standby.received_lsn()?, standby));
        }
        let (_, chosen) =
            *running.iter().max_by_key(|(received, _)| received).context("no standby is running")?;
        chosen.promote()?;
        let index = self.nodes.iter().position(|node| node.port() == chosen.port());
        self.primary.store(index.unwrap_or_default(), Ordering::SeqCst);
        running.retain(|(_, standby)| standby.port() != chosen.port());
        running.iter().try_for_each(|(_, standby)| standby.follow(chosen))?;
        let names: Vec<&str> = running.iter().map(|(_, standby)| standby.name()).collect();
        chosen.wait_for_standbys(&names)
    }

    /// Starts every server that is not running as a standby with a copy of the primary's data.
    pub fn rejoin_dead(&self) -> Result<()> {
        let dead: Vec<&Postgres> = self.standbys().into_iter().filter(|node| !node.is_running()).collect();
        dead.iter().try_for_each(|node| node.rejoin(self.primary()))?;
        let names: Vec<&str> = dead.iter().map(|node| node.name()).collect();
        self.primary().wait_for_standbys(&names)
    }
}
