//! The eighteen fields of a batch, in the order of the wire. Knows names, not values.

use std::fmt;

/// A field of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each variant is the field of that name in the interface, section 2")]
pub enum Field {
    BatchId,
    BatchName,
    BatchCreationDate,
    CropType,
    NumberOfImages,
    TotalCellsPerTray,
    AvgGerminatedSeedlings,
    AvgNonGerminatedSeedlings,
    AvgGerminationRate,
    AvgUsableSeedlings,
    AvgNonUsableCells,
    AvgUsableSeedlingRate,
    AvgCoefficientOfVariation,
    AvgMedianSeedlingSizeMm2,
    ScannedByEmail,
    AnalysisLink,
    Comment,
    Warnings,
}

impl Field {
    /// Every field, in the order of the wire.
    pub const ALL: [Field; 18] = [
        Field::BatchId,
        Field::BatchName,
        Field::BatchCreationDate,
        Field::CropType,
        Field::NumberOfImages,
        Field::TotalCellsPerTray,
        Field::AvgGerminatedSeedlings,
        Field::AvgNonGerminatedSeedlings,
        Field::AvgGerminationRate,
        Field::AvgUsableSeedlings,
        Field::AvgNonUsableCells,
        Field::AvgUsableSeedlingRate,
        Field::AvgCoefficientOfVariation,
        Field::AvgMedianSeedlingSizeMm2,
        Field::ScannedByEmail,
        Field::AnalysisLink,
        Field::Comment,
        Field::Warnings,
    ];

    /// Whether a batch may do without a value (interface section 2).
    pub const fn is_nullable(self) -> bool {
        !matches!(
            self,
            Field::BatchId
                | Field::BatchName
                | Field::BatchCreationDate
                | Field::NumberOfImages
                | Field::Warnings
        )
    }

    /// The field of that name.
    pub fn from_name(name: &str) -> Option<Field> {
        Field::ALL.into_iter().find(|field| field.name() == name)
    }

    /// The known name nearest to `name`, if it is near enough to be meant: for "did you mean".
    pub fn nearest(name: &str) -> Option<Field> {
        const NEAR: usize = 3;
        let folded = name.trim().to_ascii_lowercase().replace([' ', '-'], "_");
        Field::ALL
            .into_iter()
            .map(|field| (edits(&folded, field.name()), field))
            .min_by_key(|(distance, _)| *distance)
            .filter(|(distance, _)| *distance <= NEAR)
            .map(|(_, field)| field)
    }
}

/// Each field's name, and the same as JSON has it before a value.
macro_rules! names {
    ($($field:ident => $name:literal,)*) => {
        impl Field {
            /// The field's name on the wire and in files.
            pub const fn name(self) -> &'static str {
                match self { $(Field::$field => $name,)* }
            }

            /// The name as a member of an object, up to its value.
            pub(crate) const fn member(self) -> &'static str {
                match self { $(Field::$field => concat!("\"", $name, "\":"),)* }
            }
        }
    };
}

names! {
    BatchId => "batch_id",
    BatchName => "batch_name",
    BatchCreationDate => "batch_creation_date",
    CropType => "crop_type",
    NumberOfImages => "number_of_images",
    TotalCellsPerTray => "total_cells_per_tray",
    AvgGerminatedSeedlings => "avg_germinated_seedlings",
    AvgNonGerminatedSeedlings => "avg_non_germinated_seedlings",
    AvgGerminationRate => "avg_germination_rate",
    AvgUsableSeedlings => "avg_usable_seedlings",
    AvgNonUsableCells => "avg_non_usable_cells",
    AvgUsableSeedlingRate => "avg_usable_seedling_rate",
    AvgCoefficientOfVariation => "avg_coefficient_of_variation",
    AvgMedianSeedlingSizeMm2 => "avg_median_seedling_size_mm2",
    ScannedByEmail => "scanned_by_email",
    AnalysisLink => "analysis_link",
    Comment => "comment",
    Warnings => "warnings",
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The number of single-byte edits between two names. A name far longer than ours is simply far.
fn edits(a: &str, b: &str) -> usize {
    if a.len() > 2 * b.len() {
        return a.len();
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.bytes().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_found_by_its_name_and_stands_at_its_place() {
        for (place, field) in Field::ALL.into_iter().enumerate() {
            assert_eq!(Field::from_name(field.name()), Some(field));
            assert_eq!(field as usize, place);
        }
    }

    #[test]
    fn a_typo_is_brought_back_and_a_stranger_is_not() {
        assert_eq!(Field::nearest("germination_rate"), None);
        assert_eq!(Field::nearest("Batch Name"), Some(Field::BatchName));
        assert_eq!(Field::nearest("coment"), Some(Field::Comment));
        assert_eq!(Field::nearest("price"), None);
    }
}
