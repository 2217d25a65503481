//! A PostgreSQL server of its own: its life, its accidents, and SQL on it. What it is to others of its kind
//! is in [`crate::replication`].

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::Signal;

use crate::home::Home;
use crate::settings::Settings;
use crate::{ports, programs};

/// A fast shutdown first brings its standbys up to date, and gives up on a frozen one only after
/// `wal_sender_timeout`, which is a minute.
const STOP_LIMIT: Duration = Duration::from_secs(90);

/// A killed PostgreSQL leaves a segment of System V shared memory; its id is in the lock file. The kernel has
/// room for 4096 of them.
const RELEASE_SHARED_MEMORY: &str = r#"
if [ -f "$1/data/postmaster.pid" ]; then ipcrm -m "$(sed -n '7s/.* //p' "$1/data/postmaster.pid")"; fi
"#;

/// A PostgreSQL server on loopback; the superuser `postgres` needs no password. Dropping it removes it.
///
/// All takes `&self`, so that one thread can cut the power while others work.
#[derive(Debug)]
pub struct Postgres {
    pub(crate) home: Home,
    settings: Settings,
    port: u16,
    programs: PathBuf,
    databases: AtomicU32,
}

impl Postgres {
    /// Makes a new server, and waits until it accepts connections.
    ///
    /// # Errors
    ///
    /// When PostgreSQL is not installed, or does not start; then with the end of its log.
    pub fn start(settings: &Settings) -> Result<Self> {
        Self::start_named("postgres", settings)
    }

    /// The port it listens on, or did before it was killed or stopped: it stays the same.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `postgres://postgres@127.0.0.1:PORT/DATABASE`.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// The name by which its primary knows it, if it is a standby.
    #[must_use]
    pub fn name(&self) -> &str {
        self.home.name()
    }

    /// Its folder: Unix sockets lie here.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.home.folder()
    }

    /// All that it wrote to its log.
    #[must_use]
    pub fn log(&self) -> String {
        self.home.log()
    }

    /// The process id of its postmaster, unless it was killed or stopped.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.home.pid()
    }

    /// Runs SQL by `psql` and gives the rows, a line each, with `|` between columns. Several statements are
    /// one transaction.
    ///
    /// # Errors
    ///
    /// When the server cannot be reached within ten seconds, or the statement fails.
    pub fn sql(&self, database: &str, statement: &str) -> Result<String> {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args([
            "-X",
            "-q",
            "-A",
            "-t",
            "-v",
            "ON_ERROR_STOP=1",
            "-d",
            &self.url(database),
            "-c",
            statement,
        ]);
        let rows = programs::stdout_of(&psql).with_context(|| format!("{}: {statement}", self.name()))?;
        Ok(rows.trim_end_matches('\n').to_owned())
    }

    /// Makes an empty database.
    ///
    /// # Errors
    ///
    /// As for [`Self::sql`].
    pub fn create_database(&self, name: &str) -> Result<()> {
        self.sql("postgres", &format!("create database \"{}\"", name.replace('"', "\"\""))).map(drop)
    }

    /// Makes an empty database and gives its name, which no other server of ours gives out.
    ///
    /// # Errors
    ///
    /// As for [`Self::sql`].
    pub fn fresh_database(&self) -> Result<String> {
        let name = format!("fresh_{}_{}", self.port, self.databases.fetch_add(1, Ordering::Relaxed));
        self.create_database(&name)?;
        Ok(name)
    }

    /// SIGKILL to the postmaster and all its children, like a power cut; when this returns, none of them runs.
    ///
    /// # Errors
    ///
    /// When one of them does not end.
    pub fn kill(&self) -> Result<()> {
        self.home.kill()
    }

    /// A fast shutdown: open transactions are rolled back, and nothing has to be recovered.
    ///
    /// # Errors
    ///
    /// When it does not end, as while it is frozen.
    pub fn stop(&self) -> Result<()> {
        self.home.stop(Signal::INT, STOP_LIMIT)
    }

    /// Starts it after a kill or a stop, on the same port and folder.
    ///
    /// # Errors
    ///
    /// When it runs, or does not start; then with the end of its log.
    pub fn start_again(&self) -> Result<()> {
        self.launch()
    }

    /// SIGSTOP to the postmaster and all its children. The kernel still takes connections; nobody answers.
    ///
    /// # Errors
    ///
    /// When it is not running.
    pub fn freeze(&self) -> Result<()> {
        self.home.freeze()
    }

    /// Lets it go on after [`Self::freeze`].
    pub fn thaw(&self) {
        self.home.thaw();
    }

    /// Whether its postmaster is there, frozen or not.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.home.is_running()
    }

    pub(crate) fn start_named(name: &str, settings: &Settings) -> Result<Self> {
        let server = Self::prepare(name, settings)?;
        let mut initdb = server.program("initdb");
        initdb.args(["--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8"]);
        initdb.args(["--username=postgres", "--pgdata"]).arg(server.data());
        programs::stdout_of(&initdb)?;
        server.launch()?;
        Ok(server)
    }

    /// A server like this one that has no data yet.
    pub(crate) fn prepare_another(&self, name: &str) -> Result<Self> {
        Self::prepare(name, &self.settings)
    }

    fn prepare(name: &str, settings: &Settings) -> Result<Self> {
        let programs = programs::postgres_folder()?;
        let home = Home::new(name, RELEASE_SHARED_MEMORY)?;
        programs::give_to_server_user(home.folder())?;
        // Beside the data folder, so that a copy of that does not bring another server's settings.
        let configuration = home.folder().join("postgresql.conf");
        fs::write(&configuration, settings.to_string())?;
        programs::give_to_server_user(&configuration)?;
        let databases = AtomicU32::new(0);
        Ok(Self { home, settings: settings.clone(), port: ports::free()?, programs, databases })
    }

    pub(crate) fn launch(&self) -> Result<()> {
        self.remove_locks();
        let mut server = self.program("postgres");
        server.arg("-D").arg(self.data()).arg("-k").arg(self.folder()).args(["-p", &self.port.to_string()]);
        server.arg("-c").arg(format!("config_file={}", self.folder().join("postgresql.conf").display()));
        self.home.start(&mut server, || self.accepts_connections())
    }

    /// Throws the data away. Only for a server that does not run.
    pub(crate) fn remove_data(&self) -> Result<()> {
        let release = [RELEASE_SHARED_MEMORY, "true"].concat();
        programs::stdout_of(Command::new("sh").args(["-c", &release, "release"]).arg(self.folder()))?;
        Ok(fs::remove_dir_all(self.data())?)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder().join("data")
    }

    /// One of PostgreSQL's programs, as the user that the server runs as.
    pub(crate) fn program(&self, name: &str) -> Command {
        programs::as_server_user(&self.programs.join(name))
    }

    /// After a crash the ids in these files may be those of other processes, for which PostgreSQL would stay
    /// away. We know that the old server is gone.
    fn remove_locks(&self) {
        if !self.is_running() {
            let _ = fs::remove_file(self.data().join("postmaster.pid"));
            let _ = fs::remove_file(self.folder().join(format!(".s.PGSQL.{}.lock", self.port)));
        }
    }

    /// The eighth line of the lock file is the server's state, for which `pg_ctl -w` waits as well.
    fn accepts_connections(&self) -> bool {
        let lock = fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        lock.lines().nth(7).is_some_and(|state| state.trim() == "ready")
    }
}
