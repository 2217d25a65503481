//! Which fields a file has.

use std::borrow::Cow;

use batchscan_model::{Batch, Field, FieldValue, Kind};

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

/// The title of a column in a file for Excel, with its unit. Excel has no time zones: `import` reads the zone there.
pub(super) fn excel_title(field: Field) -> Cow<'static, str> {
    match (field.kind(), field.unit()) {
        (Kind::Instant, _) => format!("{field} (UTC)").into(),
        (_, Some("percent")) => format!("{field} (%)").into(),
        _ => field.name().into(),
    }
}
