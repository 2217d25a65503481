//! The source of a file's bytes.

use std::fs::File;
use std::io::Read;

/// The longest record of a text file. The longest valid batch has 64 KiB; without a limit, one lost newline or open
/// quote would load the rest of the file into memory.
pub const RECORD_BYTES_MAX: usize = 1024 * 1024;

/// A source of bytes.
pub enum Input {
    /// An open file. A pipe or device is read as a stream.
    File(File),
    /// Standard input or a pipe: read once, from start to end.
    Stream(Box<dyn Read + Send>),
}
