//! Which batches are asked for, and from where on.

use crate::{BatchId, UtcInstant};

/// A window of creation instants, both ends inclusive (decision 011). A missing end is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DateRange {
    /// Batches on or after this instant.
    pub start: Option<UtcInstant>,
    /// Batches on or before this instant.
    pub end: Option<UtcInstant>,
}

/// The place of a batch in the order of all batches: creation instant, then id by its bytes (decision 018).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// When the batch was created.
    pub created: UtcInstant,
    /// Which of those created at that instant.
    pub id: BatchId,
}
