//! Tables and JSON for `list` and `summary`. Batches are added one by one, in bounded memory. No I/O.

pub(crate) mod cells;
pub(crate) mod latest_batches;
mod statistics;
pub(crate) mod summary;
