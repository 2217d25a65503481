//! Streaming replication between PostgreSQL servers. The caller or [`crate::cluster`] decides which is promoted when.

use std::fs::File;
use std::io::Write;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::postgres::Postgres;
use crate::programs;

/// A standby connects within a second, but may have to replay something first.
const WAIT_TIMEOUT: Duration = Duration::from_secs(300);
const POLL: Duration = Duration::from_millis(50);

impl Postgres {
    /// Creates and starts a standby of this server with the same settings. The name is its `application_name`.
    pub fn standby(&self, name: &str) -> Result<Self> {
        let standby = self.prepare_another(name)?;
        standby.copy_from(self)?;
        standby.launch()?;
        Ok(standby)
    }

    /// Promotes a standby and waits until it accepts writes.
    pub fn promote(&self) -> Result<()> {
        if self.sql("postgres", "select pg_promote(true, 60)")? != "t" {
            bail!("{} was not promoted in a minute", self.name());
        }
        Ok(())
    }

    /// Makes a running standby follow another primary. It must not be ahead of it.
    pub fn follow(&self, primary: &Self) -> Result<()> {
        let connection = self.connection_to(primary);
        self.sql("postgres", &format!("alter system set primary_conninfo = '{connection}'"))?;
        self.sql("postgres", "select pg_reload_conf()").map(drop)
    }

    /// Deletes this server's data and starts it as a standby on the same port. If it is running, it is killed.
    pub fn rejoin(&self, primary: &Self) -> Result<()> {
        self.kill()?;
        self.remove_data()?;
        self.copy_from(primary)?;
        self.launch()
    }

    /// Whether it is a standby.
    pub fn is_in_recovery(&self) -> Result<bool> {
        Ok(self.sql("postgres", "select pg_is_in_recovery()")? == "t")
    }

    /// Waits until standbys with these names are streaming from this primary.
    pub fn wait_for_standbys(&self, names: &[&str]) -> Result<()> {
        let query = "select application_name from pg_stat_replication where state = 'streaming'";
        self.wait_for(&format!("standbys {}", names.join(", ")), || {
            let streaming = self.sql("postgres", query)?;
            Ok(names.iter().all(|name| streaming.lines().any(|line| line == *name)))
        })
    }

    /// Waits until readers of a standby see everything that the primary has written by now.
    pub fn wait_to_catch_up_with(&self, primary: &Self) -> Result<()> {
        let goal = primary.lsn("pg_current_wal_lsn()")?;
        self.wait_for(primary.name(), || Ok(self.lsn("pg_last_wal_replay_lsn()")? >= goal))
    }

    /// Waits until a standby notices that its primary is gone, after which it receives nothing more.
    pub(crate) fn wait_to_lose_its_primary(&self) -> Result<()> {
        let query = "select count(*) from pg_stat_wal_receiver";
        self.wait_for("the loss of its primary", || Ok(self.sql("postgres", query)? == "0"))
    }

    /// How many bytes of the primary's log a standby has on disk.
    pub(crate) fn received_lsn(&self) -> Result<u64> {
        // After a restart nothing is received until the primary is reached, but everything replayed was received.
        self.lsn("greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())")
    }

    fn copy_from(&self, primary: &Self) -> Result<()> {
        let mut copy = self.program("pg_basebackup");
        copy.args(["--checkpoint=fast", "--no-sync", "--write-recovery-conf", "--dbname"]);
        copy.arg(format!("host=127.0.0.1 port={} user=postgres", primary.port()));
        programs::run(copy.arg("--pgdata").arg(self.data()))?;
        // Only now: with this name the copy itself would acknowledge synchronous commits.
        let mut configuration =
            File::options().append(true).open(self.data().join("postgresql.auto.conf"))?;
        Ok(writeln!(configuration, "primary_conninfo = '{}'", self.connection_to(primary))?)
    }

    fn connection_to(&self, primary: &Self) -> String {
        format!("host=127.0.0.1 port={} user=postgres application_name={}", primary.port(), self.name())
    }

    fn lsn(&self, expression: &str) -> Result<u64> {
        let bytes = self.sql("postgres", &format!("select coalesce({expression}, '0/0') - '0/0'::pg_lsn"))?;
        Ok(bytes.parse()?)
    }

    fn wait_for(&self, what: &str, condition: impl Fn() -> Result<bool>) -> Result<()> {
        let deadline = Instant::now() + WAIT_TIMEOUT;
        while !condition()? {
            if Instant::now() > deadline {
                bail!("{} waited {WAIT_TIMEOUT:?} for {what}; its log:\n{}", self.name(), self.log());
            }
            sleep(POLL);
        }
        Ok(())
    }
}
