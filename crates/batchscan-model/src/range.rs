//! Which batches a reader wants, and the order they come in.

use crate::{BatchId, UtcInstant};

/// A range of creation dates, both ends inclusive (decision 011). `None` is unbounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DateRange {
    /// Batches on or after this instant.
    pub start: Option<UtcInstant>,
    /// Batches on or before this instant.
    pub end: Option<UtcInstant>,
}

/// The sort key of a batch: creation date, then id by its bytes (decision 018).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// When the batch was created.
    pub created: UtcInstant,
    /// Orders batches created at the same instant.
    pub id: BatchId,
}
