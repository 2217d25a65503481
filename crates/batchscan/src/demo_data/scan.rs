//! One scan session: its outcome, measurements and comment.

use super::crops::{Crop, SeedLot};
use super::random::{Bell, Random};

/// 100 %, in hundredths of a percent.
const WHOLE: i64 = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Usual,
    /// Seedlings of very different sizes.
    Uneven,
    /// Nothing had germinated yet.
    TooEarly,
    /// The images could not be analysed.
    Failed,
}

impl Outcome {
    pub(super) fn draw(random: &mut Random) -> Self {
        match random.below(1_000) {
            0..7 => Outcome::Failed,
            7..10 => Outcome::TooEarly,
            10..32 => Outcome::Uneven,
            _ => Outcome::Usual,
        }
    }
}

/// Averages over the trays of a session, in hundredths. The other fields of a batch are derived from them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measurements {
    pub(super) germinated: i64,
    pub(super) usable: i64,
    /// `None` without seedlings, like the size.
    pub(super) variation: Option<i64>,
    pub(super) size: Option<i64>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Session {
    pub(super) crop: &'static Crop,
    pub(super) lot: SeedLot,
    pub(super) outcome: Outcome,
    pub(super) trays: u64,
    pub(super) cells: u64,
    /// Elapsed share of the year, in hundredths of a percent.
    pub(super) elapsed: i64,
}

impl Session {
    /// `None` if the analysis failed.
    pub(super) fn measure(&self, random: &mut Random) -> Option<Measurements> {
        match self.outcome {
            Outcome::Failed => None,
            Outcome::TooEarly => Some(Measurements { germinated: 0, usable: 0, variation: None, size: None }),
            Outcome::Usual | Outcome::Uneven => Some(self.measure_seedlings(random)),
        }
    }

    /// Counts whole seedlings over all trays, then averages them.
    fn measure_seedlings(&self, random: &mut Random) -> Measurements {
        let (crop, trays) = (self.crop, self.trays as i64);
        let drift = crop.germination_drift * self.elapsed / WHOLE;
        let rate = random.around(crop.germination) + drift + self.lot.germination;
        // At least 5 %, also for a bad lot.
        let seedlings = rounded(trays * self.cells as i64 * rate.clamp(WHOLE / 20, WHOLE), WHOLE);
        let usable = rounded(seedlings * self.usable_share(random), WHOLE);
        let size = random.around(crop.size);
        let size = size + rounded(size * crop.size_drift * self.elapsed, WHOLE * WHOLE);
        Measurements {
            germinated: rounded(seedlings * 100, trays),
            usable: rounded(usable * 100, trays),
            variation: Some(self.variation(random)),
            size: Some(size),
        }
    }

    fn usable_share(&self, random: &mut Random) -> i64 {
        let lost = if self.outcome == Outcome::Uneven { 900 } else { 0 };
        (random.around(self.crop.usable) - lost).clamp(0, WHOLE)
    }

    fn variation(&self, random: &mut Random) -> i64 {
        let more = match self.outcome {
            Outcome::Uneven => random.around(Bell { level: 1_900, spread: 300 }),
            _ if self.lot.is_bad => 500,
            _ => 0,
        };
        random.around(self.crop.variation) + more
    }

    /// Whether the analysis has warnings.
    pub(super) fn warns(&self) -> bool {
        self.outcome != Outcome::Usual || self.lot.is_bad
    }

    /// Most sessions have no comment.
    pub(super) fn comment(&self, random: &mut Random) -> Option<String> {
        let text = match self.outcome {
            Outcome::Failed if random.one_in(2) => *random.pick(&FAILED),
            Outcome::TooEarly => "Scanned too early, nothing up yet",
            Outcome::Uneven if random.one_in(2) => *random.pick(&UNEVEN),
            Outcome::Usual if self.lot.is_bad => return self.complaint(random),
            Outcome::Usual if random.one_in(14) => *random.pick(&REMARKS),
            _ => return None,
        };
        Some(text.to_owned())
    }

    fn complaint(&self, random: &mut Random) -> Option<String> {
        let number = self.lot.number;
        match random.below(4) {
            0 => Some(format!("Seed lot {number} again: poor germination")),
            1 => Some(format!("Poor germination, seed lot {number}; supplier informed")),
            2 => Some(format!("Weak seed lot {number}, resow on bench {}", 1 + random.below(24))),
            _ => None,
        }
    }
}

/// A quotient, rounded half away from zero.
pub(super) fn rounded(dividend: i64, divisor: i64) -> i64 {
    let half = divisor / 2;
    (dividend + if dividend < 0 { -half } else { half }) / divisor
}

/// Operators and how often they scan.
pub(super) const PEOPLE: [(&str, u64); 5] = [
    ("ines.moreau@example.org", 40),
    ("jan.devries@example.org", 30),
    ("m.okafor@example.org", 16),
    ("scanner-2@example.org", 10),
    ("s.lindqvist@example.org", 4),
];

/// Each operator names batches differently.
pub(super) fn name(person: usize, crop: &Crop, week: u64, random: &mut Random) -> String {
    let (short, bench) = (crop.short, 1 + random.below(24));
    match person {
        0 => format!("{short} W{week} bench {bench}"),
        1 => format!("W{week:02} {short} {bench}{}", random.pick(&['A', 'B'])),
        2 => format!("{short} wk {week} house {}", 1 + bench % 4),
        3 => format!("{short}-{week:02}-{:04}", random.below(10_000)),
        _ => format!("{} trial {bench}", short.to_lowercase()),
    }
}

const FAILED: [&str; 4] = [
    "Images too dark, scan again",
    "Tray edge not found",
    "Condensation on the lens",
    "Stopped half way, power cut",
];

const UNEVEN: [&str; 4] = [
    "Uneven emergence along the heating pipe",
    "Uneven, outer rows dried out",
    "Two sowings on one bench",
    "Mist line blocked on the left side",
];

const REMARKS: [&str; 9] = [
    "Second scan, after watering",
    "New substrate mix",
    "Customer order, keep apart",
    "Bench heater was off overnight",
    "Primed seed",
    "Customer asked for \"same as last year\"",
    "Covered with vermiculite",
    "Moved to house 2 on Monday",
    "Sown by hand, 24 °C",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_round_away_from_zero() {
        assert_eq!([rounded(5, 2), rounded(-5, 2), rounded(7, 3), rounded(8, 3)], [3, -3, 2, 3]);
    }
}
