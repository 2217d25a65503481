//! A batch as a row of a table: eighteen cells in the order of the wire. Knows types, not how they are written.

use batchscan_model::{Batch, Field, Hundredths, UtcInstant};

/// How many cells a row has.
pub(super) const CELLS: usize = Field::ALL.len();

/// One value of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cell<'a> {
    Null,
    Text(&'a str),
    Instant(UtcInstant),
    Count(u64),
    Decimal(Hundredths),
    Flag(bool),
}

/// What the cells of a column are, where they are not null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Instant,
    Count,
    Decimal,
    Flag,
}

/// The batch's cells, each at the place of its field.
pub(super) fn cells(batch: &Batch) -> [Cell<'_>; CELLS] {
    [
        Cell::Text(batch.batch_id.as_str()),
        Cell::Text(&batch.batch_name),
        Cell::Instant(batch.batch_creation_date),
        text(batch.crop_type.as_ref()),
        Cell::Count(batch.number_of_images),
        batch.total_cells_per_tray.map_or(Cell::Null, Cell::Count),
        decimal(batch.avg_germinated_seedlings),
        decimal(batch.avg_non_germinated_seedlings),
        decimal(batch.avg_germination_rate),
        decimal(batch.avg_usable_seedlings),
        decimal(batch.avg_non_usable_cells),
        decimal(batch.avg_usable_seedling_rate),
        decimal(batch.avg_coefficient_of_variation),
        decimal(batch.avg_median_seedling_size_mm2),
        text(batch.scanned_by_email.as_ref()),
        text(batch.analysis_link.as_ref()),
        text(batch.comment.as_ref()),
        Cell::Flag(batch.warnings),
    ]
}

/// What a field's cells are.
pub(super) fn kind(field: Field) -> Kind {
    match field {
        Field::BatchId
        | Field::BatchName
        | Field::CropType
        | Field::ScannedByEmail
        | Field::AnalysisLink
        | Field::Comment => Kind::Text,
        Field::BatchCreationDate => Kind::Instant,
        Field::NumberOfImages | Field::TotalCellsPerTray => Kind::Count,
        Field::AvgGerminatedSeedlings
        | Field::AvgNonGerminatedSeedlings
        | Field::AvgGerminationRate
        | Field::AvgUsableSeedlings
        | Field::AvgNonUsableCells
        | Field::AvgUsableSeedlingRate
        | Field::AvgCoefficientOfVariation
        | Field::AvgMedianSeedlingSizeMm2 => Kind::Decimal,
        Field::Warnings => Kind::Flag,
    }
}

fn text(value: Option<&String>) -> Cell<'_> {
    value.map_or(Cell::Null, |text| Cell::Text(text))
}

fn decimal(value: Option<Hundredths>) -> Cell<'static> {
    value.map_or(Cell::Null, Cell::Decimal)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{bare, full};
    use super::*;

    /// The value that stands for a field in the batch's JSON text.
    fn in_json(batch: &Batch, field: Field) -> serde_json::Value {
        let json: serde_json::Value = serde_json::from_str(&batch.to_json()).unwrap();
        json[field.name()].clone()
    }

    #[test]
    fn every_cell_stands_at_the_place_of_its_field_and_is_of_its_kind() {
        let batch = full();
        for (field, cell) in Field::ALL.into_iter().zip(cells(&batch)) {
            let (found, text) = match cell {
                Cell::Null => panic!("{field} has a value"),
                Cell::Text(text) => (Kind::Text, text.to_owned()),
                Cell::Instant(instant) => (Kind::Instant, instant.to_string()),
                Cell::Count(count) => (Kind::Count, count.to_string()),
                Cell::Decimal(decimal) => (Kind::Decimal, decimal.to_string()),
                Cell::Flag(flag) => (Kind::Flag, flag.to_string()),
            };
            let told = in_json(&batch, field);
            assert_eq!(text, told.as_str().map_or_else(|| told.to_string(), str::to_owned), "{field}");
            assert_eq!(found, kind(field), "{field}");
        }
    }

    #[test]
    fn a_cell_is_null_where_the_interface_lets_it_be() {
        let batch = bare("b");
        for (field, cell) in Field::ALL.into_iter().zip(cells(&batch)) {
            assert_eq!(cell == Cell::Null, field.is_nullable(), "{field}");
        }
    }
}
