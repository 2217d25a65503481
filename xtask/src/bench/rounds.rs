//! Times works in rounds: every contender in each, forwards and backwards in turn, so that noise hits all alike.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::Plan;
use super::check::check;
use super::contenders::server::{Place, Server};
use super::contenders::{Contender, Question};
use super::exchange::Connection;
use super::figures::{Figure, Figures, Key};
use super::load::{Pressure, filled};
use super::stock::Stock;
use super::works::{Data, REQUESTS, Work};

/// Connections where nothing else is said: enough to keep one core busy, and few enough that latency is mostly work.
pub(crate) const CONNECTIONS: u32 = 16;
/// The works that are also timed by the number of connections, and by whom.
const BY_CONNECTIONS: [Work; 2] = [Work::PageCached, Work::PageUncached];
const CONTENDERS_BY_CONNECTIONS: [Contender; 3] =
    [Contender::Batchscan, Contender::FastApi, Contender::Nginx];
const MIB: f64 = (1 << 20) as f64;

/// Times every work of every contender.
pub(crate) fn requests(stock: &Stock, plan: &Plan, figures: &mut Figures) -> Result<()> {
    for round in 0..plan.pace.rounds {
        for contender in in_turn(&plan.contenders, round) {
            let works = REQUESTS.into_iter().filter(|work| plan.wants(*work) && contender.can(*work));
            let (in_turn, others): (Vec<Work>, Vec<Work>) = works.partition(|work| work.is_in_turn());
            if !others.is_empty() {
                let server = Server::start(stock, contender, Data::Usual, Place::OneCore)?;
                works_of(server, &others, round, stock, plan, figures)?;
            }
            if !in_turn.is_empty() {
                let server = Server::start_without_cache(stock, contender, Data::Usual, Place::OneCore)?;
                works_of(server, &in_turn, round, stock, plan, figures)?;
            }
        }
    }
    Ok(())
}

/// Times works of one contender, and ends it.
fn works_of(
    server: Server,
    works: &[Work],
    round: usize,
    stock: &Stock,
    plan: &Plan,
    figures: &mut Figures,
) -> Result<()> {
    for work in works {
        let contender = server.contender;
        let key = Key { work: *work, data: Data::Usual, connections: CONNECTIONS, contender };
        let question = server.question(*work, &stock.sample).with_context(|| server.log_tail())?;
        let figure = timed(stock, plan, &server, key, &question)?;
        figures.add(key, round, figure);
        tell(round, key, &figure);
    }
    server.end()
}

/// Times pages by the number of connections.
pub(crate) fn connections(stock: &Stock, plan: &Plan, figures: &mut Figures) -> Result<()> {
    let contenders: Vec<Contender> =
        CONTENDERS_BY_CONNECTIONS.into_iter().filter(|contender| plan.has(*contender)).collect();
    for round in 0..plan.pace.connection_rounds {
        for contender in in_turn(&contenders, round) {
            let server = Server::start(stock, contender, Data::Usual, Place::OneCore)?;
            for work in BY_CONNECTIONS.into_iter().filter(|work| contender.can(*work)) {
                let question = server.question(work, &stock.sample)?;
                for connections in plan.pace.connections {
                    let key = Key { work, data: Data::Usual, connections: *connections, contender };
                    let figure = timed(stock, plan, &server, key, &question)?;
                    // Apart from those of all contenders: other rounds, other neighbours.
                    figures.add(key, round, figure);
                    tell(round, key, &figure);
                }
            }
            server.end()?;
        }
    }
    Ok(())
}

/// Checks, warms up and times one work.
pub(crate) fn timed(
    stock: &Stock,
    plan: &Plan,
    server: &Server,
    key: Key,
    question: &Question,
) -> Result<Figure> {
    let least_bytes = check(server, key.work, question, &stock.sample)?;
    let warm_rate = warm_up(stock, server, question, plan.pace.warm_up)?;
    server.tree().settle()?;
    server.tree().forget_peak()?;
    let before = Costs::now(server)?;
    let pressure = Pressure { connections: key.connections, secs: plan.pace.secs_at(warm_rate) };
    let outcome = stock
        .wrk
        .run(server.port, &question.requests(), pressure, least_bytes)
        .with_context(|| format!("{} fails at {}", server.contender.title(), key.work.name()))
        .with_context(|| server.log_tail())?;
    let after = Costs::now(server)?;
    require_uncached(key.work, &before, &after, outcome.requests)?;
    let each = |cpu: Duration| cpu.as_secs_f64() * 1e3 / outcome.requests as f64;
    Ok(Figure {
        rate: outcome.rate(),
        p50_ms: outcome.p50_us as f64 / 1e3,
        p99_ms: outcome.p99_us as f64 / 1e3,
        cpu_ms: each(after.cpu.saturating_sub(before.cpu)),
        database_cpu_ms: before
            .database
            .zip(after.database)
            .map(|(before, after)| each(after.saturating_sub(before))),
        peak_mib: server.tree().peak_bytes() as f64 / MIB,
    })
}

/// One line for whoever waits.
pub(crate) fn tell(round: usize, key: Key, figure: &Figure) {
    println!(
        "{:>2}  {:<22} {:<14} {:>9} batches {:>4} connections {:>10.1}/s  p50 {:>8.2} ms  p99 {:>8.2} ms  CPU {:>8.3} ms  {:>6.0} MiB",
        round + 1,
        key.contender.title(),
        key.work.name(),
        key.data.batches(),
        key.connections,
        figure.rate,
        figure.p50_ms,
        figure.p99_ms,
        figure.cpu_ms,
        figure.peak_mib,
    );
}

/// Forwards in even rounds, backwards in odd ones.
pub(crate) fn in_turn<T: Clone>(items: &[T], round: usize) -> Vec<T> {
    let mut items = items.to_vec();
    if round % 2 == 1 {
        items.reverse();
    }
    items
}

/// What a server has cost so far.
struct Costs {
    cpu: Duration,
    database: Option<Duration>,
    cache_hits: Option<u64>,
}

impl Costs {
    fn now(server: &Server) -> Result<Self> {
        let cache_hits = server.cache_hits()?;
        Ok(Self {
            cpu: server.tree().cpu(),
            database: server.database.map(super::gauge::Tree::cpu),
            cache_hits,
        })
    }
}

/// A work that claims to be uncached must have had no help from a cache.
fn require_uncached(work: Work, before: &Costs, after: &Costs, requests: u64) -> Result<()> {
    let (Some(before), Some(after)) = (before.cache_hits, after.cache_hits) else { return Ok(()) };
    let hits = after - before;
    if work.is_uncached() && hits > 0 {
        bail!("{} of {requests} answers of {} came out of the cache", hits, work.name());
    }
    Ok(())
}

/// A short load over some connections, so that pools are full and files are read. Gives its rate.
fn warm_up(stock: &Stock, server: &Server, question: &Question, time: Duration) -> Result<f64> {
    let span = stock.wrk.span();
    let begun = Instant::now();
    let answers = std::thread::scope(|scope| -> Result<u64> {
        let warm = |thread| warm_one(server, question, span + thread, begun + time);
        let threads: Vec<_> =
            (0..u64::from(CONNECTIONS)).map(|thread| scope.spawn(move || warm(thread))).collect();
        let counts =
            threads.into_iter().map(|thread| thread.join().map_err(|_| anyhow::anyhow!("a panic"))?);
        counts.sum()
    })?;
    Ok(answers as f64 / begun.elapsed().as_secs_f64())
}

fn warm_one(server: &Server, question: &Question, first: u64, deadline: Instant) -> Result<u64> {
    let mut connection = Connection::open(server.port)?;
    let mut answers = 0;
    while Instant::now() < deadline || answers == 0 {
        let n = first + answers * u64::from(CONNECTIONS);
        let place = usize::try_from(n)? % question.asked.len();
        connection.ask(&filled(&question.asked[place].request, n))?;
        answers += 1;
    }
    Ok(answers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(cache_hits: Option<u64>) -> Costs {
        Costs { cpu: Duration::ZERO, database: None, cache_hits }
    }

    #[test]
    fn a_hit_fails_a_work_that_claims_to_be_uncached() {
        let hits = |work| require_uncached(work, &costs(Some(3)), &costs(Some(4)), 9);
        assert!(hits(Work::PageUncached).is_err());
        assert!(hits(Work::PageCached).is_ok());
        assert!(hits(Work::PageDeep).is_err());
        assert!(require_uncached(Work::PageUncached, &costs(Some(3)), &costs(Some(3)), 9).is_ok());
        assert!(require_uncached(Work::PageUncached, &costs(None), &costs(None), 9).is_ok());
    }

    #[test]
    fn every_other_round_goes_backwards() {
        assert_eq!(in_turn(&[1, 2, 3], 0), [1, 2, 3]);
        assert_eq!(in_turn(&[1, 2, 3], 1), [3, 2, 1]);
    }
}
