//! How a crop's germination went, batch by batch, as a line of bars. Knows nothing of batches.

use batchscan_model::Hundredths;

/// How many rates a line shows. More would not be read, and would not fit beside the rest.
pub(super) const TREND_RATES: usize = 8;

/// Ten points in hundredths: below this a crop is steady, and its noise is not to look like a change.
const RANGE_MIN: i64 = 1_000;

/// A hundred percent.
const WHOLE: i64 = 10_000;

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// What the lowest and the highest bar of a crop stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scale {
    low: i64,
    range: i64,
}

impl Scale {
    /// From the least to the greatest of a crop's rates, or ten points around them.
    pub(super) fn of(rates: &[Hundredths]) -> Self {
        let counts = || rates.iter().map(|rate| rate.count());
        let (least, greatest) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
        if greatest - least >= RANGE_MIN {
            return Self { low: least, range: greatest - least };
        }
        let around = (least + greatest - RANGE_MIN) / 2;
        // Nothing germinates above 100 % or below 0 %: the bars for that would never be used.
        let low = if greatest <= WHOLE { around.min(WHOLE - RANGE_MIN) } else { around };
        Self { low: if least >= 0 { low.max(0) } else { low }, range: RANGE_MIN }
    }

    /// One bar for each rate.
    pub(super) fn line(self, rates: &[Hundredths]) -> String {
        let bar = |rate: &Hundredths| {
            let height = (rate.count() - self.low) * 8 / self.range;
            BARS[usize::try_from(height.clamp(0, 7)).unwrap_or(0)]
        };
        rates.iter().map(bar).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(rates: &[i64]) -> String {
        let rates: Vec<_> = rates.iter().map(|count| Hundredths::from_hundredths(*count).unwrap()).collect();
        Scale::of(&rates).line(&rates)
    }

    #[test]
    fn bars_reach_from_the_least_to_the_greatest_rate() {
        assert_eq!(line(&[0, 2_500, 5_000, 10_000]), "▁▃▅█");
        assert_eq!(line(&[8_000, 8_130, 8_250, 8_375, 8_500, 8_625, 8_750, 9_000]), "▁▂▃▄▅▆▇█");
    }

    #[test]
    fn a_steady_crop_has_a_steady_line() {
        assert_eq!(line(&[9_250, 9_260, 9_240]), "▅▅▄");
        assert_eq!(line(&[10_000, 9_990, 10_000]), "███");
        assert_eq!(line(&[0, 0]), "▁▁");
        assert_eq!(line(&[]), "");
    }

    proptest! {
        #[test]
        fn every_rate_has_a_bar(
            rates in proptest::collection::vec(-99_999_999_999_999i64..=99_999_999_999_999, 0..9)
        ) {
            prop_assert_eq!(line(&rates).chars().count(), rates.len());
        }
    }
}
