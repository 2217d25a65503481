//! A contender that runs: its start, what it is asked, what it costs, its end.

use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use batchscan_testbed::{Postgres, Process, Signal, ports};

use super::{Contender, Question, commands, files, interface, tables};
use crate::bench::data::Sample;
use crate::bench::databases::Database;
use crate::bench::exchange::{Answer, Connection, Request};
use crate::bench::gauge::Tree;
use crate::bench::stock::Stock;
use crate::bench::works::{Data, Work};
use crate::cluster::http::Credential;

/// A server of Python's opens its pool of connections, another reads its whole table; on a busy machine in seconds.
const READY_LIMIT: Duration = Duration::from_secs(60);
const READY_POLL: Duration = Duration::from_millis(20);
/// All have closed their connections by then; whoever has not ended is killed.
const END_LIMIT: Duration = Duration::from_secs(5);
/// More requests than a check makes, and room for more checks than a server sees.
const CHECK_SPAN: u64 = 5_000;
/// How much of a log a failure shows.
const LOG_TAIL_LINES: usize = 20;

/// Which cores a server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    OneCore,
    BothCores,
}

/// A running contender. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) contender: Contender,
    pub(crate) port: u16,
    /// Where batchscan tells its metrics.
    operator_port: Option<u16>,
    /// Batches of the organisation that is asked.
    pub(crate) batches: usize,
    pub(crate) credential: Credential,
    /// Empty where none is needed.
    pub(crate) token: String,
    /// Where requests may count that no other run makes, for questions and for checks.
    pub(crate) span: u64,
    checks: AtomicU64,
    /// The database, where that is a server of its own.
    pub(crate) database: Option<Tree>,
    process: Process,
    log: PathBuf,
}

impl Server {
    /// Starts a contender and waits until it answers.
    pub(crate) fn start(stock: &Stock, contender: Contender, data: Data, place: Place) -> Result<Self> {
        let started = commands::command(stock, contender, data, place)?;
        Self::launch(stock, contender, data, started, stock.credential(contender, data)?)
    }

    /// The same without a page cache: for a few questions that are asked again and again.
    pub(crate) fn start_without_cache(
        stock: &Stock,
        contender: Contender,
        data: Data,
        place: Place,
    ) -> Result<Self> {
        let mut started = commands::command(stock, contender, data, place)?;
        if contender.is_ours() {
            started.command.args(["--cache-mib", "0"]);
        }
        Self::launch(stock, contender, data, started, stock.credential(contender, data)?)
    }

    /// Starts batchscan on a database of many organisations that is not the stock's own.
    pub(crate) fn start_on(stock: &Stock, database: &Database, place: Place) -> Result<Self> {
        let started = commands::batchscan(stock, database, place)?;
        let credential = database.credentials.first().cloned().context("a database without credentials")?;
        Self::launch(stock, Contender::Batchscan, Data::Many, started, credential)
    }

    fn launch(
        stock: &Stock,
        contender: Contender,
        data: Data,
        started: commands::Started,
        credential: Credential,
    ) -> Result<Self> {
        let commands::Started { mut command, port, operator_port } = started;
        let log = stock.folder.join(format!("{}.log", contender.name()));
        let file = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        // Datasette writes a line for each request there, and has no option against it.
        let is_talkative = contender == Contender::Datasette;
        let stdout = if is_talkative { Stdio::null() } else { file.try_clone()?.into() };
        let process = Process::start(command.stdin(Stdio::null()).stdout(stdout).stderr(file))?;
        let database = stock.postgres.as_ref().filter(|_| contender.uses_postgres());
        let database = database.and_then(Postgres::pid).map(Tree::of);
        let (span, checks, batches) = (stock.wrk.span(), stock.wrk.span().into(), data.batches());
        let token = String::new();
        let mut server = Self {
            contender,
            port,
            operator_port,
            batches,
            credential,
            token,
            span,
            checks,
            database,
            process,
            log,
        };
        server.greet().with_context(|| format!("{} does not run", contender.title()))?;
        Ok(server)
    }

    /// A new connection to it.
    pub(crate) fn connect(&self) -> Result<Connection> {
        Connection::open(self.port).with_context(|| self.log_tail())
    }

    /// Where a check may count: every check elsewhere.
    pub(crate) fn next_span(&self) -> u64 {
        self.checks.fetch_add(CHECK_SPAN, Ordering::Relaxed)
    }

    /// Its processes.
    pub(crate) fn tree(&self) -> Tree {
        Tree::of(self.process.pid())
    }

    /// What it is asked for a work.
    pub(crate) fn question(&self, work: Work, sample: &Sample) -> Result<Question> {
        match self.contender {
            Contender::Nginx => files::question(self, work),
            Contender::Datasette | Contender::Roapi => tables::question(self, work, sample),
            _ => interface::question(self, work, sample),
        }
    }

    /// The request for everything at once, where it has one.
    pub(crate) fn everything(&self) -> Request {
        match self.contender {
            Contender::Nginx => Request::get(files::EVERYTHING),
            Contender::Datasette | Contender::Roapi => tables::everything(self.contender),
            _ => Request::get("/v1/batches").with_token(&self.token),
        }
    }

    /// A request on the same way whose answer is small.
    pub(crate) fn nothing(&self) -> Request {
        match self.contender.speaks_interface() {
            true => Request::get("/v1/batches?start_date=2199-01-01T00:00:00Z").with_token(&self.token),
            false => commands::sign_of_life(self.contender),
        }
    }

    /// How often batchscan's page cache has answered; nothing for others.
    pub(crate) fn cache_hits(&self) -> Result<Option<u64>> {
        let Some(port) = self.operator_port else { return Ok(None) };
        let answer = Connection::open(port)?.ask(&Request::get("/metrics"))?;
        let text = String::from_utf8_lossy(&answer.body);
        hits_in(&text).map(Some).context("the metrics do not count hits of the page cache")
    }

    /// Asks it to end; kills it if it does not.
    pub(crate) fn end(mut self) -> Result<()> {
        self.process.signal(Signal::TERM)?;
        if self.process.wait(END_LIMIT).is_err() {
            self.process.kill()?;
        }
        Ok(())
    }

    /// The end of its log, for a failure.
    pub(crate) fn log_tail(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        let tail = &lines[lines.len().saturating_sub(LOG_TAIL_LINES)..];
        format!("the log of {} ends in:\n{}", self.contender.title(), tail.join("\n"))
    }

    /// Waits until it answers, and keeps the token if there is one.
    fn greet(&mut self) -> Result<()> {
        let request = match self.contender.speaks_interface() {
            true => interface::token_request(&self.credential.client_id, &self.credential.client_secret),
            false => commands::sign_of_life(self.contender),
        };
        let deadline = Instant::now() + READY_LIMIT;
        loop {
            if let Some(answer) = self.try_ask(&request).filter(|answer| answer.head.status == 200) {
                self.token = interface::token_in(&answer.body).unwrap_or_default();
                return Ok(());
            }
            if !self.process.is_running() {
                bail!("it ended before it answered; {}", self.log_tail());
            }
            if Instant::now() > deadline {
                bail!("it did not answer within {READY_LIMIT:?}; {}", self.log_tail());
            }
            sleep(READY_POLL);
        }
    }

    fn try_ask(&self, request: &Request) -> Option<Answer> {
        // A port that somebody else listens on in the meantime would not know our credentials.
        ports::is_listening(self.port).then(|| Connection::open(self.port).ok()?.ask(request).ok()).flatten()
    }
}

/// The counter of batchscan's page cache, in the text of its metrics.
fn hits_in(metrics: &str) -> Option<u64> {
    metrics
        .lines()
        .find_map(|line| line.strip_prefix("batchscan_page_cache_hits_total "))?
        .trim()
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hits_are_read_from_the_metrics() {
        let metrics = "# TYPE batchscan_page_cache_hits counter\nbatchscan_page_cache_hits_total 17\n";
        assert_eq!(hits_in(metrics), Some(17));
        assert_eq!(hits_in("batchscan_page_cache_misses_total 3\n"), None);
    }
}
