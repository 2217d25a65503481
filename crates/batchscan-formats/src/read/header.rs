//! Which column of a table has which field, for CSV, Parquet and Excel.

use batchscan_model::{Field, FieldError, RawBatch, Value};

use super::collector::{Collector, Stop};
use super::error::Location;

/// The field of each column; `None` for an invalid name, so that the rows can still be validated.
///
/// Each unknown, duplicate or missing name is one error (decision 039). Without a required column the rows are not read.
pub(super) fn match_columns<'n>(
    names: impl Iterator<Item = &'n str>,
    location: Location,
    collector: &mut Collector<'_>,
) -> Result<Vec<Option<Field>>, Stop> {
    let mut seen = RawBatch::default();
    let mut columns = Vec::new();
    // Spaces around a name are not seen in a spreadsheet.
    for (index, name) in names.map(str::trim).enumerate() {
        columns.push(Field::from_name(name).filter(|field| seen.get(*field).is_none()));
        match Field::from_name(name) {
            Some(field) => seen.set(field, Value::Null),
            None if name.is_empty() => {
                let column = format!("column {}", index + 1);
                collector.add_error(location, FieldError::problem(&column, "missing column name"))?;
            }
            None => seen.add_unknown(name),
        }
    }
    seen.errors().iter().try_for_each(|error| collector.add_error(location, error.clone()))?;
    let is_missing = |field: &Field| !field.is_nullable() && seen.get(*field).is_none();
    let missing: Vec<Field> = Field::ALL.into_iter().filter(is_missing).collect();
    if missing.is_empty() {
        return Ok(columns);
    }
    for field in missing {
        collector.add_error(location, FieldError::problem(field.name(), "missing required column"))?;
    }
    Err(Stop::Errors)
}
