//! Files to batches and back.
//!
//! | module | owns |
//! |---|---|
//! | [`read`] | readers: a file becomes batches, or a list of errors with their location |
//! | [`write`] | writers: batches become a file |
//!
//! Knows nothing about HTTP, databases or where a file is kept.

pub mod read;
pub mod write;
