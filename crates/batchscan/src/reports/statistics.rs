//! Mean and standard deviation of decimals.

use batchscan_model::Hundredths;

/// Count, sum and sum of squares, in hundredths. Whole numbers up to 2^53 are exact: a hundred million rates.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    count: u64,
    sum: f64,
    squares: f64,
}

impl Sums {
    /// Adds a value, if there is one.
    pub(super) fn push(&mut self, value: Option<Hundredths>) {
        if let Some(value) = value.map(|value| value.count() as f64) {
            self.add(&Self { count: 1, sum: value, squares: value * value });
        }
    }

    /// Adds the values of another set.
    pub(super) fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.squares += other.squares;
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The mean, rounded half away from zero.
    pub(super) fn mean(&self) -> Option<Hundredths> {
        if self.count == 0 { None } else { rounded(self.sum / self.count as f64) }
    }

    /// The sample standard deviation, rounded half away from zero. `None` for fewer than two values.
    pub(super) fn spread(&self) -> Option<Hundredths> {
        let count = self.count as f64;
        if self.count < 2 {
            return None;
        }
        let variance = (self.squares - self.sum * self.sum / count) / (count - 1.0);
        rounded(variance.max(0.0).sqrt())
    }
}

fn rounded(hundredths: f64) -> Option<Hundredths> {
    Hundredths::from_hundredths(hundredths.round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn formatted(values: &[i64]) -> (String, String) {
        let mut sums = Sums::default();
        values.iter().for_each(|value| sums.push(Hundredths::from_hundredths(*value)));
        let text = |value: Option<Hundredths>| value.map_or_else(|| "none".into(), |value| value.to_string());
        (text(sums.mean()), text(sums.spread()))
    }

    #[test]
    fn mean_and_spread_are_rounded_half_away_from_zero() {
        for (values, mean, spread) in [
            (&[][..], "none", "none"),
            (&[9_250], "92.50", "none"),
            (&[100, 101], "1.01", "0.01"),
            (&[-100, -101], "-1.01", "0.01"),
            (&[200, 400, 400, 400, 500, 500, 700, 900], "5.00", "2.14"),
            (&[0, 0, 1], "0.00", "0.01"),
        ] {
            assert_eq!(formatted(values), (mean.to_owned(), spread.to_owned()));
        }
    }
}
