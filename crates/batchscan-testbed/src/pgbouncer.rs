//! pgbouncer in front of a PostgreSQL server.

use std::fs;
use std::ops::Deref;

use anyhow::Result;

use crate::server::Server;
use crate::{ports, programs};

/// A running pgbouncer. The user `postgres` needs no password. Dropping it removes it.
///
/// Connections are pooled by transaction: nothing that a session remembers, such as prepared statements, outlasts one.
#[derive(Debug)]
pub struct PgBouncer {
    server: Server,
    port: u16,
}

impl Deref for PgBouncer {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl PgBouncer {
    /// Starts pgbouncer in front of a port of loopback. `extra` is added to the section `[pgbouncer]`.
    pub fn start(postgres_port: u16, extra: &str) -> Result<Self> {
        let bouncer = Self { server: Server::new("pgbouncer", "")?, port: ports::free()? };
        let folder = bouncer.server.folder();
        let users = folder.join("users.txt");
        let configuration = format!(
            "[databases]\n* = host=127.0.0.1 port={postgres_port}\n\
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {}\nunix_socket_dir =\n\
             auth_type = trust\nauth_file = {}\npool_mode = transaction\n\
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
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `postgres://postgres@127.0.0.1:PORT/DATABASE`, through the pool.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Starts it after a kill, on the same port.
    pub fn start_again(&self) -> Result<()> {
        let mut command = programs::as_server_user(&programs::server("pgbouncer")?);
        command.arg(self.server.folder().join("pgbouncer.ini"));
        self.server.start(&mut command, || ports::is_listening(self.port))
    }
}
