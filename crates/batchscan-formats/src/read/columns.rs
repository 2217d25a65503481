//! The columns of a table, by the names over them. Shared by every format that has columns.

use batchscan_model::{Field, FieldError, Record, Value};

use super::fault::Place;
use super::intake::{Halt, Intake};

/// The fields that a batch cannot be without. A table that lacks one has a fault, not one in every row.
const REQUIRED: [Field; 5] =
    [Field::BatchId, Field::BatchName, Field::BatchCreationDate, Field::NumberOfImages, Field::Warnings];

/// The field of each column; none where a name is at fault, so that the rows can still be judged.
///
/// An unknown, a repeated and a missing name is one fault each (decision 039). Without its required columns a table
/// is not read on.
pub(super) fn by_name<'n>(
    names: impl Iterator<Item = &'n str>,
    place: Place,
    intake: &mut Intake<'_>,
) -> Result<Vec<Option<Field>>, Halt> {
    let mut seen = Record::default();
    let mut columns = Vec::new();
    for (index, name) in names.enumerate() {
        columns.push(Field::from_name(name).filter(|field| seen.get(*field).is_none()));
        match Field::from_name(name) {
            Some(field) => seen.set(field, Value::Null),
            None if name.trim().is_empty() => intake.fault(place, nameless(index + 1))?,
            None => seen.unknown(name),
        }
    }
    seen.faults().iter().try_for_each(|fault| intake.fault(place, fault.clone()))?;
    let mut missing = REQUIRED.iter().filter(|field| seen.get(**field).is_none()).peekable();
    if missing.peek().is_none() {
        return Ok(columns);
    }
    missing.try_for_each(|field| intake.fault(place, absent(*field)))?;
    Err(Halt::Told)
}

fn nameless(number: usize) -> FieldError {
    let expected = "a field of a batch over every column".into();
    FieldError { field: format!("column {number}"), found: "no name".into(), expected }
}

fn absent(field: Field) -> FieldError {
    let expected = "a column of that name: this field is required".into();
    FieldError { field: field.name().into(), found: "nothing".into(), expected }
}

#[cfg(test)]
mod tests {
    use super::*;
    use batchscan_model::Batch;

    /// Decision 039.
    #[test]
    fn the_required_columns_are_those_that_a_batch_cannot_be_without() {
        let faults = Batch::from_record(&Record::default()).unwrap_err().0;
        let judged: Vec<&str> = faults.iter().map(|fault| fault.field.as_str()).collect();
        assert_eq!(judged, REQUIRED.map(Field::name));
    }
}
