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

/// A column with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) field: Field,
    pub(super) kind: Kind,
    /// Whether usual values need no conversion.
    pub(super) is_plain: bool,
}
