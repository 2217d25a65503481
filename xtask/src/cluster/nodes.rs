//! One `batchscan serve` process: its life, its death, and what it says of itself. Knows no database but by URL.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use batchscan_testbed::{Process, Signal, ports};

use super::http::Client;
use super::operator::Operator;

/// A node finds its database and reads its keys; on a busy machine that is a matter of seconds.
const READY_LIMIT: Duration = Duration::from_secs(30);
/// Above the service's own limit for draining connections (30 s), so that its limit is the one that acts.
const END_LIMIT: Duration = Duration::from_secs(40);
const POLL: Duration = Duration::from_millis(20);
/// How much of a node's log a failure shows.
const LOG_TAIL_LINES: usize = 20;
/// The counter of reads that were repeated on another database host or connection.
const RETRIES: &str = "batchscan_database_retries_total ";

/// A node. Dropping it ends it, and so does our own end.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) port: u16,
    pub(crate) operator_port: u16,
    operator: Operator,
    page_size: u16,
    log: PathBuf,
    process: Process,
    /// How this process marks the ids of its requests.
    pub(crate) mark: String,
    /// What processes counted that are gone.
    retries_before: u64,
}

impl Node {
    /// Starts a node and waits until it says that it can answer.
    pub(crate) fn start(operator: &Operator, page_size: u16, log: PathBuf) -> Result<Self> {
        let (port, operator_port) = (ports::free()?, ports::free()?);
        File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let process = launch(operator, page_size, port, operator_port, &log)?;
        let operator = operator.clone();
        let mut node = Self {
            port,
            operator_port,
            operator,
            page_size,
            log,
            process,
            mark: String::new(),
            retries_before: 0,
        };
        node.wait_until_ready()?;
        Ok(node)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Where health and metrics are.
    pub(crate) fn operator_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.operator_port)
    }

    /// SIGKILL; when this returns, it is gone.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.retries_before = self.retries();
        self.process.kill().map(drop)
    }

    /// SIGTERM, upon which it has to finish its answers and exit with 0.
    pub(crate) fn stop(&mut self) -> Result<()> {
        self.retries_before = self.retries();
        self.process.signal(Signal::TERM)?;
        let status = self.process.wait(END_LIMIT).with_context(|| self.log_tail())?;
        if status.code() != Some(0) {
            bail!("the node did not exit with 0 after SIGTERM: {status}\n{}", self.log_tail());
        }
        Ok(())
    }

    /// Starts it after its end, on the same ports.
    pub(crate) fn start_again(&mut self) -> Result<()> {
        self.process = launch(&self.operator, self.page_size, self.port, self.operator_port, &self.log)?;
        self.wait_until_ready()
    }

    /// How many reads were repeated on another database host or connection since the first start.
    pub(crate) fn retries(&self) -> u64 {
        let metrics = Client::new(&self.operator_url()).text("/metrics").unwrap_or_default();
        self.retries_before + retries_in(&metrics)
    }

    /// The end of its log, for a failure.
    pub(crate) fn log_tail(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let tail = &lines[lines.len().saturating_sub(LOG_TAIL_LINES)..];
        format!("the node's log, {}, ends in:\n{}", self.log.display(), tail.join("\n"))
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let client = Client::new(&self.operator_url());
        let deadline = Instant::now() + READY_LIMIT;
        while client.text("/readyz").is_none() {
            if !self.process.is_running() {
                bail!("a node ended before it was ready; {}", self.log_tail());
            }
            if Instant::now() > deadline {
                bail!("a node was not ready after {READY_LIMIT:?}; {}", self.log_tail());
            }
            sleep(POLL);
        }
        self.mark = client.process_mark().context("a node gives its requests no id")?;
        Ok(())
    }
}

fn launch(operator: &Operator, page_size: u16, port: u16, operator_port: u16, log: &Path) -> Result<Process> {
    let mut command = operator.command(&["serve", "--page-size", &page_size.to_string()]);
    command.args(["--listen", &format!("127.0.0.1:{port}")]);
    command.args(["--operator-listen", &format!("127.0.0.1:{operator_port}")]);
    let log = File::options().append(true).open(log)?;
    Process::start(command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log))
}

fn retries_in(metrics: &str) -> u64 {
    let value = metrics.lines().find_map(|line| line.strip_prefix(RETRIES));
    value.and_then(|value| value.trim().parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_reads_are_read_from_the_metrics() {
        let metrics = "# TYPE batchscan_database_retries counter\nbatchscan_database_retries_total 17\n";
        assert_eq!(retries_in(metrics), 17);
        assert_eq!(retries_in(""), 0);
    }
}
