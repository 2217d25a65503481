//! Generates the demo data: one year of plausible batches of a nursery. No clock, no I/O.
//!
//! | module | owns |
//! |---|---|
//! | `working_hours` | the year, its weeks and working hours |
//! | `crops` | the crops, their seasons, rates and seed lots |
//! | `scan` | one scan session: its outcome, measurements and comment |
//! | `random` | random numbers that are the same on every machine |

mod crops;
mod random;
mod scan;
mod working_hours;

use std::ops::RangeInclusive;

use batchscan_model::{Batch, BatchId, Hundredths, UtcInstant};

use crops::{CROPS, SeedLot};
use random::{Random, Subject};
use scan::{Measurements, Outcome, PEOPLE, Session, rounded};
use working_hours::Year;

/// The batches of one nursery over the year before `end`, oldest first.
///
/// The same arguments give the same batches on every machine. The iterator is lazy: millions of batches need no more
/// memory than one.
pub(crate) fn batches(
    count: u64,
    seed: u64,
    end: UtcInstant,
    link_base: &str,
) -> impl Iterator<Item = Batch> + use<> {
    Nursery::new(count, seed, end, link_base)
}

/// Generates the batches day by day. Each day gets a share of the batches according to its weight.
struct Nursery {
    count: u64,
    seed: u64,
    link_base: String,
    year: Year,
    random: Random,
    days_left: RangeInclusive<i64>,
    weight_of_year: u128,
    weight_so_far: u128,
    today: Day,
    generated: u64,
    latest: Option<UtcInstant>,
}

struct Day {
    number: i64,
    week: u64,
    demand: [u64; CROPS],
    /// The indexes of its batches.
    from: u64,
    until: u64,
}

impl Nursery {
    fn new(count: u64, seed: u64, end: UtcInstant, link_base: &str) -> Self {
        let year = Year::before(end);
        let weight =
            |day| u128::from(weight_of_day(year, seed, day, &crops::demand(working_hours::week(day))));
        Self {
            count,
            seed,
            link_base: format!("{}/demo/reports/", link_base.trim_end_matches('/')),
            year,
            random: Random::new(seed),
            days_left: year.days(),
            weight_of_year: year.days().map(weight).sum(),
            weight_so_far: 0,
            today: Day { number: 0, week: 1, demand: [0; CROPS], from: 0, until: 0 },
            generated: 0,
            latest: None,
        }
    }

    /// Moves to the next day; `None` at the end of the year.
    fn start_next_day(&mut self) -> Option<()> {
        let number = self.days_left.next()?;
        let week = working_hours::week(number);
        let demand = crops::demand(week);
        self.weight_so_far += u128::from(weight_of_day(self.year, self.seed, number, &demand));
        // From the running sum, so that rounding errors do not add up.
        let until = u128::from(self.count) * self.weight_so_far / self.weight_of_year.max(1);
        self.today = Day { number, week, demand, from: self.generated, until: until as u64 };
        self.latest = None;
        Some(())
    }

    /// The creation date of the next batch: never before the latest one.
    fn next_instant(&mut self) -> UtcInstant {
        // Real data has equal instants, too.
        if let Some(latest) = self.latest
            && self.random.one_in(40)
        {
            return latest;
        }
        let micros = self.worked_micros();
        // Most scanners send whole seconds, some milliseconds, few microseconds.
        let micros = match self.random.below(50) {
            0 => micros,
            1 | 2 => micros - micros % 1_000,
            _ => micros - micros % 1_000_000,
        };
        let instant = self.year.instant(self.today.number, micros);
        self.latest.map_or(instant, |latest| instant.max(latest))
    }

    /// The working time before the next batch: a random point in its slice of the day.
    fn worked_micros(&mut self) -> i64 {
        let Day { number, from, until, .. } = self.today;
        let opening = self.year.opening(number);
        let open_micros = (opening.end - opening.start).unsigned_abs() * 1_000_000;
        let slot = u128::from(self.generated - from) * u128::from(open_micros);
        let within = u128::from(self.random.below(open_micros));
        opening.start * 1_000_000 + ((slot + within) / u128::from(until - from)) as i64
    }

    fn session(&mut self) -> Session {
        let random = &mut self.random;
        let index = random.weighted(&self.today.demand);
        let crop = crops::crop(index);
        let is_second = random.one_in(2);
        let days_passed = self.today.number - self.year.days().start();
        Session {
            crop,
            lot: SeedLot::open(self.seed, index, self.today.number, is_second),
            outcome: Outcome::draw(random),
            trays: 2 + random.below(12) + random.below(12),
            cells: *random.pick(crop.trays),
            elapsed: days_passed * 10_000 / 365,
        }
    }

    fn batch(&mut self, created: UtcInstant) -> Option<Batch> {
        let session = self.session();
        let random = &mut self.random;
        let measured = session.measure(random);
        // The number of cells of an unknown tray is unknown.
        let cells = (!random.one_in(120)).then_some(session.cells);
        let statistics = Statistics { measured, cells };
        let person = random.weighted(&PEOPLE.map(|(_, share)| share));
        let id = batch_id(random);
        let has_link = if measured.is_some() { !random.one_in(150) } else { random.one_in(3) };
        Some(Batch {
            batch_name: scan::name(person, session.crop, self.today.week, random),
            batch_creation_date: created,
            crop_type: (!random.one_in(45)).then(|| session.crop.name.to_owned()),
            number_of_images: session.trays,
            total_cells_per_tray: cells,
            avg_germinated_seedlings: statistics.average(|measured| Some(measured.germinated)),
            avg_non_germinated_seedlings: statistics.rest(|measured| measured.germinated),
            avg_germination_rate: statistics.rate(|measured| measured.germinated),
            avg_usable_seedlings: statistics.average(|measured| Some(measured.usable)),
            avg_non_usable_cells: statistics.rest(|measured| measured.usable),
            avg_usable_seedling_rate: statistics.rate(|measured| measured.usable),
            avg_coefficient_of_variation: statistics.average(|measured| measured.variation),
            avg_median_seedling_size_mm2: statistics.average(|measured| measured.size),
            scanned_by_email: (!random.one_in(25)).then(|| PEOPLE[person].0.to_owned()),
            analysis_link: has_link.then(|| format!("{}{id}", self.link_base)),
            comment: session.comment(random),
            warnings: session.warns(),
            batch_id: BatchId::new(id)?,
        })
    }
}

impl Iterator for Nursery {
    type Item = Batch;

    fn next(&mut self) -> Option<Batch> {
        while self.generated >= self.today.until {
            self.start_next_day()?;
        }
        let created = self.next_instant();
        let batch = self.batch(created)?;
        self.latest = Some(created);
        self.generated += 1;
        Some(batch)
    }
}

/// The measurements of a session, from which the fields of a batch are derived.
struct Statistics {
    measured: Option<Measurements>,
    cells: Option<u64>,
}

impl Statistics {
    fn average(&self, field: fn(Measurements) -> Option<i64>) -> Option<Hundredths> {
        self.measured.and_then(field).and_then(Hundredths::from_hundredths)
    }

    /// The cells minus a measurement.
    fn rest(&self, field: fn(Measurements) -> i64) -> Option<Hundredths> {
        let cells = self.cells? as i64;
        self.measured.and_then(|measured| Hundredths::from_hundredths(cells * 100 - field(measured)))
    }

    /// A measurement in percent of the cells.
    fn rate(&self, field: fn(Measurements) -> i64) -> Option<Hundredths> {
        let cells = self.cells? as i64;
        self.measured.and_then(|measured| Hundredths::from_hundredths(rounded(field(measured) * 100, cells)))
    }
}

/// The share of a day in the year: weekday, season, working hours and random variation.
fn weight_of_day(year: Year, seed: u64, day: i64, demand: &[u64; CROPS]) -> u64 {
    let opening = year.opening(day);
    let open_secs = (opening.end - opening.start).unsigned_abs();
    let variation = 75 + Random::about(seed, Subject::Day, day as u64).below(51);
    open_secs * working_hours::weekday_weight(day) * demand.iter().sum::<u64>() * variation
}

/// A version 4 UUID. It contains all 64 bits of one random number, and no number repeats, so ids are unique.
fn batch_id(random: &mut Random) -> String {
    let (unique, other) = (random.draw(), random.draw());
    let (head, middle, low) = (unique >> 32, (unique >> 16) & 0xFFFF, (unique >> 4) & 0xFFF);
    // Two bits of the variant, the last four unique bits, then random bits.
    let tail = 0x8000 | (unique & 0xF) << 10 | (other >> 54);
    format!("{head:08x}-{middle:04x}-4{low:03x}-{tail:04x}-{:012x}", other & 0xFFFF_FFFF_FFFF)
}

#[cfg(test)]
mod tests;
