//! Which fields a file has.

use batchscan_model::{Batch, Field, FieldValue};

/// The fields of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Columns {
    /// Every field in wire order. The JSON formats also keep fields this version does not know.
    #[default]
    All,
    /// These fields in this order. At least one; none is repeated.
    Chosen(Vec<Field>),
}

impl Columns {
    /// The fields in the order of the file.
    pub fn fields(&self) -> &[Field] {
        match self {
            Columns::All => &Field::ALL,
            Columns::Chosen(fields) => fields,
        }
    }

    /// The fields with their values in a batch.
    pub fn values<'b>(&self, batch: &'b Batch) -> impl Iterator<Item = (Field, FieldValue<'b>)> {
        let values = batch.values();
        self.fields().iter().map(move |field| (*field, values[*field as usize]))
    }
}
