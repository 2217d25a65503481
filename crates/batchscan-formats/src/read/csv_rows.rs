//! Splits a CSV file into rows and cells. Strict with quotes: a lenient reader would take the rest of a file as one
//! cell.

use std::borrow::Cow;

use memchr::{memchr, memchr3};

use super::collector::{Collector, Stop, problem, unexpected};
use super::json_syntax::excerpt;
use super::text_buffer::{RECORD_BYTES_MAX, TextBuffer};

/// The row at the start of a buffer.
#[derive(Default)]
pub(super) struct Row {
    cells: Vec<Cell>,
    /// With the line end.
    length: usize,
    ends_in_bare_return: bool,
}

/// The range of a cell in the row, without its quotes.
struct Cell {
    start: usize,
    end: usize,
    is_quoted: bool,
    /// Whether it contains doubled quotes.
    is_doubled: bool,
}

/// Why the end of a row was not found.
enum Unfinished {
    /// More bytes are needed.
    Cut,
    /// More bytes are needed for a quoted cell.
    CutInQuotes,
    /// A quoted cell continues after its closing quote, at this position.
    TextAfterQuote(usize),
}

impl Row {
    /// Finds the next row. False at the end of the file.
    pub(super) fn find(
        &mut self,
        text: &mut TextBuffer<'_>,
        delimiter: u8,
        collector: &mut Collector<'_>,
    ) -> Result<bool, Stop> {
        let too_long = |expected| unexpected(format!("more than {RECORD_BYTES_MAX} bytes"), expected);
        let mut is_last = false;
        loop {
            let is_too_long = text.bytes().len() > RECORD_BYTES_MAX;
            let error = match self.split(text.bytes(), delimiter, is_last) {
                Ok(()) if self.length <= RECORD_BYTES_MAX => return Ok(self.length > 0),
                Ok(()) => too_long("a shorter row"),
                Err(Unfinished::TextAfterQuote(at)) => {
                    let (found, cell) = (excerpt(&text.bytes()[at..]), self.cells.len());
                    let found = format!("{found} after the closing \" of cell {cell}");
                    unexpected(found, "the end of the cell; a \" inside quotes is doubled")
                }
                Err(Unfinished::CutInQuotes) if is_too_long => too_long("the closing \" of its last cell"),
                Err(Unfinished::Cut) if is_too_long => too_long("a shorter row"),
                Err(_) if is_last => problem("unexpected end of file in a quoted cell of this row"),
                Err(_) => {
                    is_last = !text.fill()?;
                    continue;
                }
            };
            return Err(collector.fail(text.location(), error));
        }
    }

    pub(super) fn cell_count(&self) -> usize {
        self.cells.len()
    }

    /// The bytes of the row, with its line end.
    pub(super) fn bytes<'t>(&self, text: &'t TextBuffer<'_>) -> &'t [u8] {
        &text.bytes()[..self.length]
    }

    /// The cells, and whether they are quoted. `text` is the text of the row.
    pub(super) fn cells<'t>(&self, text: &'t str) -> impl Iterator<Item = (Cow<'t, str>, bool)> {
        self.cells.iter().map(move |cell| match &text[cell.start..cell.end] {
            inner if cell.is_doubled => (Cow::Owned(inner.replace("\"\"", "\"")), true),
            inner => (Cow::Borrowed(inner), cell.is_quoted),
        })
    }

    /// Whether every cell is quoted.
    pub(super) fn is_quoted(&self) -> bool {
        self.cells.iter().all(|cell| cell.is_quoted)
    }

    /// Drops the row from the buffer.
    pub(super) fn consume(&self, text: &mut TextBuffer<'_>) {
        text.consume(self.length);
        if self.ends_in_bare_return {
            text.begin_line();
        }
    }

    /// Splits the row that the bytes begin with. The end of the file ends a row, but not a quoted cell.
    fn split(&mut self, bytes: &[u8], delimiter: u8, is_last: bool) -> Result<(), Unfinished> {
        self.cells.clear();
        self.ends_in_bare_return = false;
        let mut start = 0;
        loop {
            let is_quoted = bytes.get(start) == Some(&b'"');
            let cell = if is_quoted {
                quoted_cell(bytes, start + 1, is_last).ok_or(Unfinished::CutInQuotes)?
            } else {
                let length = memchr3(delimiter, b'\n', b'\r', &bytes[start..]);
                let length = length.or(is_last.then_some(bytes.len() - start)).ok_or(Unfinished::Cut)?;
                Cell { start, end: start + length, is_quoted: false, is_doubled: false }
            };
            let after = cell.end + usize::from(is_quoted);
            self.cells.push(cell);
            self.length = match bytes.get(after) {
                Some(byte) if *byte == delimiter => {
                    start = after + 1;
                    continue;
                }
                None => after,
                Some(b'\n') => after + 1,
                Some(b'\r') => match bytes.get(after + 1) {
                    Some(b'\n') => after + 2,
                    None if !is_last => return Err(Unfinished::Cut),
                    _ => {
                        self.ends_in_bare_return = true;
                        after + 1
                    }
                },
                Some(_) => return Err(Unfinished::TextAfterQuote(after)),
            };
            return Ok(());
        }
    }
}

/// The cell after an opening quote; `None` if its closing quote is not among the bytes.
fn quoted_cell(bytes: &[u8], start: usize, is_last: bool) -> Option<Cell> {
    let mut cell = Cell { start, end: start, is_quoted: true, is_doubled: false };
    loop {
        cell.end += memchr(b'"', &bytes[cell.end..])?;
        match bytes.get(cell.end + 1) {
            Some(b'"') => (cell.end, cell.is_doubled) = (cell.end + 2, true),
            None if !is_last => return None,
            _ => return Some(cell),
        }
    }
}
