//! Times a mix of requests of many organisations, with and without an import beside them.
//!
//! Nothing is kept to a core here: the service, its load and the import share the machine, as they do in life.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Deserialize;

use super::Plan;
use super::contenders::Contender;
use super::contenders::interface::{FIRST_PAGE, FIRST_PAGE_COUNTING, etag_of};
use super::contenders::server::{Place, Server};
use super::data::{Dice, WINDOW_BATCHES};
use super::databases::Database;
use super::exchange::Request;
use super::load::{Outcome, Pressure};
use super::stock::Stock;
use super::works::Data;
use crate::process;

/// As the target says.
pub(crate) const CONNECTIONS: u32 = 64;
/// Requests that are sent in turn, thrown once and the same in every run.
const REQUESTS: usize = 20_000;
/// The organisation that is written to; nobody reads it meanwhile.
const WRITTEN: &str = "Busy Valley Nursery";
/// Until the import has read its file's beginning and holds its transaction.
const IMPORT_HEAD_START: Duration = Duration::from_millis(300);

/// Of a hundred requests: the first page as it is, the first page that one has already, twenty batches, the first page
/// with a question that nobody has asked before, and the first page with gzip.
const MIX: [(Kind, usize); 5] =
    [(Kind::First, 40), (Kind::Unchanged, 30), (Kind::Window, 20), (Kind::New, 5), (Kind::Gzip, 5)];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    First,
    Unchanged,
    Window,
    New,
    Gzip,
}

/// One round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MixedFigure {
    pub(crate) alone: Outcome,
    pub(crate) beside_import: Outcome,
    /// Batches that were written meanwhile, a second.
    pub(crate) written_per_sec: f64,
}

impl MixedFigure {
    /// How much longer the slowest in a hundred wait.
    pub(crate) fn p99_ratio(&self) -> f64 {
        self.beside_import.p99_us as f64 / self.alone.p99_us as f64
    }
}

/// Times the mix in rounds: alone and beside an import, and the other way round in every other round.
pub(crate) fn run(stock: &Stock, plan: &Plan) -> Result<Vec<MixedFigure>> {
    stock.cores.both_sides(std::process::id())?;
    let database = stock.database(Contender::Batchscan, Data::Many)?.copy(&stock.folder)?;
    let writer = Writer::make(stock, &database)?;
    let server = Server::start_on(stock, &database, Place::BothCores)?;
    let requests = mix(stock, &server)?;
    let pressure = Pressure { connections: CONNECTIONS, secs: plan.pace.mixed_secs };
    let load = || {
        server.tree().settle()?;
        stock.wrk.run(server.port, &requests, pressure, 1)
    };
    load().context("the mix fails")?;
    let mut figures = Vec::new();
    for round in 0..plan.pace.mixed_rounds {
        let (alone, (beside_import, written_per_sec)) = if round % 2 == 0 {
            (load()?, writer.beside(load)?)
        } else {
            let beside = writer.beside(load)?;
            (load()?, beside)
        };
        let figure = MixedFigure { alone, beside_import, written_per_sec };
        tell(round, &figure);
        figures.push(figure);
    }
    server.end()?;
    stock.cores.load_side(std::process::id())?;
    Ok(figures)
}

/// Imports beside the load. The same batches in two files, with names that differ: importing one after the other writes
/// every batch each time.
struct Writer<'a> {
    database: &'a Database,
    files: [PathBuf; 2],
    imports: AtomicUsize,
}

impl<'a> Writer<'a> {
    fn make(stock: &Stock, database: &'a Database) -> Result<Self> {
        let files = ["writer-a.ndjson", "writer-b.ndjson"].map(|name| stock.folder.join(name));
        for (mark, path) in ["A", "B"].into_iter().zip(&files) {
            let mut writer = BufWriter::new(File::create(path)?);
            for line in stock.source.lines(Data::Usual)? {
                let name = format!("\"batch_name\":\"{mark} ");
                writeln!(writer, "{}", line?.replacen("\"batch_name\":\"", &name, 1))?;
            }
            writer.flush()?;
        }
        database.operator.add_organisation(WRITTEN)?;
        let writer = Self { database, files, imports: AtomicUsize::new(0) };
        // What the first import writes is new; all later ones are corrections, alike.
        writer.import()?;
        Ok(writer)
    }

    /// Runs a load while imports follow one another; gives also how many batches a second they wrote.
    fn beside(&self, load: impl Fn() -> Result<Outcome>) -> Result<(Outcome, f64)> {
        let is_over = AtomicBool::new(false);
        let (begun, before) = (Instant::now(), self.imports.load(Ordering::Relaxed));
        let (outcome, took) = std::thread::scope(|scope| -> Result<(Outcome, Duration)> {
            let imports = scope.spawn(|| -> Result<Duration> {
                while !is_over.load(Ordering::Relaxed) {
                    self.import()?;
                }
                Ok(begun.elapsed())
            });
            sleep(IMPORT_HEAD_START);
            let outcome = load();
            is_over.store(true, Ordering::Relaxed);
            let took = imports.join().map_err(|_| anyhow::anyhow!("a panic"))??;
            Ok((outcome?, took))
        })?;
        let imports = self.imports.load(Ordering::Relaxed) - before;
        Ok((outcome, (imports * Data::Usual.batches()) as f64 / took.as_secs_f64()))
    }

    fn import(&self) -> Result<()> {
        let file = &self.files[self.imports.fetch_add(1, Ordering::Relaxed) % 2];
        let mut command = self.database.operator.command(&["import", "--org", WRITTEN]);
        process::stdout_of(command.arg(file)).map(drop).context("the import beside the load failed")
    }
}

/// Requests of all organisations. A few of those ask most, as in life: half of all come from an eighth of them.
fn mix(stock: &Stock, server: &Server) -> Result<Vec<Request>> {
    let mut connection = server.connect()?;
    let mut known = Vec::new();
    let tokens = super::scale::tokens(stock, server)?;
    for (token, windows) in tokens.into_iter().zip(windows(stock)?) {
        let etag = etag_of(&mut connection, &Request::get(FIRST_PAGE).with_token(&token))?;
        known.push(Organisation { token, etag, windows });
    }
    let mut dice = Dice::new(64);
    let thrown = |_| {
        let share = dice.below(1 << 16) as f64 / f64::from(1 << 16);
        let index = (share.powi(3) * known.len() as f64) as usize;
        let organisation = &known[index.min(known.len() - 1)];
        organisation.request(kind(dice.below(100)), &mut dice)
    };
    Ok((0..REQUESTS).map(thrown).collect())
}

/// The query of about twenty batches each, for every organisation in the order in which they were made.
fn windows(stock: &Stock) -> Result<Vec<Vec<String>>> {
    #[derive(Deserialize)]
    struct Created {
        batch_creation_date: String,
    }
    let dates = stock
        .source
        .lines(Data::Large)?
        .step_by(WINDOW_BATCHES)
        .map(|line| Ok(serde_json::from_str::<Created>(&line?)?.batch_creation_date));
    let organisations = stock.database(Contender::Batchscan, Data::Many)?.credentials.len();
    let each = Data::Many.batches() / WINDOW_BATCHES;
    let dates: Vec<String> = dates.take(organisations * each).collect::<Result<_>>()?;
    let query = |pair: &[String]| format!("/v2/batches?start_date={}&end_date={}", pair[0], pair[1]);
    Ok(dates.chunks(each).map(|mine| mine.windows(2).map(query).collect()).collect())
}

/// One who asks.
struct Organisation {
    token: String,
    etag: String,
    windows: Vec<String>,
}

impl Organisation {
    fn request(&self, kind: Kind, dice: &mut Dice) -> Request {
        let get = |path: &str| Request::get(path).with_token(&self.token);
        match kind {
            Kind::First => get(FIRST_PAGE),
            Kind::Unchanged => get(FIRST_PAGE).with("if-none-match", self.etag.clone()),
            Kind::New => get(FIRST_PAGE_COUNTING),
            Kind::Gzip => get(FIRST_PAGE).with("accept-encoding", "gzip"),
            Kind::Window => get(&self.windows[dice.below(self.windows.len())]),
        }
    }
}

fn kind(thrown: usize) -> Kind {
    let mut below = 0;
    let hit = MIX.iter().find(|(_, share)| {
        below += share;
        thrown < below
    });
    hit.map_or(Kind::First, |(kind, _)| *kind)
}

fn tell(round: usize, figure: &MixedFigure) {
    println!(
        "{:>2}  mixed: alone {:>8.0}/s p99 {:>7.2} ms; beside an import of {:>7.0} batches/s {:>8.0}/s p99 {:>7.2} ms: {:.2} times",
        round + 1,
        figure.alone.rate(),
        figure.alone.p99_us as f64 / 1e3,
        figure.written_per_sec,
        figure.beside_import.rate(),
        figure.beside_import.p99_us as f64 / 1e3,
        figure.p99_ratio(),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mix_is_a_hundred_and_every_kind_has_its_share() {
        assert_eq!(MIX.iter().map(|(_, share)| share).sum::<usize>(), 100);
        for (known, share) in MIX {
            assert_eq!((0..100).filter(|thrown| kind(*thrown) == known).count(), share);
        }
    }
}
