//! Splits a CSV file into rows and cells. Strict with quotes: a lenient reader would take the rest of a file as one
//! cell.

use std::borrow::Cow;

use batchscan_model::FieldError;
use memchr::{memchr, memchr3};

use super::collector::{Collector, Stop, problem, unexpected};
use super::input::RECORD_BYTES_MAX;
use super::json_syntax::excerpt;
use super::text_buffer::TextBuffer;

/// The row at the start of a buffer: its end and its cells.
#[derive(Default)]
pub(super) struct Row {
    cells: Vec<Cell>,
    state: State,
    /// The position of the search, which continues here when the buffer grows.
    at: usize,
    cell_start: usize,
    cell_is_doubled: bool,
    ends_in_bare_return: bool,
}

/// The range of a cell in the row, without its quotes.
struct Cell {
    start: usize,
    end: usize,
    /// Whether it contains doubled quotes.
    is_doubled: bool,
}

/// Where in the row the next byte is.
#[derive(Clone, Copy, Default)]
enum State {
    /// At the start of a cell.
    #[default]
    CellStart,
    /// In a cell without quotes around it, where a quote is an ordinary byte.
    Plain,
    /// Inside quotes.
    Quoted,
    /// After a quote inside quotes: a second one is part of the text, anything else ends the cell.
    AfterQuote,
    /// After a cell.
    AfterCell,
    /// After a carriage return.
    AfterReturn,
}

/// The result of the search for the end of the row.
enum Found {
    End,
    /// More bytes are needed.
    Incomplete,
    /// A quoted cell continues after its closing quote.
    TextAfterQuote,
}

impl Row {
    /// Finds the next row. False at the end of the file.
    pub(super) fn find(
        &mut self,
        text: &mut TextBuffer<'_>,
        delimiter: u8,
        collector: &mut Collector<'_>,
    ) -> Result<bool, Stop> {
        self.cells.clear();
        (self.state, self.at, self.ends_in_bare_return) = (State::CellStart, 0, false);
        let mut is_last = false;
        loop {
            match self.find_end(text.bytes(), delimiter, is_last) {
                _ if self.at > RECORD_BYTES_MAX => {
                    return Err(collector.fail(text.location(), self.too_long()));
                }
                Found::End => return Ok(self.at > 0),
                Found::TextAfterQuote => {
                    return Err(collector.fail(text.location(), self.text_after_quote(text.bytes())));
                }
                Found::Incomplete if is_last => {
                    let error = problem("unexpected end of file in a quoted cell of this row");
                    return Err(collector.fail(text.location(), error));
                }
                Found::Incomplete => is_last = !text.fill()?,
            }
        }
    }

    /// The number of cells.
    pub(super) fn cell_count(&self) -> usize {
        self.cells.len()
    }

    /// The bytes of the row, with its line end.
    pub(super) fn bytes<'t>(&self, text: &'t TextBuffer<'_>) -> &'t [u8] {
        &text.bytes()[..self.at]
    }

    /// The cells. `text` is the text of the row.
    pub(super) fn cells<'t>(&self, text: &'t str) -> impl Iterator<Item = Cow<'t, str>> {
        self.cells.iter().map(move |cell| match &text[cell.start..cell.end] {
            inner if cell.is_doubled => Cow::Owned(inner.replace("\"\"", "\"")),
            inner => Cow::Borrowed(inner),
        })
    }

    /// Drops the row from the buffer.
    pub(super) fn consume(&self, text: &mut TextBuffer<'_>) {
        text.consume(self.at);
        if self.ends_in_bare_return {
            text.begin_line();
        }
    }

    /// Continues the search. The end of the file ends a row, but not a quoted cell.
    fn find_end(&mut self, bytes: &[u8], delimiter: u8, is_last: bool) -> Found {
        loop {
            let next = bytes.get(self.at).copied();
            let is_cut = next.is_none() && !is_last;
            match self.state {
                State::Plain => match memchr3(delimiter, b'\n', b'\r', &bytes[self.at..]) {
                    Some(skipped) => self.close(self.at + skipped),
                    None if is_last => self.close(bytes.len()),
                    None => return self.wait(bytes),
                },
                State::Quoted => match memchr(b'"', &bytes[self.at..]) {
                    Some(skipped) => self.go(self.at + skipped + 1, State::AfterQuote),
                    None => return self.wait(bytes),
                },
                _ if is_cut => return Found::Incomplete,
                State::CellStart if next == Some(b'"') => self.open(self.at + 1, State::Quoted),
                State::CellStart => self.open(self.at, State::Plain),
                State::AfterQuote if next == Some(b'"') => {
                    self.cell_is_doubled = true;
                    self.go(self.at + 1, State::Quoted);
                }
                State::AfterQuote => self.close_before_quote(),
                State::AfterCell if next == Some(delimiter) => self.go(self.at + 1, State::CellStart),
                State::AfterCell => match next {
                    Some(b'\r') => self.go(self.at + 1, State::AfterReturn),
                    Some(b'\n') => return self.end(1),
                    None => return self.end(0),
                    Some(_) => return Found::TextAfterQuote,
                },
                State::AfterReturn => {
                    self.ends_in_bare_return = next != Some(b'\n');
                    return self.end(usize::from(next == Some(b'\n')));
                }
            }
        }
    }

    fn go(&mut self, at: usize, state: State) {
        (self.at, self.state) = (at, state);
    }

    fn open(&mut self, at: usize, state: State) {
        (self.cell_start, self.cell_is_doubled) = (at, false);
        self.go(at, state);
    }

    fn close(&mut self, at: usize) {
        self.cells.push(Cell { start: self.cell_start, end: at, is_doubled: false });
        self.go(at, State::AfterCell);
    }

    fn close_before_quote(&mut self) {
        let is_doubled = self.cell_is_doubled;
        self.cells.push(Cell { start: self.cell_start, end: self.at - 1, is_doubled });
        self.state = State::AfterCell;
    }

    fn wait(&mut self, bytes: &[u8]) -> Found {
        self.at = bytes.len();
        Found::Incomplete
    }

    fn end(&mut self, line_end: usize) -> Found {
        self.at += line_end;
        Found::End
    }

    fn too_long(&self) -> FieldError {
        let expected = match self.state {
            State::Quoted | State::AfterQuote => "the closing \" of its last cell",
            _ => "a shorter row",
        };
        unexpected(format!("more than {RECORD_BYTES_MAX} bytes"), expected)
    }

    fn text_after_quote(&self, bytes: &[u8]) -> FieldError {
        let found =
            format!("{} after the closing \" of cell {}", excerpt(&bytes[self.at..]), self.cells.len());
        unexpected(found, "the end of the cell; a \" inside quotes is doubled")
    }
}
