//! Random numbers that are the same on every machine. Integers only: floats depend on the platform.

/// SplitMix64. Our own, because a library may change its algorithm, and with it the demo data.
///
/// No number repeats within a period of 2^64. Batch ids rely on it.
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A generator for one subject: the same subject and number always give the same sequence.
    pub(super) fn about(seed: u64, subject: Subject, number: u64) -> Self {
        Self(Self(Self(seed).draw() ^ subject as u64).draw() ^ number)
    }

    /// 64 random bits.
    pub(super) fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// A number below `limit`; 0 if `limit` is 0.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(limit)) >> 64) as u64
    }

    /// True once in `times`, on average.
    pub(super) fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub(super) fn pick<'t, T>(&mut self, table: &'t [T]) -> &'t T {
        &table[self.below(table.len() as u64) as usize]
    }

    /// A random index, in proportion to the weights.
    pub(super) fn weighted(&mut self, weights: &[u64]) -> usize {
        let mut left = self.below(weights.iter().sum());
        let hit = weights.iter().position(|weight| {
            let here = left < *weight;
            left = left.saturating_sub(*weight);
            here
        });
        hit.unwrap_or(0)
    }

    /// A number from a bell curve: the sum of four 16-bit numbers, scaled to the standard deviation.
    pub(super) fn around(&mut self, bell: Bell) -> i64 {
        const DICE_MEAN: i64 = 2 * 65_535;
        /// The square root of 4 · (2^32 - 1) / 12.
        const DICE_DEVIATION: i64 = 37_837;
        let bits = self.draw();
        let dice: u64 = [0, 16, 32, 48].iter().map(|shift| (bits >> shift) & 0xFFFF).sum();
        bell.level + (dice as i64 - DICE_MEAN) * bell.spread / DICE_DEVIATION
    }
}

/// What a sequence is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Subject {
    Day,
    SeedLot,
}

/// A bell curve: mean and standard deviation.
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
        let mut random = Random::new(1_234_567);
        let drawn = [random.draw(), random.draw(), random.draw()];
        assert_eq!(drawn, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn a_bell_curve_has_its_mean_and_deviation() {
        let mut random = Random::new(7);
        let drawn: Vec<i64> =
            (0..100_000).map(|_| random.around(Bell { level: 9_000, spread: 300 })).collect();
        let mean = drawn.iter().sum::<i64>() / 100_000;
        let variance = drawn.iter().map(|value| (value - mean).pow(2)).sum::<i64>() / 100_000;
        assert!((8_990..=9_010).contains(&mean), "{mean}");
        assert!((290 * 290..=310 * 310).contains(&variance), "{variance}");
    }

    #[test]
    fn a_weight_of_zero_is_never_chosen() {
        let mut random = Random::new(3);
        assert!((0..10_000).all(|_| random.weighted(&[0, 3, 0, 1, 0]) % 2 == 1));
    }
}
