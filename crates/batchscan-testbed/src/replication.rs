//! A PostgreSQL server as a primary, or as a streaming standby of another. Decides nothing: who is promoted
//! when is up to the caller, or to [`crate::cluster`].

use std::fs::File;
use std::io::Write;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::postgres::Postgres;
use crate::programs;

/// A standby connects within a second; on a busy machine it may have to replay something first.
const STREAMING_LIMIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);

impl Postgres {
    /// Makes and starts a streaming standby of this server, with the same settings. The name is its
    /// `application_name`, for `synchronous_standby_names`.
    ///
    /// # Errors
    ///
    /// When the copy fails, or the standby does not start.
    pub fn standby(&self, name: &str) -> Result<Self> {
        let standby = self.prepare_another(name)?;
        standby.copy_from(self)?;
        standby.launch()?;
        Ok(standby)
    }

    /// Makes a standby the primary that it followed; waits until it takes writes.
    ///
    /// # Errors
    ///
    /// When it is no standby, or does not get there in a minute.
    pub fn promote(&self) -> Result<()> {
        if self.sql("postgres", "select pg_promote(true, 60)")? != "t" {
            bail!("{} was not promoted in a minute", self.name());
        }
        Ok(())
    }

    /// Lets a running standby follow another primary. It must not be ahead of it.
    ///
    /// # Errors
    ///
    /// When the standby cannot be reached.
    pub fn follow(&self, primary: &Self) -> Result<()> {
        let place = self.connection_to(primary);
        self.sql("postgres", &format!("alter system set primary_conninfo = '{place}'"))?;
        self.sql("postgres", "select pg_reload_conf()").map(drop)
    }

    /// Throws this server's data away and starts it on the same port, as a standby of another. If it runs, it
    /// is killed.
    ///
    /// # Errors
    ///
    /// When the copy fails, or the standby does not start.
    pub fn rejoin(&self, primary: &Self) -> Result<()> {
        self.kill()?;
        self.remove_data()?;
        self.copy_from(primary)?;
        self.launch()
    }

    /// Whether it is a standby.
    ///
    /// # Errors
    ///
    /// When it cannot be reached.
    pub fn is_in_recovery(&self) -> Result<bool> {
        Ok(self.sql("postgres", "select pg_is_in_recovery()")? == "t")
    }

    /// Up to where a standby has the primary's log on disk, in bytes. The one with the most loses the least.
    ///
    /// # Errors
    ///
    /// When it cannot be reached.
    pub fn received_lsn(&self) -> Result<u64> {
        // Nothing is received after a restart until the primary is there; what was replayed had been received.
        self.lsn("greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())")
    }

    /// Up to where a standby's readers see the primary's log, in bytes.
    ///
    /// # Errors
    ///
    /// When it cannot be reached.
    pub fn replayed_lsn(&self) -> Result<u64> {
        self.lsn("pg_last_wal_replay_lsn()")
    }

    /// Up to where a primary has written its log, in bytes.
    ///
    /// # Errors
    ///
    /// When it cannot be reached, or is a standby.
    pub fn written_lsn(&self) -> Result<u64> {
        self.lsn("pg_current_wal_lsn()")
    }

    /// Waits until standbys of these names receive this primary's log as it is written.
    ///
    /// # Errors
    ///
    /// When one of them does not come in a minute.
    pub fn wait_for_standbys(&self, names: &[&str]) -> Result<()> {
        let query = "select application_name from pg_stat_replication where state = 'streaming'";
        self.wait_for(&format!("standbys {}", names.join(", ")), || {
            let there = self.sql("postgres", query)?;
            Ok(names.iter().all(|name| there.lines().any(|line| line == *name)))
        })
    }

    /// Waits until a standby shows all that the primary has written by now.
    ///
    /// # Errors
    ///
    /// When it does not get there in a minute.
    pub fn wait_to_catch_up_with(&self, primary: &Self) -> Result<()> {
        let goal = primary.written_lsn()?;
        self.wait_for(primary.name(), || Ok(self.replayed_lsn()? >= goal))
    }

    /// Waits until a standby has noticed that its primary is gone, after which it receives nothing more.
    pub(crate) fn wait_to_lose_its_primary(&self) -> Result<()> {
        let query = "select count(*) from pg_stat_wal_receiver";
        self.wait_for("the loss of its primary", || Ok(self.sql("postgres", query)? == "0"))
    }

    fn copy_from(&self, primary: &Self) -> Result<()> {
        let mut copy = self.program("pg_basebackup");
        copy.args(["--checkpoint=fast", "--no-sync", "--write-recovery-conf", "--dbname"]);
        copy.arg(format!("host=127.0.0.1 port={} user=postgres", primary.port()));
        programs::stdout_of(copy.arg("--pgdata").arg(self.data()))?;
        // The name goes in afterwards: a copy under way that bore it would confirm synchronous commits.
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

    fn wait_for(&self, what: &str, holds: impl Fn() -> Result<bool>) -> Result<()> {
        let deadline = Instant::now() + STREAMING_LIMIT;
        while !holds()? {
            if Instant::now() > deadline {
                bail!("{} waited {STREAMING_LIMIT:?} for {what}; its log:\n{}", self.name(), self.log());
            }
            sleep(POLL);
        }
        Ok(())
    }
}
