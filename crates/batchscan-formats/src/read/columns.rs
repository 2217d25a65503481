//! What the columns of a table are.

use batchscan_model::{Field, Kind};

/// What a column is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Field(Column),
    /// One of the two columns with the date and the time of day.
    DateOrTime,
    Ignored,
    /// Without a title, and so without values.
    Unnamed,
}

/// Whether the row of a table has no date and lacks another required field. `is_empty` says it of a column.
pub(super) fn is_no_batch(roles: &[Role], is_empty: impl Fn(usize) -> bool) -> bool {
    const OTHERS: [Field; 4] = [Field::BatchId, Field::BatchName, Field::NumberOfImages, Field::Warnings];
    let mut dates = (0..roles.len()).filter(|index| match roles[*index] {
        Role::Field(column) => column.kind == Kind::Instant,
        role => role == Role::DateOrTime,
    });
    let is_other = |role: &Role| matches!(role, Role::Field(column) if OTHERS.contains(&column.field));
    dates.all(&is_empty) && roles.iter().enumerate().any(|(index, role)| is_other(role) && is_empty(index))
}

/// A column with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) field: Field,
    pub(super) kind: Kind,
    /// Whether usual values need no conversion.
    pub(super) is_plain: bool,
}
