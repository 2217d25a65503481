//! Files to batches and back. Knows nothing about HTTP, databases or where files are stored.
//!
//! | module | owns |
//! |---|---|
//! | `format` | [`Format`]: the formats, by name and file extension |
//! | [`read`] | readers: a file becomes batches, or a list of errors with their location |
//! | [`mod@write`] | writers: batches become a file |

mod format;
#[cfg(test)]
mod fuzz;
pub mod read;
#[cfg(test)]
mod testing;
pub mod write;

pub use format::Format;
