//! The part of a text file that is read and not yet consumed, with its line and column. Knows lines, byte order marks
//! and encodings, but no format.

use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};

use batchscan_model::json_scan::is_json_whitespace;
use encoding_rs::{Decoder, Encoding, UTF_16BE, UTF_16LE};
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
    /// For another encoding than UTF-8.
    decoder: Option<Decoder>,
}

impl<'a> TextBuffer<'a> {
    pub(super) fn new(source: Box<dyn Read>, bytes_read: &'a AtomicU64) -> Self {
        Self { source, bytes_read, buffer: Vec::new(), start: 0, end: 0, line: 1, column: 1, decoder: None }
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
        if self.decoder.is_some() {
            return Ok(self.decode(self.end - count) || count > 0);
        }
        Ok(count > 0)
    }

    /// Reads the bytes in the buffer and all that follow in another encoding.
    pub(super) fn set_encoding(&mut self, encoding: &'static Encoding) {
        self.decoder = Some(encoding.new_decoder_without_bom_handling());
        self.decode(self.start);
    }

    /// The encoding of the file, if it is not UTF-8.
    pub(super) fn encoding(&self) -> Option<&'static Encoding> {
        self.decoder.as_ref().map(Decoder::encoding)
    }

    /// Decodes the bytes of the buffer from `start` on, and returns whether there are any.
    fn decode(&mut self, start: usize) -> bool {
        let Some(decoder) = &mut self.decoder else { return false };
        let bytes = &self.buffer[start..self.end];
        let mut text = String::with_capacity(decoder.max_utf8_buffer_length(bytes.len()).unwrap_or(0));
        let _ = decoder.decode_to_string(bytes, &mut text, bytes.is_empty());
        if bytes.is_empty() {
            // At the end of the file, where it must not be used again.
            *decoder = decoder.encoding().new_decoder_without_bom_handling();
        }
        self.buffer.truncate(start);
        self.buffer.extend_from_slice(text.as_bytes());
        self.end = self.buffer.len();
        !text.is_empty()
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

    /// Drops a byte order mark at the start of the file, and decodes UTF-16 after it.
    pub(super) fn skip_byte_order_mark(&mut self) -> io::Result<bool> {
        const UTF8: &[u8] = b"\xEF\xBB\xBF";
        while self.bytes().len() < UTF8.len() && self.fill()? {}
        let utf16 = match self.bytes() {
            [0xFF, 0xFE, ..] => UTF_16LE,
            [0xFE, 0xFF, ..] => UTF_16BE,
            bytes => {
                let is_marked = bytes.starts_with(UTF8);
                self.start += if is_marked { UTF8.len() } else { 0 };
                return Ok(is_marked);
            }
        };
        self.start += 2;
        self.set_encoding(utf16);
        Ok(true)
    }

    /// Drops a byte order mark of JSON, which is always UTF-8.
    pub(super) fn skip_utf8_mark(&mut self, collector: &mut Collector<'_>) -> Result<(), Stop> {
        self.skip_byte_order_mark()?;
        match self.decoder {
            None => Ok(()),
            Some(_) => {
                Err(collector.fail(Location::Line(1), unexpected("UTF-16", "UTF-8; save the file as UTF-8")))
            }
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
