//! One PostgreSQL server. Replication is in [`crate::replication`].

use std::fs;
use std::ops::Deref;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::server::Server;
use crate::settings::Settings;
use crate::{ports, programs};

/// A fast shutdown first updates the standbys, and waits up to a minute for a frozen one (`wal_sender_timeout`).
const STOP_TIMEOUT: Duration = Duration::from_secs(300);

/// A killed PostgreSQL leaves a segment of System V shared memory, of which the kernel allows 4096. Its id is in the lock
/// file.
const RELEASE_SHARED_MEMORY: &str = r#"
if [ -f "$1/data/postmaster.pid" ]; then ipcrm -m "$(sed -n '7s/.* //p' "$1/data/postmaster.pid")"; fi
"#;

/// A PostgreSQL server on loopback. The superuser `postgres` needs no password. Dropping it removes it.
///
/// All methods take `&self`, so that one thread can kill it while others use it.
#[derive(Debug)]
pub struct Postgres {
    server: Server,
    settings: Settings,
    port: u16,
    programs: PathBuf,
    databases: AtomicU32,
}

impl Deref for Postgres {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl Postgres {
    /// Creates a server and waits until it accepts connections.
    pub fn start(settings: &Settings) -> Result<Self> {
        Self::start_named("postgres", settings)
    }

    /// The port. It stays the same after a restart.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `postgres://postgres@127.0.0.1:PORT/DATABASE`.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Runs SQL with `psql`. Returns a line for each row, with `|` between columns. Several statements are one transaction.
    pub fn sql(&self, database: &str, statement: &str) -> Result<String> {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]);
        psql.args(["-d", &self.url(database), "-c", statement]);
        let rows = programs::run(&psql).with_context(|| format!("{}: {statement}", self.name()))?;
        Ok(rows.trim_end_matches('\n').to_owned())
    }

    /// Creates an empty database.
    pub fn create_database(&self, name: &str) -> Result<()> {
        self.sql("postgres", &format!("create database \"{}\"", name.replace('"', "\"\""))).map(drop)
    }

    /// Creates an empty database and returns its name, which is unique across servers.
    pub fn fresh_database(&self) -> Result<String> {
        let name = format!("fresh_{}_{}", self.port, self.databases.fetch_add(1, Ordering::Relaxed));
        self.create_database(&name)?;
        Ok(name)
    }

    /// A fast shutdown: open transactions are rolled back, and no recovery is needed. Fails while the server is frozen.
    pub fn stop(&self) -> Result<()> {
        self.server.stop("INT", STOP_TIMEOUT)
    }

    /// Starts it after a kill or a stop, with the same port and data.
    pub fn start_again(&self) -> Result<()> {
        self.launch()
    }

    pub(crate) fn start_named(name: &str, settings: &Settings) -> Result<Self> {
        let postgres = Self::prepare(name, settings)?;
        let mut initdb = postgres.program("initdb");
        initdb.args(["--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8"]);
        initdb.args(["--username=postgres", "--pgdata"]).arg(postgres.data());
        programs::run(&initdb)?;
        postgres.launch()?;
        Ok(postgres)
    }

    /// A server with the same settings and no data yet.
    pub(crate) fn prepare_another(&self, name: &str) -> Result<Self> {
        Self::prepare(name, &self.settings)
    }

    fn prepare(name: &str, settings: &Settings) -> Result<Self> {
        let programs = programs::postgres_folder()?;
        let server = Server::new(name, RELEASE_SHARED_MEMORY)?;
        programs::give_to_server_user(server.folder())?;
        // Outside the data folder, so that a copy of that does not include another server's settings.
        let configuration = server.folder().join("postgresql.conf");
        fs::write(&configuration, settings.to_string())?;
        programs::give_to_server_user(&configuration)?;
        let databases = AtomicU32::new(0);
        Ok(Self { server, settings: settings.clone(), port: ports::free()?, programs, databases })
    }

    pub(crate) fn launch(&self) -> Result<()> {
        if !self.is_running() {
            // After a crash the ids in these files may be those of other processes, and PostgreSQL would not start.
            let _ = fs::remove_file(self.data().join("postmaster.pid"));
            let _ = fs::remove_file(self.folder().join(format!(".s.PGSQL.{}.lock", self.port)));
        }
        let mut postgres = self.program("postgres");
        postgres.arg("-D").arg(self.data()).arg("-k").arg(self.folder()).args(["-p", &self.port.to_string()]);
        postgres.arg("-c").arg(format!("config_file={}", self.folder().join("postgresql.conf").display()));
        self.server.start(&mut postgres, || self.accepts_connections())
    }

    /// Deletes the data of a server that is not running.
    pub(crate) fn remove_data(&self) -> Result<()> {
        let release = [RELEASE_SHARED_MEMORY, "true"].concat();
        programs::run(Command::new("sh").args(["-c", &release, "release"]).arg(self.folder()))?;
        Ok(fs::remove_dir_all(self.data())?)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder().join("data")
    }

    /// One of PostgreSQL's programs, as the servers' user.
    pub(crate) fn program(&self, name: &str) -> Command {
        programs::as_server_user(&self.programs.join(name))
    }

    /// The eighth line of the lock file is the server's state; `pg_ctl -w` reads it too.
    fn accepts_connections(&self) -> bool {
        let lock = fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        lock.lines().nth(7).is_some_and(|state| state.trim() == "ready")
    }
}
