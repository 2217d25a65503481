//! Finds the rows of a CSV file and the cells in them. Knows quotes, delimiters and line ends, but not what a cell
//! means. Strict where a lenient reader would draw the rest of a file into one cell.

use std::borrow::Cow;

use memchr::{memchr, memchr3};

use super::RECORD_BYTES_MAX;
use super::intake::{Halt, Intake};
use super::syntax::excerpt;
use super::window::Window;

/// The row at which a window begins: where it ends, and where its cells are.
#[derive(Default)]
pub(super) struct Row {
    cells: Vec<Cell>,
    state: State,
    /// How far the search has come. It goes on from here when the window grows.
    at: usize,
    cell_start: usize,
    cell_is_doubled: bool,
    ends_in_bare_return: bool,
}

/// A cell's place in the row, without the quotes around it.
struct Cell {
    start: usize,
    end: usize,
    /// Whether quotes are doubled inside.
    is_doubled: bool,
}

/// What the byte at hand is to the row.
#[derive(Clone, Copy, Default)]
enum State {
    /// The first of a cell.
    #[default]
    CellStart,
    /// One of a cell without quotes around it. A quote is nothing special there.
    Plain,
    /// One inside quotes.
    Quoted,
    /// The one after a quote inside quotes: either both are one quote, or the cell has ended.
    AfterQuote,
    /// The one after a cell.
    AfterCell,
    /// The one after a carriage return.
    AfterReturn,
}

/// What became of the search for the row's end.
enum Found {
    End,
    /// It is not among these bytes.
    Nothing,
    /// A quoted cell goes on after its closing quote.
    TextAfterQuote,
}

impl Row {
    /// Finds the next row. False at the end of the file.
    pub(super) fn find(
        &mut self,
        window: &mut Window<'_>,
        delimiter: u8,
        intake: &mut Intake<'_>,
    ) -> Result<bool, Halt> {
        self.cells.clear();
        (self.state, self.at, self.ends_in_bare_return) = (State::CellStart, 0, false);
        let mut is_last = false;
        loop {
            match self.find_end(window.bytes(), delimiter, is_last) {
                _ if self.at > RECORD_BYTES_MAX => return Err(self.too_long(window, intake)),
                Found::End => return Ok(self.at > 0),
                Found::TextAfterQuote => return Err(self.text_after_quote(window, intake)),
                Found::Nothing if is_last => return Err(unclosed(window, intake)),
                Found::Nothing => is_last = !window.more()?,
            }
        }
    }

    /// How many cells the row has.
    pub(super) fn cell_count(&self) -> usize {
        self.cells.len()
    }

    /// The row's bytes, with its line end.
    pub(super) fn bytes<'w>(&self, window: &'w Window<'_>) -> &'w [u8] {
        &window.bytes()[..self.at]
    }

    /// The cells of the row that has this text.
    pub(super) fn cells<'t>(&self, text: &'t str) -> impl Iterator<Item = Cow<'t, str>> {
        self.cells.iter().map(move |cell| match &text[cell.start..cell.end] {
            inner if cell.is_doubled => Cow::Owned(inner.replace("\"\"", "\"")),
            inner => Cow::Borrowed(inner),
        })
    }

    /// Lets go of the row.
    pub(super) fn consume(&self, window: &mut Window<'_>) {
        window.consume(self.at);
        if self.ends_in_bare_return {
            window.begin_line();
        }
    }

    /// Searches on from where it stopped. The end of the file ends a row too, but not a quoted cell.
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
                _ if is_cut => return Found::Nothing,
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
        Found::Nothing
    }

    fn end(&mut self, line_end: usize) -> Found {
        self.at += line_end;
        Found::End
    }

    fn too_long(&self, window: &Window<'_>, intake: &mut Intake<'_>) -> Halt {
        let found = format!("a row of more than {RECORD_BYTES_MAX} bytes");
        let expected = match self.state {
            State::Quoted | State::AfterQuote => "the closing \" of its last cell",
            _ => "a batch, far shorter",
        };
        intake.broken(window.place(), found, expected)
    }

    fn text_after_quote(&self, window: &Window<'_>, intake: &mut Intake<'_>) -> Halt {
        let after = excerpt(&window.bytes()[self.at..]);
        let found = format!("{after} after the closing \" of cell {}", self.cells.len());
        intake.broken(window.place(), found, "the end of the cell; a \" inside quotes is written twice")
    }
}

fn unclosed(window: &Window<'_>, intake: &mut Intake<'_>) -> Halt {
    let found = "a cell that is still open at the end of the file".into();
    intake.broken(window.place(), found, "the closing \" of a cell of this row")
}
