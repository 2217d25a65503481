//! The demo's nursery: a year of batches that look like a real one's. No clock, no store, no randomness of its own.
//!
//! | module | owns |
//! |---|---|
//! | `calendar` | the year, its weeks and working hours |
//! | `crops` | what is grown, when, how well, and from which seed lots |
//! | `scan` | one session: its outcome, figures and words |
//! | `chance` | random numbers that are the same on every machine |

mod calendar;
mod chance;
mod crops;
mod scan;

use std::ops::RangeInclusive;

use batchscan_model::{Batch, BatchId, Hundredths, UtcInstant};

use calendar::Year;
use chance::{Chance, Subject};
use crops::{CROPS, SeedLot};
use scan::{Figures, Outcome, PEOPLE, Session, rounded};

/// The batches of one nursery over the year before `end`, oldest first; those of one instant in no order.
///
/// The same arguments give the same batches on every machine. They are made as they are asked for: millions need
/// no more memory than one.
pub(crate) fn batches(
    count: u64,
    seed: u64,
    end: UtcInstant,
    link_base: &str,
) -> impl Iterator<Item = Batch> + use<> {
    Nursery::new(count, seed, end, link_base)
}

/// The nursery at work. Days take their share of all batches by their weight, and are gone through in order.
struct Nursery {
    count: u64,
    seed: u64,
    link_base: String,
    year: Year,
    chance: Chance,
    days_left: RangeInclusive<i64>,
    weight_of_year: u128,
    weight_so_far: u128,
    today: Day,
    made: u64,
    latest: Option<UtcInstant>,
}

/// A working day.
struct Day {
    number: i64,
    week: u64,
    demand: [u64; CROPS],
    /// The batches of the day, by their place among all: from the first to before the second.
    from: u64,
    until: u64,
}

impl Nursery {
    fn new(count: u64, seed: u64, end: UtcInstant, link_base: &str) -> Self {
        let year = Year::before(end);
        let weight = |day| u128::from(weight_of_day(year, seed, day, &crops::demand(calendar::week(day))));
        Self {
            count,
            seed,
            link_base: format!("{}/batches/", link_base.trim_end_matches('/')),
            year,
            chance: Chance::new(seed),
            days_left: year.days(),
            weight_of_year: year.days().map(weight).sum(),
            weight_so_far: 0,
            today: Day { number: 0, week: 1, demand: [0; CROPS], from: 0, until: 0 },
            made: 0,
            latest: None,
        }
    }

    /// The next day, or none when the year is over.
    fn turn_the_day(&mut self) -> Option<()> {
        let number = self.days_left.next()?;
        let week = calendar::week(number);
        let demand = crops::demand(week);
        self.weight_so_far += u128::from(weight_of_day(self.year, self.seed, number, &demand));
        // Shares are cut from the running sum, so that they add up to the count whatever the rounding.
        // A year has working days, but dividing must not hang on that.
        let until = u128::from(self.count) * self.weight_so_far / self.weight_of_year.max(1);
        self.today = Day { number, week, demand, from: self.made, until: until as u64 };
        self.latest = None;
        Some(())
    }

    /// When the next batch is created: never before the latest one.
    fn tick(&mut self) -> UtcInstant {
        // Two scanners at work, or one upload of several trays: equal instants are a part of life.
        if let Some(latest) = self.latest
            && self.chance.one_in(40)
        {
            return latest;
        }
        let micros = self.worked_micros();
        // Most clients send whole seconds, one old one milliseconds, one what its clock has.
        let micros = match self.chance.below(50) {
            0 => micros,
            1 | 2 => micros - micros % 1_000,
            _ => micros - micros % 1_000_000,
        };
        let instant = self.year.instant(self.today.number, micros);
        self.latest.map_or(instant, |latest| instant.max(latest))
    }

    /// How much of the day has been worked: each batch has its slice of the day and lies anywhere within it.
    fn worked_micros(&mut self) -> i64 {
        let Day { number, from, until, .. } = self.today;
        let opening = self.year.opening(number);
        let open_micros = (opening.end - opening.start).unsigned_abs() * 1_000_000;
        let place = u128::from(self.made - from) * u128::from(open_micros);
        let within = u128::from(self.chance.below(open_micros));
        opening.start * 1_000_000 + ((place + within) / u128::from(until - from)) as i64
    }

    fn session(&mut self) -> Session {
        let chance = &mut self.chance;
        let index = chance.weighted(&self.today.demand);
        let crop = crops::crop(index);
        let is_second = chance.one_in(2);
        let days_passed = self.today.number - self.year.days().start();
        Session {
            crop,
            lot: SeedLot::open(self.seed, index, self.today.number, is_second),
            outcome: Outcome::draw(chance),
            trays: 2 + chance.below(12) + chance.below(12),
            cells: *chance.pick(crop.trays),
            elapsed: days_passed * 10_000 / 365,
        }
    }

    fn batch(&mut self, created: UtcInstant) -> Option<Batch> {
        let session = self.session();
        let chance = &mut self.chance;
        let figures = session.measure(chance);
        // On a tray that the scanner does not know, seedlings are counted but cells are not.
        let cells = (!chance.one_in(120)).then_some(session.cells);
        let statistics = Statistics { figures, cells };
        let person = chance.weighted(&PEOPLE.map(|(_, share)| share));
        let id = batch_id(chance);
        let has_link = if figures.is_some() { !chance.one_in(150) } else { chance.one_in(3) };
        Some(Batch {
            batch_name: scan::name(person, session.crop, self.today.week, chance),
            batch_creation_date: created,
            crop_type: (!chance.one_in(45)).then(|| session.crop.name.to_owned()),
            number_of_images: session.trays,
            total_cells_per_tray: cells,
            avg_germinated_seedlings: statistics.average(|figures| Some(figures.germinated)),
            avg_non_germinated_seedlings: statistics.rest(|figures| figures.germinated),
            avg_germination_rate: statistics.rate(|figures| figures.germinated),
            avg_usable_seedlings: statistics.average(|figures| Some(figures.usable)),
            avg_non_usable_cells: statistics.rest(|figures| figures.usable),
            avg_usable_seedling_rate: statistics.rate(|figures| figures.usable),
            avg_coefficient_of_variation: statistics.average(|figures| figures.variation),
            avg_median_seedling_size_mm2: statistics.average(|figures| figures.size),
            scanned_by_email: (!chance.one_in(25)).then(|| PEOPLE[person].0.to_owned()),
            analysis_link: has_link.then(|| format!("{}{id}", self.link_base)),
            comment: session.comment(chance),
            warnings: session.warns(),
            batch_id: BatchId::new(id)?,
        })
    }
}

impl Iterator for Nursery {
    type Item = Batch;

    fn next(&mut self) -> Option<Batch> {
        while self.made >= self.today.until {
            self.turn_the_day()?;
        }
        let created = self.tick();
        let batch = self.batch(created)?;
        self.latest = Some(created);
        self.made += 1;
        Some(batch)
    }
}

/// What is known of a session, from which a batch's statistics follow.
struct Statistics {
    figures: Option<Figures>,
    cells: Option<u64>,
}

impl Statistics {
    fn average(&self, figure: fn(Figures) -> Option<i64>) -> Option<Hundredths> {
        self.figures.and_then(figure).and_then(Hundredths::from_hundredths)
    }

    /// The cells that are not counted in a figure.
    fn rest(&self, figure: fn(Figures) -> i64) -> Option<Hundredths> {
        let cells = self.cells? as i64;
        self.figures.and_then(|figures| Hundredths::from_hundredths(cells * 100 - figure(figures)))
    }

    /// A figure as a share of the cells, in percent.
    fn rate(&self, figure: fn(Figures) -> i64) -> Option<Hundredths> {
        let cells = self.cells? as i64;
        self.figures.and_then(|figures| Hundredths::from_hundredths(rounded(figure(figures) * 100, cells)))
    }
}

/// How much of the year's work a day does: its weekday, its season, its open hours, and a mood of its own.
fn weight_of_day(year: Year, seed: u64, day: i64, demand: &[u64; CROPS]) -> u64 {
    let opening = year.opening(day);
    let open_secs = (opening.end - opening.start).unsigned_abs();
    let mood = 75 + Chance::about(seed, Subject::Day, day as u64).below(51);
    open_secs * calendar::bustle(day) * demand.iter().sum::<u64>() * mood
}

/// A version 4 UUID. All 64 bits of one drawn number are in it, and no number is drawn twice: ids are unique.
fn batch_id(chance: &mut Chance) -> String {
    let (unique, other) = (chance.draw(), chance.draw());
    let (head, middle, low) = (unique >> 32, (unique >> 16) & 0xFFFF, (unique >> 4) & 0xFFF);
    // The variant's two bits, then the last four unique ones, then chance.
    let tail = 0x8000 | (unique & 0xF) << 10 | (other >> 54);
    format!("{head:08x}-{middle:04x}-4{low:03x}-{tail:04x}-{:012x}", other & 0xFFFF_FFFF_FFFF)
}

#[cfg(test)]
mod tests;
