//! The command that starts each contender, as `bench/peers/README.md` tells it.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use batchscan_testbed::ports;

use super::server::Place;
use super::{Contender, files};
use crate::bench::databases::Database;
use crate::bench::exchange::Request;
use crate::bench::peers;
use crate::bench::stock::Stock;
use crate::bench::works::Data;
use crate::process;

/// Signs the tokens of FastAPI; longer than PyJWT warns of.
const TOKEN_SECRET: &str = "a secret of sixty-four bytes, as long as the hash that it is used in";

/// A command, and where what it starts will listen.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) command: Command,
    pub(super) port: u16,
    pub(super) operator_port: Option<u16>,
}

/// How a contender is started on its data.
pub(super) fn command(stock: &Stock, contender: Contender, data: Data, place: Place) -> Result<Started> {
    if contender.is_ours() {
        return batchscan(stock, stock.database(contender, data)?, place);
    }
    let port = ports::free()?;
    let mut command = match contender {
        Contender::FastApi => uvicorn(stock, "app:app", data, port, place)?,
        Contender::FastApiTuned => uvicorn(stock, "tuned:app", data, port, place)?,
        Contender::Datasette => {
            let mut command = on(stock, place, &stock.peers()?.program("datasette"));
            command.arg("serve").arg(stock.peers()?.datasette(data)).args(["--host", "127.0.0.1"]);
            command.args(["--port", &port.to_string()]);
            command
        }
        Contender::Roapi => {
            let mut command = on(stock, place, &stock.peers()?.program("roapi"));
            command.arg("--config").arg(stock.peers()?.roapi(data));
            command.args(["--addr-http", &format!("127.0.0.1:{port}")]);
            command.args(["--addr-postgres", "127.0.0.1:0", "--addr-flight-sql", "127.0.0.1:0"]);
            command.env("RUST_LOG", "warn");
            command
        }
        Contender::PlainRust => {
            let program = stock.plain_rust.as_deref().context("the plain Rust service was not built")?;
            let mut command = on(stock, place, program);
            command.arg("--database").arg(stock.peers()?.sqlite(data));
            command.args(["--listen", &format!("127.0.0.1:{port}")]);
            command
        }
        _ => nginx(stock, data, port, place)?,
    };
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    Ok(Started { command, port, operator_port: None })
}

/// How batchscan is started, on any database.
pub(super) fn batchscan(stock: &Stock, database: &Database, place: Place) -> Result<Started> {
    let (port, operator_port) = (ports::free()?, ports::free()?);
    let mut command = on(stock, place, &stock.executable);
    command.args(["serve", "--listen", &format!("127.0.0.1:{port}")]);
    command.args(["--operator-listen", &format!("127.0.0.1:{operator_port}")]);
    process::without_settings(&mut command).env("BATCHSCAN_DATABASE", &database.operator.database);
    // No line for each request, as of all contenders.
    command.env("BATCHSCAN_LOG", "warn");
    Ok(Started { command, port, operator_port: Some(operator_port) })
}

/// What shows that a contender without tokens answers.
pub(super) fn sign_of_life(contender: Contender) -> Request {
    Request::get(match contender {
        Contender::Datasette => "/-/versions.json",
        Contender::Roapi => "/health",
        _ => "/v2/page.json",
    })
}

fn on(stock: &Stock, place: Place, program: &Path) -> Command {
    match place {
        Place::OneCore => stock.cores.server(program),
        Place::BothCores => stock.cores.both(program),
    }
}

fn uvicorn(stock: &Stock, app: &str, data: Data, port: u16, place: Place) -> Result<Command> {
    let mut command = on(stock, place, &stock.peers()?.program("uvicorn"));
    command.arg("--app-dir").arg(stock.root.join(peers::FOLDER).join("fastapi")).arg(app);
    command.args(["--host", "127.0.0.1", "--port", &port.to_string(), "--workers", "2"]);
    command.args(["--loop", "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "warning"]);
    command.args(["--timeout-worker-healthcheck", "300"]);
    command.env("DATABASE_URL", stock.peers()?.postgres_url(data)?).env("JWT_SECRET", TOKEN_SECRET);
    Ok(command)
}

fn nginx(stock: &Stock, data: Data, port: u16, place: Place) -> Result<Command> {
    let home = files::home(stock, data);
    let configuration = files::configure(stock, &home, port)?;
    let program = if process::is_on_path("nginx") { "nginx" } else { "/usr/sbin/nginx" };
    let mut command = on(stock, place, Path::new(program));
    command.args(["-e", "stderr", "-p"]).arg(home).arg("-c").arg(configuration);
    Ok(command)
}
