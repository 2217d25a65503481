//! Times v1: everything in one answer, to one reader and to four at once.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, sink};
use std::path::Path;
use std::time::{Duration, Instant};

use super::Plan;
use super::contenders::Contender;
use super::contenders::server::{Place, Server};
use super::data::Source;
use super::exchange::Arrival;
use super::figures::Spread;
use super::rounds::in_turn;
use super::stock::Stock;
use super::works::Data;
use anyhow::{Context, Result, bail, ensure};

/// Readers at once.
pub(crate) const STREAMS: [usize; 2] = [1, 4];
/// Rounds of the usual data in which slow contenders take part.
const SLOW_ROUNDS: usize = 2;
const MIB: f64 = (1 << 20) as f64;

/// What was measured, and on what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StreamKey {
    pub(crate) data: Data,
    pub(crate) streams: usize,
    pub(crate) contender: Contender,
}

/// One timing of readers that began together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct StreamFigure {
    /// Until the last of them had a byte of its body.
    pub(crate) first_byte_ms: f64,
    /// Until the last of them had everything.
    pub(crate) total_secs: f64,
    /// Of all together.
    pub(crate) mib_per_sec: f64,
    pub(crate) above_idle_mib: f64,
    pub(crate) cpu_secs: f64,
}

/// All timings, by what was measured and by round.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamFigures(pub(crate) BTreeMap<StreamKey, BTreeMap<usize, StreamFigure>>);

impl StreamFigures {
    /// One value of all rounds.
    pub(crate) fn spread(&self, key: StreamKey, value: impl Fn(&StreamFigure) -> f64) -> Option<Spread> {
        Spread::of(self.0.get(&key)?.values().map(value))
    }

    /// How many times the throughput of another, round by round.
    pub(crate) fn times_faster(&self, one: StreamKey, other: StreamKey) -> Option<Spread> {
        let (one, other) = (self.0.get(&one)?, self.0.get(&other)?);
        let ratio = |(round, figure): (&usize, &StreamFigure)| {
            Some(figure.mib_per_sec / other.get(round)?.mib_per_sec)
        };
        Spread::of(one.iter().filter_map(ratio))
    }
}

/// Times every contender that gives everything at once.
pub(crate) fn run(stock: &Stock, plan: &Plan, figures: &mut StreamFigures) -> Result<()> {
    let sizes: &[Data] = if plan.pace.is_quick { &[Data::Usual] } else { &[Data::Usual, Data::Large] };
    for data in sizes {
        for round in 0..plan.pace.stream_rounds {
            let asked = plan.contenders.iter().copied().filter(|one| gives(*one, *data, round));
            for contender in in_turn(&asked.collect::<Vec<_>>(), round) {
                for streams in STREAMS.into_iter().filter(|streams| takes(contender, *data, *streams, plan)) {
                    // A new one for each: what an answer leaves in memory is not the next one's.
                    let server = Server::start(stock, contender, *data, Place::OneCore)?;
                    let key = StreamKey { data: *data, streams, contender };
                    let figure = timed(&server, streams).with_context(|| server.log_tail())?;
                    // Not before: it would fill the memory whose peak is measured. What is wrong still ends the run.
                    if round == 0 && streams == 1 {
                        check(stock, &server, *data)
                            .with_context(|| format!("v1 of {}", contender.title()))?;
                    }
                    tell(round, key, &figure);
                    figures.0.entry(key).or_default().insert(round, figure);
                    server.end()?;
                }
            }
        }
    }
    Ok(())
}

/// Whether a contender gives so much at once in a round. It takes the slow ones seconds, and a million of batches a minute
/// and gigabytes: they do it less often.
fn gives(contender: Contender, data: Data, round: usize) -> bool {
    match contender {
        Contender::Batchscan | Contender::Nginx => true,
        Contender::BatchscanPostgres => data == Data::Usual,
        _ => round < if data == Data::Usual { SLOW_ROUNDS } else { 1 },
    }
}

fn takes(contender: Contender, data: Data, streams: usize, plan: &Plan) -> bool {
    let is_quick_to_answer = matches!(
        contender,
        Contender::Batchscan | Contender::BatchscanPostgres | Contender::Nginx | Contender::PlainRust
    );
    streams == 1
        || (is_quick_to_answer && (data == Data::Usual || contender != Contender::PlainRust))
        || (!plan.pace.is_quick && data == Data::Usual)
}

fn timed(server: &Server, streams: usize) -> Result<StreamFigure> {
    // The way is walked once before, without anything to carry.
    ensure!(server.connect()?.ask(&server.nothing())?.head.status == 200, "nothing is not answered with 200");
    server.tree().settle()?;
    let idle = server.tree().resident_bytes();
    server.tree().forget_peak()?;
    let cpu = server.tree().cpu();
    let begun = Instant::now();
    let arrivals = read_at_once(server, streams)?;
    let total = begun.elapsed();
    let bytes: u64 = arrivals.iter().map(|arrival| arrival.body_bytes).sum();
    let first_byte = arrivals.iter().map(|arrival| arrival.first_byte).max().unwrap_or(Duration::ZERO);
    if arrivals
        .iter()
        .any(|arrival| arrival.head.status != 200 || arrival.body_bytes != arrivals[0].body_bytes)
    {
        bail!("the answers differ: {arrivals:?}");
    }
    Ok(StreamFigure {
        first_byte_ms: first_byte.as_secs_f64() * 1e3,
        total_secs: total.as_secs_f64(),
        mib_per_sec: bytes as f64 / MIB / total.as_secs_f64(),
        above_idle_mib: server.tree().peak_bytes().saturating_sub(idle) as f64 / MIB,
        cpu_secs: server.tree().cpu().saturating_sub(cpu).as_secs_f64(),
    })
}

fn read_at_once(server: &Server, streams: usize) -> Result<Vec<Arrival>> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..streams)
            .map(|_| scope.spawn(|| server.connect()?.pour(&server.everything(), &mut sink())))
            .collect();
        threads.into_iter().map(|thread| thread.join().map_err(|_| anyhow::anyhow!("a panic"))?).collect()
    })
}

/// Reads the answer into a file and holds it against the data: by its bytes where it is ours, else by the ids.
fn check(stock: &Stock, server: &Server, data: Data) -> Result<()> {
    let path = stock.folder.join("everything.json");
    let arrival = server.connect()?.pour(&server.everything(), &mut File::create(&path)?)?;
    ensure!(arrival.head.status == 200, "{} instead of 200", arrival.head.status);
    if server.contender.is_ours() || server.contender == Contender::Nginx {
        require_bytes(&path, &stock.source, data)?;
    } else {
        require_ids(&path, &stock.source, data)?;
    }
    Ok(std::fs::remove_file(path)?)
}

/// An array with the lines of the data, and nothing between them but commas.
fn require_bytes(path: &Path, source: &Source, data: Data) -> Result<()> {
    let mut body = BufReader::with_capacity(1 << 20, File::open(path)?);
    let mut found = Vec::new();
    for (index, line) in source.lines(data)?.enumerate() {
        let expected = format!("{}{}", if index == 0 { '[' } else { ',' }, line?);
        found.resize(expected.len(), 0);
        body.read_exact(&mut found).with_context(|| format!("it ends before batch {index}"))?;
        ensure!(found == expected.as_bytes(), "batch {index} is another");
    }
    let mut rest = Vec::new();
    body.read_to_end(&mut rest)?;
    ensure!(rest == b"]", "something follows the last batch");
    Ok(())
}

/// An object for each line of the data, with the same id. Found by its name and not by a parser: a million batches are
/// read in seconds. That the values are right was checked on pages.
fn require_ids(path: &Path, source: &Source, data: Data) -> Result<()> {
    let body = BufReader::with_capacity(1 << 20, File::open(path)?);
    let mut lines = source.lines(data)?;
    for object in body.split(b'{') {
        let object = object?;
        let Some(found) = id_in(&object) else { continue };
        let line = lines.next().context("more batches than there are")??;
        ensure!(Some(found) == id_in(line.as_bytes()), "another batch where {line} should be");
    }
    ensure!(lines.next().is_none(), "it ends too early");
    Ok(())
}

/// The text of the member `batch_id`.
fn id_in(object: &[u8]) -> Option<&[u8]> {
    const NAME: &[u8] = b"\"batch_id\"";
    let place = object.windows(NAME.len()).position(|window| window == NAME)?;
    let value = object[place + NAME.len()..].trim_ascii_start().strip_prefix(b":")?;
    let text = value.trim_ascii_start().strip_prefix(b"\"")?;
    text.split(|byte| *byte == b'"').next()
}

fn tell(round: usize, key: StreamKey, figure: &StreamFigure) {
    println!(
        "{:>2}  {:<22} v1 of {:>9} batches, {} streams: first byte {:>8.2} ms, all in {:>6.2} s, {:>7.0} MiB/s, {:>6.0} MiB above idle",
        round + 1,
        key.contender.title(),
        key.data.batches(),
        key.streams,
        figure.first_byte_ms,
        figure.total_secs,
        figure.mib_per_sec,
        figure.above_idle_mib,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_found_by_its_name() {
        assert_eq!(id_in(br#""batch_id":"a-1","batch_name":"x"}"#), Some(b"a-1".as_slice()));
        assert_eq!(id_in(br#""warnings": 0, "batch_id": "a", "z": 1}, "#), Some(b"a".as_slice()));
        assert_eq!(id_in(br#""batch_name":"x"}"#), None);
        assert_eq!(id_in(b"["), None);
    }
}
