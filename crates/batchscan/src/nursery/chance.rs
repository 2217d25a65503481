//! Chance that is the same on every machine. Integers only: floats through a platform's libm are not.

/// SplitMix64. Written here because a demo must not change when a library picks a better algorithm, and these
/// few lines never will.
///
/// It never gives the same number twice within a period of 2^64, on which the uniqueness of batch ids rests.
#[derive(Clone, Debug)]
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Chance that hangs on what it is about and not on what was drawn before: asked again, it says the same.
    pub(super) fn about(seed: u64, subject: Subject, number: u64) -> Self {
        Self(Self(Self(seed).draw() ^ subject as u64).draw() ^ number)
    }

    /// 64 bits, each as likely as the other.
    pub(super) fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// A number from 0 to `limit` - 1; 0 if there is none.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(limit)) >> 64) as u64
    }

    /// True once in so many times.
    pub(super) fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// One of a table's entries.
    pub(super) fn pick<'t, T>(&mut self, table: &'t [T]) -> &'t T {
        &table[self.below(table.len() as u64) as usize]
    }

    /// The index of a weight, in proportion to the weights.
    pub(super) fn weighted(&mut self, weights: &[u64]) -> usize {
        let mut left = self.below(weights.iter().sum());
        let hit = weights.iter().position(|weight| {
            let here = left < *weight;
            left = left.saturating_sub(*weight);
            here
        });
        hit.unwrap_or(0)
    }

    /// A bell curve around a level: four dice of 16 bits added up, scaled to the wanted standard deviation.
    pub(super) fn around(&mut self, bell: Bell) -> i64 {
        const DICE_MEAN: i64 = 2 * 65_535;
        /// The square root of 4 · (2^32 - 1) / 12.
        const DICE_DEVIATION: i64 = 37_837;
        let bits = self.draw();
        let dice: u64 = [0, 16, 32, 48].iter().map(|shift| (bits >> shift) & 0xFFFF).sum();
        bell.level + (dice as i64 - DICE_MEAN) * bell.spread / DICE_DEVIATION
    }
}

/// What a decision that must be the same each time is about.
#[derive(Clone, Copy, Debug)]
pub(super) enum Subject {
    Day,
    SeedLot,
}

/// A level and the standard deviation around it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bell {
    pub(super) level: i64,
    pub(super) spread: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first outputs of the published reference implementation for this seed.
    #[test]
    fn it_is_splitmix64() {
        let mut chance = Chance::new(1_234_567);
        let drawn = [chance.draw(), chance.draw(), chance.draw()];
        assert_eq!(drawn, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn a_bell_has_its_level_and_its_spread() {
        let mut chance = Chance::new(7);
        let drawn: Vec<i64> =
            (0..100_000).map(|_| chance.around(Bell { level: 9_000, spread: 300 })).collect();
        let mean = drawn.iter().sum::<i64>() / 100_000;
        let variance = drawn.iter().map(|value| (value - mean).pow(2)).sum::<i64>() / 100_000;
        assert!((8_990..=9_010).contains(&mean), "{mean}");
        assert!((290 * 290..=310 * 310).contains(&variance), "{variance}");
    }

    #[test]
    fn a_weight_of_zero_is_never_picked() {
        let mut chance = Chance::new(3);
        assert!((0..10_000).all(|_| chance.weighted(&[0, 3, 0, 1, 0]) % 2 == 1));
    }
}
