//! The part of a text file that is read and not yet consumed, with its line and column. Knows lines and byte order
//! marks, but no format.

use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};

use batchscan_model::json_scan::is_json_whitespace;
use memchr::{memchr_iter, memrchr};

use super::collector::{Collector, Stop, unexpected};
use super::error::Location;

/// The longest record of a text file. The longest valid batch has 64 KiB; without a limit, one lost newline or open
/// quote would load the rest of the file into memory.
pub const RECORD_BYTES_MAX: usize = 1024 * 1024;

/// Bytes per read. Larger reads are not faster.
const READ_BYTES: usize = 256 * 1024;

/// A buffer that moves over a file from start to end.
pub(super) struct TextBuffer<'a> {
    source: Box<dyn Read>,
    bytes_read: &'a AtomicU64,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    line: u64,
    column: u64,
}

impl<'a> TextBuffer<'a> {
    pub(super) fn new(source: Box<dyn Read>, bytes_read: &'a AtomicU64) -> Self {
        Self { source, bytes_read, buffer: Vec::new(), start: 0, end: 0, line: 1, column: 1 }
    }

    /// The bytes that are read and not consumed.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// The line number of the first byte, from 1.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// The column of the first byte, in bytes from 1.
    pub(super) fn column(&self) -> u64 {
        self.column
    }

    /// The location of the first byte.
    pub(super) fn location(&self) -> Location {
        Location::Line(self.line)
    }

    /// Reads more bytes after those in the buffer. False at the end of the file. The caller limits the growth.
    pub(super) fn fill(&mut self) -> io::Result<bool> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.buffer.len() < self.end + READ_BYTES {
            self.buffer.resize(self.end + READ_BYTES, 0);
        }
        let count = read_retrying(&mut self.source, &mut self.buffer[self.end..])?;
        self.end += count;
        self.bytes_read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count > 0)
    }

    /// Drops the first `count` bytes and counts their lines.
    pub(super) fn consume(&mut self, count: usize) {
        let dropped = &self.buffer[self.start..self.end][..count];
        match memrchr(b'\n', dropped) {
            Some(last) => {
                self.line += memchr_iter(b'\n', &dropped[..=last]).count() as u64;
                self.column = (count - last) as u64;
            }
            None => self.column += count as u64,
        }
        self.start += count;
    }

    /// Drops the first `count` bytes, which are one line with its end.
    pub(super) fn consume_line(&mut self, count: usize) {
        self.start += count;
        self.begin_line();
    }

    /// Counts a line that did not end in a newline.
    pub(super) fn begin_line(&mut self) {
        self.line += 1;
        self.column = 1;
    }

    /// Drops whitespace, also line ends. Returns the next byte, `None` at the end of the file.
    pub(super) fn skip_whitespace(&mut self) -> io::Result<Option<u8>> {
        loop {
            let blank = self.bytes().iter().take_while(|byte| is_json_whitespace(**byte)).count();
            self.consume(blank);
            match self.bytes().first().copied() {
                Some(byte) => return Ok(Some(byte)),
                None if !self.fill()? => return Ok(None),
                None => {}
            }
        }
    }

    /// Drops a byte order mark at the start of the file. Rejects UTF-16.
    pub(super) fn skip_byte_order_mark(&mut self, collector: &mut Collector<'_>) -> Result<bool, Stop> {
        const UTF8: &[u8] = b"\xEF\xBB\xBF";
        while self.bytes().len() < UTF8.len() && self.fill()? {}
        match self.bytes() {
            [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => {
                let expected = "UTF-8; save the file as UTF-8 (in Excel: \"CSV UTF-8\")";
                Err(collector.fail(Location::Line(1), unexpected("UTF-16", expected)))
            }
            bytes if bytes.starts_with(UTF8) => {
                self.start += UTF8.len();
                Ok(true)
            }
            _ => Ok(false),
        }
    }
}

/// Reads once; retries if a signal interrupted it.
fn read_retrying(source: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match source.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}
