//! A temporary folder with a database in it, or on a PostgreSQL server that all tests share.

use std::path::PathBuf;
use std::process::Command;
use std::sync::{OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use batchscan_testbed::{Postgres, Settings};
use rusqlite::Connection;
use serde_json::Value;
use snapbox::IntoData;
use tempfile::TempDir;

use crate::program::{Outcome, batchscan};
use crate::service::Service;
use crate::snapshot::{assert_snapshot, transcript};

/// The organisation of most tests.
pub(crate) const ORG: &str = "Green Valley";

/// Tests that measure run alone, all others in parallel.
static MACHINE: RwLock<()> = RwLock::new(());

/// A client id and its secret.
#[derive(Clone, Debug)]
pub(crate) struct Credential {
    pub(crate) id: String,
    pub(crate) secret: String,
}

impl Credential {
    /// From what `--json` prints.
    pub(crate) fn from_json(text: &str) -> Self {
        let json: Value = serde_json::from_str(text).unwrap();
        let part = |name: &str| json[name].as_str().unwrap().to_owned();
        assert_eq!(json.as_object().unwrap().len(), 2, "{text}");
        Self { id: part("client_id"), secret: part("client_secret") }
    }
}

/// The PostgreSQL server of all tests. Members of the role `guarded` need a password.
pub(crate) fn postgres() -> &'static Postgres {
    static SERVER: OnceLock<Postgres> = OnceLock::new();
    SERVER.get_or_init(|| {
        let server = Postgres::start(&Settings::default()).unwrap();
        server.sql("postgres", "create role guarded nologin").unwrap();
        let rules = server.folder().join("data/pg_hba.conf");
        let trusting = std::fs::read_to_string(&rules).unwrap();
        std::fs::write(&rules, format!("host all +guarded all scram-sha-256\n{trusting}")).unwrap();
        server.stop().unwrap();
        server.start_again().unwrap();
        server
    })
}

/// The URL of a new and empty database on that server.
pub(crate) fn fresh_database() -> String {
    postgres().url(&postgres().fresh_database().unwrap())
}

/// A folder with a database. Only one per test, because of the lock.
pub(crate) struct Site {
    folder: TempDir,
    /// The URL of the database.
    pub(crate) database: String,
    _turn: Turn,
}

#[expect(dead_code, reason = "the guards are held, not read")]
enum Turn {
    Shared(RwLockReadGuard<'static, ()>),
    Alone(RwLockWriteGuard<'static, ()>),
}

impl Turn {
    fn shared() -> Self {
        Turn::Shared(MACHINE.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn alone() -> Self {
        Turn::Alone(MACHINE.write().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Site {
    /// A folder without a database.
    pub(crate) fn without_org() -> Self {
        Self::of(Turn::shared())
    }

    /// A database with one organisation.
    pub(crate) fn new() -> Self {
        Self::without_org().with_org()
    }

    /// A database with one organisation, while no other test runs.
    pub(crate) fn alone() -> Self {
        Self::of(Turn::alone()).with_org()
    }

    /// An empty database on PostgreSQL.
    pub(crate) fn empty_on_postgres() -> Self {
        Self { database: fresh_database(), ..Self::without_org() }
    }

    /// A database on PostgreSQL with one organisation.
    pub(crate) fn on_postgres() -> Self {
        Self::empty_on_postgres().with_org()
    }

    /// The same, while no other test runs.
    pub(crate) fn alone_on_postgres() -> Self {
        Self { database: fresh_database(), ..Self::of(Turn::alone()) }.with_org()
    }

    fn of(turn: Turn) -> Self {
        let folder = tempfile::Builder::new().prefix("batchscan-cli-").tempdir().unwrap();
        let database = format!("sqlite:{}", folder.path().join("scans.db").display());
        Self { folder, database, _turn: turn }
    }

    fn with_org(self) -> Self {
        self.run(&["org", "add", ORG]).succeeds();
        self
    }

    /// A path in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The same as text.
    pub(crate) fn name(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Writes a file in the folder and returns its path.
    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        std::fs::write(self.path(name), bytes).unwrap();
        self.name(name)
    }

    /// The URL of a database in the folder.
    pub(crate) fn url(&self, name: &str) -> String {
        format!("sqlite:{}", self.name(name))
    }

    /// A command in the folder, on the database.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = batchscan(words);
        command.env("BATCHSCAN_DATABASE", &self.database).env("XDG_CONFIG_HOME", self.path("config"));
        command.current_dir(self.folder.path());
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, words: &[&str]) -> Outcome {
        Outcome::run(&mut self.command(words))
    }

    /// Runs command lines and compares their output with a snapshot.
    #[track_caller]
    pub(crate) fn transcript(&self, lines: &[&str], expected: impl IntoData) {
        assert_snapshot(&transcript(lines, |words| self.command(words)), expected);
    }

    /// Imports a file and returns the summary.
    #[track_caller]
    pub(crate) fn import(&self, file: &str) -> String {
        self.run(&["import", "--org", ORG, file]).succeeds()
    }

    /// Issues a credential.
    #[track_caller]
    pub(crate) fn credential(&self) -> Credential {
        Credential::from_json(&self.run(&["credential", "issue", "--org", ORG, "--json"]).succeeds())
    }

    /// Starts a service on a free port.
    pub(crate) fn serve(&self, flags: &[&str]) -> Service {
        self.serve_url(&self.database, flags)
    }

    /// The same on another database of the folder.
    pub(crate) fn serve_database(&self, name: &str, flags: &[&str]) -> Service {
        self.serve_url(&self.url(name), flags)
    }

    /// The same on any database.
    pub(crate) fn serve_url(&self, url: &str, flags: &[&str]) -> Service {
        let mut command = self.command(&["serve", "--listen", "127.0.0.1:0"]);
        Service::start(command.args(flags).env("BATCHSCAN_DATABASE", url))
    }

    /// A connection to the SQLite database.
    pub(crate) fn sql(&self) -> Connection {
        Connection::open(self.path("scans.db")).unwrap()
    }
}
