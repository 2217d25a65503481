//! Values that are valid but cannot be right. An import reports them as warnings.

use crate::printable::clip;
use crate::{Batch, Field, FieldError, Hundredths};

/// 100 percent, in hundredths.
const RATE_MAX: i64 = 10_000;
/// Two averages that are rounded can exceed their sum by this much.
const ROUNDING: i64 = 1;

/// A rate and its count may differ by this many points or by this factor: counts may be of other trays.
const POINTS_MAX: i128 = 2_000;
const RATIO_MAX: i128 = 5;

/// A field and its value.
type Average = (Field, Option<Hundredths>);

impl Batch {
    /// Rates outside 0 to 100 or of another magnitude than their counts, ids with spaces around them, negative counts and sizes, and
    /// more seedlings than cells: germinated and not germinated ones, or usable ones and cells without one. A missing count
    /// is 0. Usually empty, which costs no allocation.
    pub fn implausible_values(&self) -> Vec<FieldError> {
        let mut found = Vec::new();
        let id = self.batch_id.as_str();
        if id.trim() != id {
            let shown = format!("\"{}\"", clip(id));
            found.push(FieldError::new(Field::BatchId.name(), shown, "an id without spaces around it"));
        }
        for (field, rate) in [
            (Field::AvgGerminationRate, self.avg_germination_rate),
            (Field::AvgUsableSeedlingRate, self.avg_usable_seedling_rate),
        ] {
            if let Some(rate) = rate
                && !(0..=RATE_MAX).contains(&rate.count())
            {
                found.push(FieldError::new(field.name(), rate.to_string(), "a rate from 0 to 100"));
            }
        }
        for (part, rest) in [
            (
                (Field::AvgGerminatedSeedlings, self.avg_germinated_seedlings),
                (Field::AvgNonGerminatedSeedlings, self.avg_non_germinated_seedlings),
            ),
            (
                (Field::AvgUsableSeedlings, self.avg_usable_seedlings),
                (Field::AvgNonUsableCells, self.avg_non_usable_cells),
            ),
        ] {
            found.extend([part, rest].into_iter().filter_map(negative));
            found.extend(self.surplus(part, rest));
        }
        found.extend(negative((Field::AvgMedianSeedlingSizeMm2, self.avg_median_seedling_size_mm2)));
        let germinated =
            self.avg_germinated_seedlings.or_else(|| self.without(self.avg_non_germinated_seedlings));
        for (field, rate, count) in [
            (Field::AvgGerminationRate, self.avg_germination_rate, germinated),
            (Field::AvgUsableSeedlingRate, self.avg_usable_seedling_rate, self.avg_usable_seedlings),
        ] {
            found.extend(self.other_rate(field, rate, count));
        }
        found
    }

    /// The cells that are left without this count.
    fn without(&self, rest: Option<Hundredths>) -> Option<Hundredths> {
        let cells = i64::try_from(self.total_cells_per_tray?).ok()?.checked_mul(100)?;
        Hundredths::from_hundredths(cells.checked_sub(rest?.count())?)
    }

    /// A rate of another magnitude than its count: a fraction, or a wrong decimal point.
    fn other_rate(
        &self,
        field: Field,
        rate: Option<Hundredths>,
        count: Option<Hundredths>,
    ) -> Option<FieldError> {
        let (rate, count, cells) = (rate?, count?, self.total_cells_per_tray.filter(|cells| *cells > 0)?);
        let (is, of_count) = (i128::from(rate.count()), i128::from(count.count()) * 100 / i128::from(cells));
        let (low, high) = (is.min(of_count), is.max(of_count));
        if low <= 0 || high > RATE_MAX.into() || high - low <= POINTS_MAX || high <= low * RATIO_MAX {
            return None;
        }
        let expected = Hundredths::from_hundredths(i64::try_from(of_count).ok()?)?;
        let expected = format!("about {expected}, as {count} of {cells} cells are");
        Some(FieldError::new(field.name(), rate.to_string(), expected))
    }

    /// Two counts that together exceed the cells. A missing or negative count is 0.
    fn surplus(&self, (field, part): Average, (rest_field, rest): Average) -> Option<FieldError> {
        let cells = self.total_cells_per_tray?;
        let [part, rest] = [part, rest].map(|count| count.map_or(0, |count| count.count().max(0)));
        let sum = part + rest;
        if i128::from(sum) <= i128::from(cells) * 100 + i128::from(ROUNDING) {
            return None;
        }
        let mut expected = format!("at most {cells} ({})", Field::TotalCellsPerTray);
        if part > 0 && rest > 0 {
            expected += &format!(" with {rest_field}");
        }
        let sum = Hundredths::from_hundredths(sum).map_or_else(|| "more".into(), |sum| sum.to_string());
        let field = if part > 0 { field } else { rest_field };
        Some(FieldError::new(field.name(), sum, expected))
    }
}

fn negative((field, value): Average) -> Option<FieldError> {
    let value = value.filter(|value| value.count() < 0)?;
    Some(FieldError::new(field.name(), value.to_string(), "0 or more"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::example_json;

    #[test]
    fn impossible_rates_and_counts_are_found() {
        for (old, new, expected) in [
            ("\"92.50\"", "\"0\"", ""),
            ("\"92.50\"", "\"100\"", ""),
            ("\"92.50\"", "null", ""),
            ("\"92.50\"", "\"100.01\"", "avg_germination_rate: expected a rate from 0 to 100, found 100.01"),
            ("\"85.94\"", "\"-5\"", "avg_usable_seedling_rate: expected a rate from 0 to 100, found -5.00"),
            // The variation of sizes can be larger than their mean.
            ("\"24.07\"", "\"250\"", ""),
            (":128,", ":null,", ""),
            ("\"9.60\"", "\"9.61\"", ""),
            (
                "\"9.60\"",
                "\"9.62\"",
                "avg_germinated_seedlings: expected at most 128 (total_cells_per_tray) with \
                avg_non_germinated_seedlings, found 128.02",
            ),
            (
                "\"118.40\",\"avg_non_germinated_seedlings\":\"9.60\"",
                "\"130\",\"avg_non_germinated_seedlings\":null",
                "avg_germinated_seedlings: expected at most 128 (total_cells_per_tray), found 130.00",
            ),
            ("\"9.60\"", "\"-1\"", "avg_non_germinated_seedlings: expected 0 or more, found -1.00"),
            (
                "\"118.40\",\"avg_non_germinated_seedlings\":\"9.60\"",
                "null,\"avg_non_germinated_seedlings\":\"118.40\"",
                "avg_germination_rate: expected about 7.50, as 9.60 of 128 cells are, found 92.50",
            ),
            (
                "\"110.00\"",
                "\"111\"",
                "avg_usable_seedlings: expected at most 128 (total_cells_per_tray) with avg_non_usable_cells, \
                found 129.00",
            ),
            (
                "\"110.00\",\"avg_non_usable_cells\":\"18.00\"",
                "null,\"avg_non_usable_cells\":\"130\"",
                "avg_non_usable_cells: expected at most 128 (total_cells_per_tray), found 130.00",
            ),
            (
                "\"110.00\",\"avg_non_usable_cells\":\"18.00\"",
                "\"130\",\"avg_non_usable_cells\":\"-5\"",
                "avg_non_usable_cells: expected 0 or more, found -5.00; \
                avg_usable_seedlings: expected at most 128 (total_cells_per_tray), found 130.00",
            ),
        ] {
            let json = example_json();
            assert!(json.contains(old));
            let found = Batch::from_json(&json.replace(old, new)).unwrap().implausible_values();
            let found: Vec<String> = found.iter().map(ToString::to_string).collect();
            assert_eq!(found.join("; "), expected, "{new}");
        }
    }
}
