//! Times what is no request: importing a file, and pulling everything into one. Both cores are free for it.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use batchscan_testbed::Process;

use super::Plan;
use super::contenders::Contender;
use super::contenders::server::{Place, Server};
use super::databases::{self, ORGANISATION};
use super::gauge::Tree;
use super::stock::Stock;
use super::works::{Data, Work};
use crate::cluster::operator::Operator;
use crate::process;

/// A million batches on a slow disk.
const COMMAND_LIMIT: Duration = Duration::from_secs(300);
const POLL: Duration = Duration::from_millis(5);
const MIB: f64 = (1 << 20) as f64;
/// The database into which PostgreSQL's import goes.
const IMPORTED: &str = "imported";

/// One timing of a command.
#[derive(Clone, Debug)]
pub(crate) struct BulkFigure {
    pub(crate) what: String,
    pub(crate) batches: usize,
    pub(crate) secs: f64,
    /// Not known of what others ran for us.
    pub(crate) peak_mib: Option<f64>,
}

impl BulkFigure {
    pub(crate) fn rate(&self) -> f64 {
        self.batches as f64 / self.secs
    }
}

/// Times every command that the plan wants.
pub(crate) fn run(stock: &Stock, plan: &Plan) -> Result<Vec<BulkFigure>> {
    stock.cores.both_sides(std::process::id())?;
    if let Some(pid) = stock.postgres.as_ref().and_then(batchscan_testbed::Postgres::pid) {
        stock.cores.both_sides(pid)?;
    }
    let sizes: &[Data] = if plan.pace.is_quick { &[Data::Usual] } else { &[Data::Usual, Data::Large] };
    let mut figures = Vec::new();
    for data in sizes {
        if plan.wants(Work::Import) {
            figures.extend(imports(stock, *data)?);
        }
        if plan.wants(Work::Pull) && plan.has(Contender::Batchscan) {
            figures.push(pull(stock, *data)?);
        }
    }
    figures.iter().for_each(tell);
    stock.cores.load_side(std::process::id())?;
    Ok(figures)
}

/// Ours into each store, and the loader of the peers' data, which does less: it trusts its input.
fn imports(stock: &Stock, data: Data) -> Result<Vec<BulkFigure>> {
    let path = stock.folder.join("import.db");
    databases::remove(&path)?;
    let sqlite = Operator::new(&stock.executable, format!("sqlite:{}", path.display()));
    let mut figures = vec![import(stock, &sqlite, data, "batchscan import, SQLite")?];
    databases::remove(&path)?;
    if let Some(postgres) = &stock.postgres {
        let name = format!("{IMPORTED}_{}", data.batches());
        postgres.create_database(&name)?;
        let operator = Operator::new(&stock.executable, postgres.url(&name));
        figures.push(import(stock, &operator, data, "batchscan import, PostgreSQL")?);
    }
    let loads = stock.peers.iter().flat_map(|peers| &peers.loads).filter(|load| load.data == data);
    figures.extend(loads.map(|load| BulkFigure {
        what: format!("the peers' loader in Python, {}", load.into),
        batches: data.batches(),
        secs: load.took.as_secs_f64(),
        peak_mib: None,
    }));
    Ok(figures)
}

fn import(stock: &Stock, operator: &Operator, data: Data, what: &str) -> Result<BulkFigure> {
    operator.add_organisation(ORGANISATION)?;
    let mut command = operator.command(&["import", "--org", ORGANISATION]);
    let (took, peak_mib) = timed(command.arg(stock.source.file(data)))?;
    let what = what.to_owned();
    Ok(BulkFigure { what, batches: data.batches(), secs: took.as_secs_f64(), peak_mib: Some(peak_mib) })
}

/// Pulls into CSV from a service on the same machine, and counts the lines.
fn pull(stock: &Stock, data: Data) -> Result<BulkFigure> {
    let server = Server::start(stock, Contender::Batchscan, data, Place::BothCores)?;
    let path = stock.folder.join("pulled.csv");
    let mut command = Command::new(&stock.executable);
    process::without_settings(&mut command).args([
        "pull",
        "--force",
        "--client-id",
        &server.credential.client_id,
    ]);
    command.args(["--url", &format!("http://127.0.0.1:{}", server.port)]).arg("--output").arg(&path);
    let (took, peak_mib) = timed(command.env("BATCHSCAN_CLIENT_SECRET", &server.credential.client_secret))?;
    server.end()?;
    require_lines(&path, data.batches() + 1)?;
    let what = "batchscan pull, CSV".to_owned();
    Ok(BulkFigure { what, batches: data.batches(), secs: took.as_secs_f64(), peak_mib: Some(peak_mib) })
}

/// The header and a line for each batch; no text of the demo holds a line's end.
fn require_lines(path: &Path, expected: usize) -> Result<()> {
    use std::io::BufRead;
    let lines = std::io::BufReader::new(std::fs::File::open(path)?).split(b'\n').count();
    if lines != expected {
        bail!("{lines} lines were pulled instead of {expected}");
    }
    Ok(std::fs::remove_file(path)?)
}

/// How long a command takes, and the peak of its memory in MiB.
fn timed(command: &mut Command) -> Result<(Duration, f64)> {
    let line = process::command_line(command);
    let begun = Instant::now();
    let mut running =
        Process::start(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()))?;
    let tree = Tree::of(running.pid());
    let mut peak = 0;
    while running.is_running() {
        peak = peak.max(tree.peak_bytes());
        if begun.elapsed() > COMMAND_LIMIT {
            bail!("`{line}` still runs after {COMMAND_LIMIT:?}");
        }
        sleep(POLL);
    }
    let took = begun.elapsed();
    let status = running.wait(COMMAND_LIMIT).with_context(|| format!("`{line}` did not end"))?;
    if !status.success() {
        bail!("`{line}` failed: {status}");
    }
    Ok((took, peak as f64 / MIB))
}

fn tell(figure: &BulkFigure) {
    let peak = figure.peak_mib.map(|mib| format!(", {mib:.0} MiB")).unwrap_or_default();
    println!(
        "    {}: {} batches in {:.2} s, {:.0}/s{peak}",
        figure.what,
        figure.batches,
        figure.secs,
        figure.rate()
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_timed_and_its_failure_is_told() {
        let (took, peak_mib) = timed(Command::new("sleep").arg("0.05")).unwrap();
        assert!(took >= Duration::from_millis(50) && peak_mib > 0.0);
        let error = timed(&mut Command::new("false")).unwrap_err().to_string();
        assert_eq!(error, "`false` failed: exit status: 1");
    }
}
