//! One scan session: what became of it, what it measured, what people wrote about it.

use super::chance::{Bell, Chance};
use super::crops::{Crop, SeedLot};

/// A whole, in hundredths of a percent.
const WHOLE: i64 = 10_000;

/// What became of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Usual,
    /// Big seedlings beside small ones.
    Uneven,
    /// Nothing was up yet, so there was nothing to measure.
    TooEarly,
    /// The images could not be analysed.
    Failed,
}

impl Outcome {
    pub(super) fn draw(chance: &mut Chance) -> Self {
        match chance.below(1_000) {
            0..7 => Outcome::Failed,
            7..10 => Outcome::TooEarly,
            10..32 => Outcome::Uneven,
            _ => Outcome::Usual,
        }
    }
}

/// What a session measured, as averages over its trays: hundredths of a seedling, a percent, a square millimetre.
///
/// All other figures of a batch follow from these and the tray's cells.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figures {
    pub(super) germinated: i64,
    pub(super) usable: i64,
    /// Without a seedling there is neither a variation nor a size.
    pub(super) variation: Option<i64>,
    pub(super) size: Option<i64>,
}

/// What is scanned, and where in the year.
#[derive(Clone, Copy, Debug)]
pub(super) struct Session {
    pub(super) crop: &'static Crop,
    pub(super) lot: SeedLot,
    pub(super) outcome: Outcome,
    pub(super) trays: u64,
    pub(super) cells: u64,
    /// How much of the year has passed, in hundredths of a percent.
    pub(super) elapsed: i64,
}

impl Session {
    /// None where the analysis failed.
    pub(super) fn measure(&self, chance: &mut Chance) -> Option<Figures> {
        match self.outcome {
            Outcome::Failed => None,
            Outcome::TooEarly => Some(Figures { germinated: 0, usable: 0, variation: None, size: None }),
            Outcome::Usual | Outcome::Uneven => Some(self.measure_seedlings(chance)),
        }
    }

    /// Seedlings are counted whole over all trays and averaged then: the averages are ones that trays can have.
    fn measure_seedlings(&self, chance: &mut Chance) -> Figures {
        let (crop, trays) = (self.crop, self.trays as i64);
        let drift = crop.germination_drift * self.elapsed / WHOLE;
        let rate = chance.around(crop.germination) + drift + self.lot.germination;
        // No crop's weakest lot falls below a twentieth.
        let seedlings = rounded(trays * self.cells as i64 * rate.clamp(WHOLE / 20, WHOLE), WHOLE);
        let usable = rounded(seedlings * self.usable_share(chance), WHOLE);
        let size = chance.around(crop.size);
        let size = size + rounded(size * crop.size_drift * self.elapsed, WHOLE * WHOLE);
        Figures {
            germinated: rounded(seedlings * 100, trays),
            usable: rounded(usable * 100, trays),
            variation: Some(self.variation(chance)),
            size: Some(size),
        }
    }

    fn usable_share(&self, chance: &mut Chance) -> i64 {
        let lost = if self.outcome == Outcome::Uneven { 900 } else { 0 };
        (chance.around(self.crop.usable) - lost).clamp(0, WHOLE)
    }

    fn variation(&self, chance: &mut Chance) -> i64 {
        let more = match self.outcome {
            Outcome::Uneven => chance.around(Bell { level: 1_900, spread: 300 }),
            _ if self.lot.is_bad => 500,
            _ => 0,
        };
        chance.around(self.crop.variation) + more
    }

    /// The analysis warns of what a grower should look at.
    pub(super) fn warns(&self) -> bool {
        self.outcome != Outcome::Usual || self.lot.is_bad
    }

    /// Most sessions need no words, and not everybody finds some for those that do.
    pub(super) fn comment(&self, chance: &mut Chance) -> Option<String> {
        let text = match self.outcome {
            Outcome::Failed if chance.one_in(2) => *chance.pick(&FAILED),
            Outcome::TooEarly => "Scanned too early, nothing up yet",
            Outcome::Uneven if chance.one_in(2) => *chance.pick(&UNEVEN),
            Outcome::Usual if self.lot.is_bad => return self.complaint(chance),
            Outcome::Usual if chance.one_in(14) => *chance.pick(&ASIDES),
            _ => return None,
        };
        Some(text.to_owned())
    }

    fn complaint(&self, chance: &mut Chance) -> Option<String> {
        let number = self.lot.number;
        match chance.below(4) {
            0 => Some(format!("Seed lot {number} again: poor germination")),
            1 => Some(format!("Poor germination, seed lot {number}; supplier informed")),
            2 => Some(format!("Weak seed lot {number}, resow on bench {}", 1 + chance.below(24))),
            _ => None,
        }
    }
}

/// A quotient, rounded half away from zero.
pub(super) fn rounded(dividend: i64, divisor: i64) -> i64 {
    let half = divisor / 2;
    (dividend + if dividend < 0 { -half } else { half }) / divisor
}

/// Who scans, and how often.
pub(super) const PEOPLE: [(&str, u64); 5] = [
    ("ines.moreau@example.org", 40),
    ("jan.devries@example.org", 30),
    ("m.okafor@example.org", 16),
    ("scanner-2@example.org", 10),
    ("s.lindqvist@example.org", 4),
];

/// Each person has a way of naming batches.
pub(super) fn name(person: usize, crop: &Crop, week: u64, chance: &mut Chance) -> String {
    let (short, bench) = (crop.short, 1 + chance.below(24));
    match person {
        0 => format!("{short} W{week} bench {bench}"),
        1 => format!("W{week:02} {short} {bench}{}", chance.pick(&['A', 'B'])),
        2 => format!("{short} wk {week} house {}", 1 + bench % 4),
        3 => format!("{short}-{week:02}-{:04}", chance.below(10_000)),
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

const ASIDES: [&str; 9] = [
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
