//! Numbers of a run: what was measured, round by round, and the arithmetic on it. Pure.

use std::collections::BTreeMap;

use super::contenders::Contender;
use super::works::{Data, Work};

/// What was measured, and on what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) work: Work,
    pub(crate) data: Data,
    pub(crate) connections: u32,
    pub(crate) contender: Contender,
}

/// One timing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Figure {
    /// Answers a second.
    pub(crate) rate: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    /// CPU time of the server for an answer.
    pub(crate) cpu_ms: f64,
    /// … and of its database, where that is a server of its own.
    pub(crate) database_cpu_ms: Option<f64>,
    pub(crate) peak_mib: f64,
}

/// The middle of some values, and how far they lie apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

/// All timings, by what was measured; the same round has the same index for all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures(BTreeMap<Key, BTreeMap<usize, Figure>>);

impl Spread {
    /// Of at least one value.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (least, most) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        };
        Some(Self { median, least, most })
    }
}

impl Figures {
    pub(crate) fn add(&mut self, key: Key, round: usize, figure: Figure) {
        self.0.entry(key).or_default().insert(round, figure);
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = Key> {
        self.0.keys().copied()
    }

    /// One value of all rounds.
    pub(crate) fn spread(&self, key: Key, value: impl Fn(&Figure) -> f64) -> Option<Spread> {
        Spread::of(self.0.get(&key)?.values().map(value))
    }

    /// The medians of everything.
    pub(crate) fn middle(&self, key: Key) -> Option<Figure> {
        let median = |value: fn(&Figure) -> f64| self.spread(key, value).map(|spread| spread.median);
        let database = self.0.get(&key)?.values().filter_map(|figure| figure.database_cpu_ms);
        Some(Figure {
            rate: median(|figure| figure.rate)?,
            p50_ms: median(|figure| figure.p50_ms)?,
            p99_ms: median(|figure| figure.p99_ms)?,
            cpu_ms: median(|figure| figure.cpu_ms)?,
            database_cpu_ms: Spread::of(database).map(|spread| spread.median),
            peak_mib: median(|figure| figure.peak_mib)?,
        })
    }

    /// How many times faster one is than another, round by round: what disturbs a round disturbs both.
    pub(crate) fn times_faster(&self, one: Key, other: Key) -> Option<Spread> {
        let (one, other) = (self.0.get(&one)?, self.0.get(&other)?);
        Spread::of(one.iter().filter_map(|(round, figure)| Some(figure.rate / other.get(round)?.rate)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIGURE: Figure =
        Figure { rate: 1.0, p50_ms: 1.0, p99_ms: 2.0, cpu_ms: 0.5, database_cpu_ms: None, peak_mib: 9.0 };

    fn key(contender: Contender) -> Key {
        Key { work: Work::PageCached, data: Data::Usual, connections: 16, contender }
    }

    #[test]
    fn a_median_is_the_middle_or_between_the_two_middles() {
        let spread = Spread::of([3.0, 1.0, 10.0]).unwrap();
        assert_eq!(spread, Spread { median: 3.0, least: 1.0, most: 10.0 });
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 8.0]).unwrap().median, 3.0);
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn a_ratio_is_taken_within_a_round() {
        let mut figures = Figures::default();
        let (fast, slow) = (key(Contender::Batchscan), key(Contender::FastApi));
        // The second round is disturbed: both are half as fast. The third has only one of them.
        for (round, rate, other) in [(0, 100.0, Some(10.0)), (1, 50.0, Some(5.0)), (2, 1000.0, None)] {
            figures.add(fast, round, Figure { rate, ..FIGURE });
            if let Some(rate) = other {
                figures.add(slow, round, Figure { rate, ..FIGURE });
            }
        }
        assert_eq!(figures.times_faster(fast, slow), Spread::of([10.0]));
        assert_eq!(figures.times_faster(fast, key(Contender::Nginx)), None);
        assert_eq!(figures.middle(fast).unwrap().rate, 100.0);
    }

    #[test]
    fn a_database_is_counted_where_there_is_one() {
        let mut figures = Figures::default();
        let key = key(Contender::FastApi);
        figures.add(key, 0, FIGURE);
        assert_eq!(figures.middle(key).unwrap().database_cpu_ms, None);
        figures.add(key, 1, Figure { database_cpu_ms: Some(2.0), ..FIGURE });
        assert_eq!(figures.middle(key).unwrap().database_cpu_ms, Some(2.0));
    }
}
