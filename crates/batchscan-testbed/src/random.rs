//! Random numbers that a test can repeat.

use std::time::Duration;

/// The same numbers for the same seed (SplitMix64).
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// A number below this one.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        ((mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB) >> 8) % end
    }

    /// Times, one in each part of a duration, in random order.
    pub fn moments(&mut self, parts: u32, time: Duration) -> Vec<Duration> {
        let part = time / parts;
        let micros = u64::try_from(part.as_micros()).unwrap_or(u64::MAX).max(1);
        let mut moments: Vec<(u64, Duration)> = (0..parts)
            .map(|nth| (self.below(u64::MAX), part * nth + Duration::from_micros(self.below(micros))))
            .collect();
        moments.sort_unstable();
        moments.into_iter().map(|(_, moment)| moment).collect()
    }
}
