//! A line of bars for a series of rates: ▁▃▅█.

use batchscan_model::Hundredths;

/// Rates per line. More would not fit in the table.
pub(super) const TREND_RATES: usize = 8;

/// Ten percentage points. The smallest scale, so that noise does not look like a trend.
const RANGE_MIN: i64 = 1_000;

/// 100 %.
const WHOLE: i64 = 10_000;

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The values of the lowest and the highest bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scale {
    low: i64,
    range: i64,
}

impl Scale {
    /// From the smallest to the largest rate, at least ten points.
    pub(super) fn covering(rates: &[Hundredths]) -> Self {
        let counts = || rates.iter().map(|rate| rate.count());
        let (least, greatest) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
        if greatest - least >= RANGE_MIN {
            return Self { low: least, range: greatest - least };
        }
        let around = (least + greatest - RANGE_MIN) / 2;
        // Stay within 0 % and 100 % if the rates do.
        let low = if greatest <= WHOLE { around.min(WHOLE - RANGE_MIN) } else { around };
        Self { low: if least >= 0 { low.max(0) } else { low }, range: RANGE_MIN }
    }

    /// One bar per rate.
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
        Scale::covering(&rates).line(&rates)
    }

    #[test]
    fn bars_range_from_the_smallest_to_the_largest_rate() {
        assert_eq!(line(&[0, 2_500, 5_000, 10_000]), "▁▃▅█");
        assert_eq!(line(&[8_000, 8_130, 8_250, 8_375, 8_500, 8_625, 8_750, 9_000]), "▁▂▃▄▅▆▇█");
    }

    #[test]
    fn small_changes_give_a_flat_line() {
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
