//! Files to batches and back. Knows nothing about HTTP, databases or where files are stored.
//!
//! | module | owns |
//! |---|---|
//! | `format` | [`Format`]: the formats, by name and file extension |
//! | `parquet_checksum` | the checksum in our Parquet files |
//! | [`read`] | readers: a file becomes batches, or a list of errors with their location |
//! | [`mod@write`] | writers: batches become a file |

mod format;
#[cfg(test)]
mod fuzz;
mod parquet_checksum;
pub mod read;
#[cfg(test)]
mod testing;
pub mod write;

pub use format::{Format, unsupported_hint};
