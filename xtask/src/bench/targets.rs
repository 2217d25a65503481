//! What the figures must show: the table of targets as data, and the verdict on each. Pure.

use super::contenders::Contender;
use super::figures::{Figures, Key, Spread};
use super::mixed::MixedFigure;
use super::report::number;
use super::rounds::CONNECTIONS;
use super::streams::{StreamFigures, StreamKey};
use super::works::{Data, REQUESTS, Work};

/// All that was measured.
#[derive(Debug, Default)]
pub(crate) struct Results {
    pub(crate) figures: Figures,
    /// Apart from the others: other rounds, other neighbours.
    pub(crate) by_connections: Figures,
    pub(crate) streams: StreamFigures,
    pub(crate) mixed: Vec<MixedFigure>,
    pub(crate) bulk: Vec<super::bulk::BulkFigure>,
}

/// A row of the table.
pub(crate) struct Target {
    pub(crate) work: &'static str,
    pub(crate) against: &'static str,
    pub(crate) better: Better,
    pub(crate) goal: f64,
    pub(crate) least: f64,
    pub(crate) unit: &'static str,
    measure: fn(&Results) -> Option<Measured>,
}

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Better {
    More,
    Less,
}

/// What came out for a row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Measured {
    pub(crate) spread: Spread,
    /// The same ratio by the CPU time of the servers, which does not mind what else the machine does.
    pub(crate) by_cpu: Option<f64>,
    pub(crate) note: String,
}

/// How a row ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Verdict {
    GoalMet,
    Acceptable,
    /// By this share of what would have been acceptable.
    Missed(f64),
    NotMeasured,
}

/// The table, in the order in which it was agreed.
pub(crate) const TARGETS: [Target; 18] = [
    more("v2 page uncached, SQLite", "FastAPI", 60.0, 45.0, |r| r.beside(Work::PageUncached, FAST_API_PAGE)),
    Target {
        measure: |r| r.ratio(usual(Contender::BatchscanPostgres, Work::PageUncached), FAST_API_PAGE),
        ..more("v2 page uncached, PostgreSQL", "FastAPI", 14.0, 10.0, |_| None)
    },
    more("v2 page cached", "FastAPI", 150.0, 120.0, |r| r.beside(Work::PageCached, FAST_API_PAGE)),
    more("v2 page cached", "nginx, static file", 0.95, 0.8, |r| {
        r.beside(Work::PageCached, usual(Contender::Nginx, Work::PageCached))
    }),
    more("v2 page gzip, uncached", "FastAPI, plain page", 300.0, 100.0, |r| {
        let first = r.beside(Work::Gzip, FAST_API_PAGE)?;
        let anywhere = r.beside(Work::GzipAnywhere, FAST_API_PAGE)?;
        Some(first.noting(format!(
            "the first page, all of it kept compressed; {}× for pages from anywhere, whose edges are not",
            number(anywhere.spread.median)
        )))
    }),
    more("conditional request, unchanged", "FastAPI, plain page", 1_000.0, 600.0, |r| {
        r.beside(Work::Conditional, FAST_API_PAGE)
    }),
    more("small window of 20", "FastAPI", 80.0, 50.0, |r| {
        r.beside(Work::Window, usual(Contender::FastApi, Work::Window))
    }),
    more("auth", "FastAPI", 24.0, 18.0, |r| r.beside(Work::Auth, usual(Contender::FastApi, Work::Auth))),
    less("deep page, cost", "first page", 1.0, 1.1, "×", |r| {
        r.ratio(usual(Contender::Batchscan, Work::PageFirst), usual(Contender::Batchscan, Work::PageDeep))
    }),
    less("page at 1,000,000 batches, cost", "at 10,000", 1.0, 1.15, "×", |r| {
        r.ratio(scaled(Data::Small), scaled(Data::Large))
    }),
    // Like with like: both are asked for a thousand pages in turn, which no cache of a processor or of SQLite holds.
    less("page at 1,000 organisations, cost", "at 1, as many of its pages", 1.0, 1.15, "×", |r| {
        let measured = r.ratio(scaled(Data::Anywhere), scaled(Data::Many))?;
        let first = r.ratio(scaled(Data::Large), scaled(Data::Many))?;
        Some(measured.noting(format!(
            "{:.2}× its first page again and again, which memory close to the processor holds",
            first.spread.median
        )))
    }),
    less("v1 of 1,000,000: first byte", "–", 1.0, 10.0, "ms", |r| {
        r.stream(1, |figure| figure.first_byte_ms)
    }),
    less("v1 of 1,000,000: memory above idle, 4 streams", "–", 32.0, 64.0, "MiB", |r| {
        r.stream(4, |figure| figure.above_idle_mib)
    }),
    more("v1 of 1,000,000: throughput", "nginx, static file", 0.5, 0.25, |r| {
        r.streams
            .times_faster(streamed(Contender::Batchscan, 1), streamed(Contender::Nginx, 1))
            .map(Measured::plain)
    }),
    less("p99 under 64 connections beside an import", "without it", 1.2, 2.0, "×", |r| {
        Spread::of(r.mixed.iter().map(MixedFigure::p99_ratio)).map(Measured::plain)
    }),
    more("every work that it has", "ROAPI", 1.0, 1.0, |r| r.worst_against(Contender::Roapi)),
    more("every work that it has", "Datasette", 1.0, 1.0, |r| r.worst_against(Contender::Datasette)),
    more("every work that it has", "plain Rust", 1.0, 1.0, |r| r.worst_against(Contender::PlainRust)),
];

/// A server that works less of the time than this was not the limit.
const BUSY_SHARE: f64 = 0.9;

/// The page of those who keep no pages; it costs them the same whoever asked before.
const FAST_API_PAGE: Key = usual(Contender::FastApi, Work::PageUncached);

const fn more(
    work: &'static str,
    against: &'static str,
    goal: f64,
    least: f64,
    measure: fn(&Results) -> Option<Measured>,
) -> Target {
    Target { work, against, better: Better::More, goal, least, unit: "×", measure }
}

const fn less(
    work: &'static str,
    against: &'static str,
    goal: f64,
    least: f64,
    unit: &'static str,
    measure: fn(&Results) -> Option<Measured>,
) -> Target {
    Target { work, against, better: Better::Less, goal, least, unit, measure }
}

const fn usual(contender: Contender, work: Work) -> Key {
    Key { work, data: Data::Usual, connections: CONNECTIONS, contender }
}

fn scaled(data: Data) -> Key {
    Key { work: Work::Scale, data, connections: CONNECTIONS, contender: Contender::Batchscan }
}

fn streamed(contender: Contender, streams: usize) -> StreamKey {
    StreamKey { data: Data::Large, streams, contender }
}

impl Target {
    /// What came out, and the verdict on it.
    pub(crate) fn judge(&self, results: &Results) -> (Option<Measured>, Verdict) {
        let measured = (self.measure)(results);
        let verdict =
            measured.as_ref().map_or(Verdict::NotMeasured, |measured| self.verdict(measured.spread.median));
        (measured, verdict)
    }

    /// Whether being ahead is all that is asked.
    pub(crate) fn is_lead(&self) -> bool {
        self.better == Better::More && self.goal == 1.0 && self.least == 1.0
    }

    /// To two digits, as the table has them: what is within a half of the last digit is met.
    fn verdict(&self, median: f64) -> Verdict {
        let rounded = (median * 100.0).round() / 100.0;
        let reaches = |mark: f64| match self.better {
            Better::More => rounded >= mark,
            Better::Less => rounded <= mark,
        };
        match (reaches(self.goal), reaches(self.least)) {
            // To be as fast is not to be ahead.
            (true, _) if !self.is_lead() || median > 1.0 => Verdict::GoalMet,
            (true, _) => Verdict::Missed(0.0),
            (_, true) => Verdict::Acceptable,
            _ => Verdict::Missed((median / self.least - 1.0).abs()),
        }
    }
}

impl Measured {
    fn plain(spread: Spread) -> Self {
        Self { spread, by_cpu: None, note: String::new() }
    }

    fn noting(self, note: String) -> Self {
        let note = if self.note.is_empty() { note } else { format!("{note}; {}", self.note) };
        Self { note, ..self }
    }
}

impl Results {
    fn ratio(&self, one: Key, other: Key) -> Option<Measured> {
        let spread = self.figures.times_faster(one, other)?;
        let cpu = |key| self.figures.middle(key).map(|figure| figure.cpu_ms).filter(|cpu| *cpu > 0.0);
        let by_cpu = cpu(other).zip(cpu(one)).map(|(other, one)| other / one);
        Some(Measured { spread, by_cpu, note: self.limits(one, other) })
    }

    /// Who waited for the load generator rather than the other way round, if anybody did.
    fn limits(&self, one: Key, other: Key) -> String {
        let is_idle = |key: &Key| {
            let busy = self.figures.middle(*key).map(|figure| figure.rate * figure.cpu_ms / 1e3);
            busy.is_some_and(|busy| busy < BUSY_SHARE)
        };
        let idle: Vec<&str> =
            [one, other].iter().filter(|key| is_idle(key)).map(|key| key.contender.title()).collect();
        if idle.is_empty() {
            String::new()
        } else {
            format!("the other core was the limit for {}", idle.join(" and "))
        }
    }

    /// Ours on SQLite, beside another.
    fn beside(&self, work: Work, other: Key) -> Option<Measured> {
        self.ratio(usual(Contender::Batchscan, work), other)
    }

    fn stream(&self, streams: usize, value: fn(&super::streams::StreamFigure) -> f64) -> Option<Measured> {
        self.streams.spread(streamed(Contender::Batchscan, streams), value).map(Measured::plain)
    }

    /// The work in which we are the least ahead of another.
    fn worst_against(&self, other: Contender) -> Option<Measured> {
        let requests = REQUESTS.into_iter().filter_map(|work| {
            let measured = self.beside(work, usual(other, work))?;
            Some(measured.noting(format!("the least is {}", work.name())))
        });
        let streams = self.streams.0.keys().filter(|key| key.contender == other).filter_map(|key| {
            let ours = StreamKey { contender: Contender::Batchscan, ..*key };
            let spread = self.streams.times_faster(ours, *key)?;
            let note = format!(
                "the least is v1 of {} to {} at once",
                number(key.data.batches() as f64),
                key.streams
            );
            Some(Measured::plain(spread).noting(note))
        });
        requests.chain(streams).min_by(|one, other| one.spread.median.total_cmp(&other.spread.median))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::figures::Figure;

    fn figure(rate: f64, cpu_ms: f64) -> Figure {
        Figure { rate, p50_ms: 1.0, p99_ms: 2.0, cpu_ms, database_cpu_ms: None, peak_mib: 9.0 }
    }

    fn target(better: Better, goal: f64, least: f64) -> Target {
        Target { better, ..more("", "", goal, least, |_| None) }
    }

    #[test]
    fn a_verdict_is_met_acceptable_or_missed_by_a_share() {
        let ratio = target(Better::More, 60.0, 45.0);
        assert_eq!(ratio.verdict(60.0), Verdict::GoalMet);
        assert_eq!(ratio.verdict(59.9), Verdict::Acceptable);
        assert_eq!(ratio.verdict(36.0), Verdict::Missed(0.19999999999999996));
        let cost = target(Better::Less, 1.0, 1.1);
        assert_eq!(cost.verdict(1.004), Verdict::GoalMet);
        assert_eq!(cost.verdict(1.05), Verdict::Acceptable);
        assert!(matches!(cost.verdict(1.2), Verdict::Missed(share) if (share - 0.0909).abs() < 0.001));
    }

    #[test]
    fn what_was_not_measured_has_no_verdict() {
        for target in &TARGETS {
            assert_eq!(target.judge(&Results::default()).1, Verdict::NotMeasured, "{}", target.work);
        }
    }

    #[test]
    fn a_ratio_is_held_against_its_row_and_told_by_cpu_time_too() {
        let mut results = Results::default();
        results.figures.add(usual(Contender::Batchscan, Work::PageUncached), 0, figure(2_000.0, 0.5));
        results.figures.add(FAST_API_PAGE, 0, figure(40.0, 25.0));
        let (measured, verdict) = TARGETS[0].judge(&results);
        assert_eq!(measured.unwrap().by_cpu, Some(50.0));
        assert_eq!(verdict, Verdict::Acceptable);
        assert_eq!(TARGETS[1].judge(&results).1, Verdict::NotMeasured);
    }

    #[test]
    fn the_least_lead_over_a_peer_counts() {
        let mut results = Results::default();
        for (work, ours, theirs) in [(Work::PageUncached, 100.0, 10.0), (Work::Window, 100.0, 50.0)] {
            results.figures.add(usual(Contender::Batchscan, work), 0, figure(ours, 1.0));
            results.figures.add(usual(Contender::Roapi, work), 0, figure(theirs, 1.0));
        }
        let measured = results.worst_against(Contender::Roapi).unwrap();
        assert_eq!(measured.spread.median, 2.0);
        assert!(measured.note.starts_with("the least is window"), "{}", measured.note);
    }
}
