//! One `batchscan serve` or `batchscan demo` process.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use batchscan_testbed::{Process, http, ports, wait_until};

use super::cli::{Cli, Credential};

/// A demo generates its batches first; a node connects to its database.
const START_TIMEOUT: Duration = Duration::from_secs(300);
/// Above the service's own limit for draining connections, 30 s.
const STOP_TIMEOUT: Duration = Duration::from_secs(300);
const LOG_TAIL_LINES: usize = 20;

/// A running service. It ends when this is dropped, and when our process ends.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) port: u16,
    /// The port of health checks and metrics.
    pub(crate) operator_port: u16,
    cli: Cli,
    arguments: Vec<String>,
    log: PathBuf,
    process: Process,
}

impl Service {
    /// Starts `batchscan serve` and waits until it is ready.
    pub(crate) fn serve(cli: &Cli, page_size: u16, log: PathBuf) -> Result<Self> {
        let (port, operator_port) = (ports::free()?, ports::free()?);
        let arguments = format!(
            "serve --page-size {page_size} --listen 127.0.0.1:{port} --operator-listen 127.0.0.1:{operator_port}"
        );
        Self::start(cli, &arguments, port, operator_port, log)
    }

    /// Starts `batchscan demo` and waits until it is ready.
    pub(crate) fn demo(cli: &Cli, batches: u32, log: PathBuf) -> Result<Self> {
        let port = ports::free()?;
        Self::start(cli, &format!("demo --batches {batches} --listen 127.0.0.1:{port}"), port, port, log)
    }

    fn start(cli: &Cli, arguments: &str, port: u16, operator_port: u16, log: PathBuf) -> Result<Self> {
        let arguments: Vec<String> = arguments.split(' ').map(str::to_owned).collect();
        File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let process = launch(cli, &arguments, &log)?;
        let service = Self { port, operator_port, cli: cli.clone(), arguments, log, process };
        service.wait_until_ready()?;
        Ok(service)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The credential that a demo prints.
    pub(crate) fn demo_credential(&self) -> Result<Credential> {
        let log = fs::read_to_string(&self.log)?;
        let value = |label: &str| {
            let line = log.lines().find_map(|line| line.trim().strip_prefix(label));
            line.map(|value| value.trim().to_owned()).with_context(|| format!("the demo printed no {label}"))
        };
        Ok(Credential { client_id: value("client id ")?, client_secret: value("client secret ")? })
    }

    /// SIGKILL. Returns when the process is gone.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.process.kill().map(drop)
    }

    /// SIGTERM: the service must finish its responses and exit with 0.
    pub(crate) fn stop(&mut self) -> Result<()> {
        self.stop_with("TERM")
    }

    /// Ctrl-C, which wine passes on to a program for Windows.
    pub(crate) fn interrupt(mut self) -> Result<()> {
        self.stop_with("INT")
    }

    fn stop_with(&mut self, signal: &str) -> Result<()> {
        self.process.signal(signal)?;
        let status = self.process.wait(STOP_TIMEOUT).with_context(|| self.log_tail())?;
        if status.code() != Some(0) {
            bail!("the service did not exit with 0 after SIG{signal}: {status}\n{}", self.log_tail());
        }
        Ok(())
    }

    /// Starts it again on the same ports.
    pub(crate) fn start_again(&mut self) -> Result<()> {
        self.process = launch(&self.cli, &self.arguments, &self.log)?;
        self.wait_until_ready()
    }

    /// The end of the log, for an error.
    pub(crate) fn log_tail(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let tail = &lines[lines.len().saturating_sub(LOG_TAIL_LINES)..];
        format!("{} ends with:\n{}", self.log.display(), tail.join("\n"))
    }

    fn wait_until_ready(&self) -> Result<()> {
        let address = ("127.0.0.1", self.operator_port);
        let is_ready = || {
            http::request(address, "GET /readyz HTTP/1.1", "").is_ok_and(|response| response.status == 200)
        };
        wait_until(START_TIMEOUT, || is_ready() || !self.process.is_running());
        if !is_ready() {
            bail!("the service did not start; {}", self.log_tail());
        }
        Ok(())
    }
}

fn launch(cli: &Cli, arguments: &[String], log: &PathBuf) -> Result<Process> {
    let log = File::options().append(true).open(log)?;
    Process::start(cli.command(arguments).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log))
}
