//! Mean and standard deviation of decimals, in integers.

use batchscan_model::Hundredths;

/// Count, sum and sum of squares.
///
/// Values are below 10^14 hundredths, so the squares of a billion values fit an i128.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    count: i128,
    sum: i128,
    squares: i128,
}

impl Sums {
    /// Adds a value, if there is one.
    pub(super) fn push(&mut self, value: Option<Hundredths>) {
        if let Some(value) = value.map(|value| i128::from(value.count())) {
            self.add(&Self { count: 1, sum: value, squares: value * value });
        }
    }

    /// Adds the values of another set.
    pub(super) fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.squares = self.squares.saturating_add(other.squares);
    }

    pub(super) fn count(&self) -> u64 {
        u64::try_from(self.count).unwrap_or(u64::MAX)
    }

    /// The mean, rounded half away from zero.
    pub(super) fn mean(&self) -> Option<Hundredths> {
        let size = (2 * self.sum.abs() + self.count).checked_div(2 * self.count)?;
        hundredths(size * self.sum.signum())
    }

    /// The sample standard deviation, rounded half away from zero. `None` for fewer than two values.
    pub(super) fn spread(&self) -> Option<Hundredths> {
        if self.count < 2 {
            return None;
        }
        // Relative to the floor of the mean, so that the sums stay small. The remainder is corrected below.
        let near = self.sum.checked_div_euclid(self.count)?;
        let rest = self.sum - near * self.count;
        let squares = self.squares - 2 * near * self.sum + self.count * near * near;
        // The variance is (squares - rest^2 / count) / (count - 1). Its root rounds to s if (2s - 1)^2 <= 4 * variance,
        // and both sides can be compared as integers.
        let four_squares = squares.saturating_mul(4) - ceiling(4 * rest * rest, self.count);
        hundredths(((four_squares / (self.count - 1)).max(0).isqrt() + 1) / 2)
    }
}

fn ceiling(number: i128, divisor: i128) -> i128 {
    (number + divisor - 1) / divisor
}

fn hundredths(count: i128) -> Option<Hundredths> {
    i64::try_from(count).ok().and_then(Hundredths::from_hundredths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LARGEST: i64 = 99_999_999_999_999;

    fn sums(values: &[i64]) -> Sums {
        let mut sums = Sums::default();
        values.iter().for_each(|value| sums.push(Hundredths::from_hundredths(*value)));
        sums
    }

    fn formatted(values: &[i64]) -> (String, String) {
        let sums = sums(values);
        let text = |value: Option<Hundredths>| value.map_or_else(|| "none".into(), |value| value.to_string());
        (text(sums.mean()), text(sums.spread()))
    }

    fn both(mean: &str, spread: &str) -> (String, String) {
        (mean.to_owned(), spread.to_owned())
    }

    #[test]
    fn mean_and_spread_are_rounded_half_away_from_zero() {
        assert_eq!(formatted(&[9_250]), both("92.50", "none"));
        assert_eq!(formatted(&[100, 101]), both("1.01", "0.01"));
        assert_eq!(formatted(&[-100, -101]), both("-1.01", "0.01"));
        assert_eq!(formatted(&[200, 400, 400, 400, 500, 500, 700, 900]), both("5.00", "2.14"));
        assert_eq!(formatted(&[0, 0, 1]), both("0.00", "0.01"));
    }

    #[test]
    fn an_empty_set_has_no_mean_and_no_spread() {
        let mut none = Sums::default();
        none.push(None);
        assert_eq!((none.mean(), none.spread(), none.count()), (None, None, 0));
    }

    #[test]
    fn the_largest_values_do_not_overflow() {
        let half = LARGEST / 2;
        let mut many = sums(&[half, -half]);
        for _ in 0..29 {
            let same = many;
            many.add(&same);
        }
        assert_eq!(many.count(), 1 << 30);
        assert_eq!(many.mean().unwrap().to_string(), "0.00");
        assert_eq!(many.spread().unwrap().count(), half + 23_283);
    }

    proptest! {
        /// The definition, in whole numbers: (2s - 1)^2 n (n - 1) <= 4 (n Σx² - (Σx)²) < (2s + 1)^2 n (n - 1).
        #[test]
        fn the_spread_matches_its_definition(
            values in proptest::collection::vec(-20_000i64..20_000, 2..40)
        ) {
            let sums = sums(&values);
            let s = i128::from(sums.spread().unwrap().count());
            let four = 4 * (sums.count * sums.squares - sums.sum * sums.sum);
            let edge = |s: i128| s * s * sums.count * (sums.count - 1);
            prop_assert!((s == 0 || edge(2 * s - 1) <= four) && four < edge(2 * s + 1));
        }

        #[test]
        fn adding_sets_is_like_adding_their_values(
            left in proptest::collection::vec(-LARGEST..=LARGEST, 0..9),
            right in proptest::collection::vec(-LARGEST..=LARGEST, 0..9),
        ) {
            let mut together = sums(&left);
            together.add(&sums(&right));
            prop_assert_eq!(together, sums(&[left, right].concat()));
            let _ = (together.mean(), together.spread());
        }
    }
}
