//! pgbouncer in front of a PostgreSQL server, as many sites have it.

use std::fmt;
use std::fs;

use anyhow::Result;

use crate::home::Home;
use crate::{ports, programs};

/// When a server connection goes back to the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolMode {
    /// When the client disconnects.
    Session,
    /// When the transaction ends: what a session would remember, as prepared statements, is gone by the next.
    Transaction,
    /// After every statement; there are no transactions.
    Statement,
}

impl fmt::Display for PoolMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Session => "session",
            Self::Transaction => "transaction",
            Self::Statement => "statement",
        })
    }
}

/// A running pgbouncer; the user `postgres` needs no password. Dropping it removes it.
#[derive(Debug)]
pub struct PgBouncer {
    home: Home,
    port: u16,
}

impl PgBouncer {
    /// Starts pgbouncer in front of the PostgreSQL server on a port of loopback, and waits until it listens.
    /// `extra` are more lines for the section `[pgbouncer]` of its configuration.
    ///
    /// # Errors
    ///
    /// When it is not installed, or does not start; then with the end of its log.
    pub fn start(port_of_postgres: u16, mode: PoolMode, extra: &str) -> Result<Self> {
        let bouncer = Self { home: Home::new("pgbouncer", "")?, port: ports::free()? };
        let folder = bouncer.home.folder();
        let users = folder.join("users.txt");
        let configuration = format!(
            "[databases]\n* = host=127.0.0.1 port={port_of_postgres}\n\
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {}\nunix_socket_dir =\n\
             auth_type = trust\nauth_file = {}\npool_mode = {mode}\n\
             ignore_startup_parameters = extra_float_digits\n{extra}\n",
            bouncer.port,
            users.display(),
        );
        fs::write(&users, "\"postgres\" \"\"\n")?;
        fs::write(folder.join("pgbouncer.ini"), configuration)?;
        for path in [folder, &users, &folder.join("pgbouncer.ini")] {
            programs::give_to_server_user(path)?;
        }
        bouncer.start_again()?;
        Ok(bouncer)
    }

    /// The port it listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `postgres://postgres@127.0.0.1:PORT/DATABASE`, through the pool.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Starts it after a kill, on the same port.
    ///
    /// # Errors
    ///
    /// When it runs, or does not start.
    pub fn start_again(&self) -> Result<()> {
        let mut command = programs::as_server_user(&programs::server("pgbouncer")?);
        command.arg(self.home.folder().join("pgbouncer.ini"));
        self.home.start(&mut command, || ports::is_listening(self.port))
    }

    /// SIGKILL; when this returns, it is gone.
    ///
    /// # Errors
    ///
    /// When it does not end.
    pub fn kill(&self) -> Result<()> {
        self.home.kill()
    }

    /// Whether its process is there.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.home.is_running()
    }

    /// All that it wrote to its log.
    #[must_use]
    pub fn log(&self) -> String {
        self.home.log()
    }
}
