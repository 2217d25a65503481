//! The held part of a text file: what is read and not yet consumed, and the line and column where it begins.
//! Knows lines and byte order marks, but no format.

use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};

use memchr::{memchr_iter, memrchr};

use super::Input;
use super::fault::Place;
use super::intake::{Halt, Intake};

/// How much is asked of the file at once: past this, fewer system calls no longer show.
const READ_BYTES: usize = 256 * 1024;

/// A window that moves over a file from its beginning to its end.
pub(super) struct Window<'a> {
    source: Box<dyn Read + Send>,
    bytes_read: &'a AtomicU64,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    line: u64,
    column: u64,
}

impl<'a> Window<'a> {
    pub(super) fn new(input: Input, bytes_read: &'a AtomicU64) -> Self {
        let source: Box<dyn Read + Send> = match input {
            Input::File(file) => Box::new(file),
            Input::Stream(stream) => stream,
        };
        Self { source, bytes_read, buffer: Vec::new(), start: 0, end: 0, line: 1, column: 1 }
    }

    /// What is held and not yet consumed.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// The line in which [`Window::bytes`] begins, from 1.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// The byte of its line at which [`Window::bytes`] begins, from 1.
    pub(super) fn column(&self) -> u64 {
        self.column
    }

    /// The line in which [`Window::bytes`] begins, as a place for a fault.
    pub(super) fn place(&self) -> Place {
        Place::Line(self.line)
    }

    /// Reads on and keeps what is held. False at the end of the file.
    ///
    /// The window grows by what is not consumed: whoever asks for more sees to the limit.
    pub(super) fn more(&mut self) -> io::Result<bool> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.buffer.len() < self.end + READ_BYTES {
            self.buffer.resize(self.end + READ_BYTES, 0);
        }
        let count = read_patiently(&mut self.source, &mut self.buffer[self.end..])?;
        self.end += count;
        self.bytes_read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count > 0)
    }

    /// Lets go of the first `count` bytes, and counts their lines.
    pub(super) fn consume(&mut self, count: usize) {
        let gone = &self.buffer[self.start..self.end][..count];
        match memrchr(b'\n', gone) {
            Some(last) => {
                self.line += memchr_iter(b'\n', &gone[..=last]).count() as u64;
                self.column = (count - last) as u64;
            }
            None => self.column += count as u64,
        }
        self.start += count;
    }

    /// Lets go of the first `count` bytes, which are one line with its end.
    pub(super) fn consume_line(&mut self, count: usize) {
        self.start += count;
        self.begin_line();
    }

    /// Counts a line whose end is no newline.
    pub(super) fn begin_line(&mut self) {
        self.line += 1;
        self.column = 1;
    }

    /// Lets go of white space, also of line ends. The byte that follows it, `None` at the end of the file.
    pub(super) fn skip_blank(&mut self) -> io::Result<Option<u8>> {
        loop {
            let blank = self.bytes().iter().take_while(|byte| is_blank(**byte)).count();
            self.consume(blank);
            match self.bytes().first().copied() {
                Some(byte) => return Ok(Some(byte)),
                None if !self.more()? => return Ok(None),
                None => {}
            }
        }
    }

    /// Lets go of a byte order mark at the beginning of the file. One of UTF-16 is refused: nothing here reads it.
    pub(super) fn skip_mark(&mut self, intake: &mut Intake<'_>) -> Result<(), Halt> {
        const UTF8: &[u8] = b"\xEF\xBB\xBF";
        while self.bytes().len() < UTF8.len() && self.more()? {}
        match self.bytes() {
            [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => {
                let expected = "UTF-8; save the file as UTF-8 (in Excel: \"CSV UTF-8\")";
                return Err(intake.broken(Place::Line(1), "text in UTF-16".into(), expected));
            }
            bytes if bytes.starts_with(UTF8) => self.start += UTF8.len(),
            _ => {}
        }
        Ok(())
    }
}

/// White space as JSON has it.
pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// Reads once, and again if a signal came between.
fn read_patiently(source: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match source.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}
