//! CSV: a header, then a row per batch. Separated by comma, semicolon or tab; any line ends; UTF-8, UTF-16 or
//! what a mapping states, else Windows-1252.
//!
//! The path of a row: `Row::find` splits the start of the buffer into cells, `Table::read_row` sets the field of each
//! cell to its value, and the collector validates the batch. Quotes are strict: a lenient reader would take the rest of a
//! file as one cell.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::str::Utf8Error;

use batchscan_model::printable::clip;
use batchscan_model::{Field, FieldError, Kind, RawBatch, Value};
use encoding_rs::{Encoding, WINDOWS_1252};
use memchr::{memchr, memchr2, memchr3};

use super::ReadOptions;
use super::collector::{Collector, Stop, problem, unexpected};
use super::columns::{Column, Role, is_no_batch};
use super::convert::Converter;
use super::dates::{ONE_OF_TWO, join_date_and_time};
use super::encoding::{self, Doubt};
use super::error::Location;
use super::header::{ColumnTitle, Header, HeaderSearch, match_columns, number_equal};
use super::json_syntax::excerpt;
use super::mapping::quoted;
use super::text_buffer::{RECORD_BYTES_MAX, TextBuffer};
use super::title::wrong_unit_in_row;

/// Names the option in Excel's save dialog.
const SAVE_AS: &str = "UTF-8 text; save the sheet as \"CSV UTF-8\"";

pub(super) fn read(
    text: &mut TextBuffer<'_>,
    options: &ReadOptions,
    collector: &mut Collector<'_>,
) -> Result<(), Stop> {
    let is_marked = text.skip_byte_order_mark()?;
    let encoding = options.mapping.encoding;
    let letters = Letters { has_any: is_marked, is_stated: encoding.is_some(), is_warned: false };
    let mut source = Source { text, encoding, letters };
    let mut row = Row::default();
    let (delimiter, header) = find_header(&mut source, &mut row, options, collector)?;
    let quotes_all = row.cells.iter().all(|cell| cell.is_quoted);
    let titles = String::from_utf8_lossy(&source.text.bytes()[..row.length]).trim_end().to_owned();
    row.consume(source.text);
    let Header { roles, zone } = header;
    let converter = Converter::new(options, zone, &roles);
    let mut table = Table { titles, roles, delimiter, is_for_excel: is_marked, quotes_all, converter };
    let outcome = read_rows(&mut source, &mut row, &mut table, collector);
    collector.finish_conversion(&table.converter, outcome)
}

fn read_rows(
    source: &mut Source<'_, '_>,
    row: &mut Row,
    table: &mut Table<'_>,
    collector: &mut Collector<'_>,
) -> Result<(), Stop> {
    while row.find(source.text, table.delimiter, collector)? {
        let location = source.text.location();
        match std::str::from_utf8(&source.text.bytes()[..row.length]) {
            Ok(row_text) => {
                source.letters.check(row_text, source.text, collector)?;
                table.read_row(row, row_text, location, collector)?;
                row.consume(source.text);
            }
            Err(error) => source.change_encoding(row.length, error, collector)?,
        }
    }
    Ok(())
}

/// A file whose encoding shows while it is read.
struct Source<'s, 'b> {
    text: &'s mut TextBuffer<'b>,
    /// The encoding of bytes that are not UTF-8, if it is stated.
    encoding: Option<&'static Encoding>,
    letters: Letters,
}

/// What letters outside of ASCII show about the encoding.
struct Letters {
    /// Whether there were any, or a byte order mark.
    has_any: bool,
    /// Whether the encoding is stated.
    is_stated: bool,
    /// Whether a warning says that it may be another one.
    is_warned: bool,
}

impl Source<'_, '_> {
    /// Bytes that are not UTF-8 have another encoding, if all before them were ASCII. Everything has to be split again then.
    #[cold]
    fn change_encoding(
        &mut self,
        length: usize,
        error: Utf8Error,
        collector: &mut Collector<'_>,
    ) -> Result<(), Stop> {
        let (bytes, at) = (&self.text.bytes()[..length], error.valid_up_to());
        if self.letters.has_any || !bytes[..at].is_ascii() {
            let found = format!("byte 0x{:02X} at byte {} of the row", bytes[at], at + 1);
            return Err(collector.fail(self.text.location(), unexpected(found, SAVE_AS)));
        }
        self.text.set_encoding(self.encoding.unwrap_or(WINDOWS_1252));
        Ok(())
    }
}

impl Letters {
    /// Rejects or warns about text that has probably another encoding.
    fn check(&mut self, row: &str, text: &TextBuffer<'_>, collector: &mut Collector<'_>) -> Result<(), Stop> {
        if row.is_ascii() {
            return Ok(());
        }
        self.has_any = true;
        collector.notes().add_words(row);
        match encoding::check(row, text.encoding(), self.is_stated) {
            Some(Doubt::Wrong(error)) => Err(collector.fail(text.location(), error)),
            Some(Doubt::Possible(warning)) if !std::mem::replace(&mut self.is_warned, true) => {
                collector.warn(text.location(), warning)
            }
            _ => Ok(()),
        }
    }
}

/// Finds the header among the first rows, and the delimiter with which it is one. `row` is the header then.
fn find_header(
    source: &mut Source<'_, '_>,
    row: &mut Row,
    options: &ReadOptions,
    collector: &mut Collector<'_>,
) -> Result<(u8, Header), Stop> {
    let mut search = HeaderSearch::new(options);
    loop {
        let length = load_line(source.text)?.len();
        check_format(&source.text.bytes()[..length], collector)?;
        if length == 0 {
            return Err(search.fail(source.text.location(), collector));
        }
        match std::str::from_utf8(&source.text.bytes()[..length]) {
            Ok(line) => {
                source.letters.check(line, source.text, collector)?;
            }
            Err(error) => {
                source.change_encoding(length, error, collector)?;
                continue;
            }
        }
        let (delimiter, titles) = split_titles(source, row, &search)?;
        let (location, line) = (source.text.location(), source.text.line());
        if search.is_header(&titles, line, location) {
            row.find(source.text, delimiter, collector)?;
            return Ok((delimiter, match_columns(&titles, location, options, collector)?));
        }
        if search.is_over(line) {
            return Err(search.fail(location, collector));
        }
        source.text.consume(length);
        // Also a line that ends in a bare return counts.
        if source.text.bytes().first() == Some(&b'\r') && source.text.bytes().get(1) != Some(&b'\n') {
            source.text.begin_line();
        }
    }
}

/// The titles of the next row, with the delimiter that makes most of them known, or else most of them.
fn split_titles(
    source: &mut Source<'_, '_>,
    row: &mut Row,
    search: &HeaderSearch<'_>,
) -> Result<(u8, Vec<ColumnTitle>), Stop> {
    let mut best = (b',', Vec::new());
    let mut best_score = (0, 0);
    for delimiter in [b',', b';', b'\t'] {
        let found = row.locate(source.text, delimiter)?;
        let row_text = std::str::from_utf8(source.text.bytes().get(..row.length).unwrap_or_default());
        let (Ok(true), Ok(row_text)) = (found, row_text) else { continue };
        let titles = number_equal(row.cells(row_text).map(|(title, _)| title));
        let score = (search.count_fields(&titles), titles.len());
        if score > best_score {
            (best, best_score) = ((delimiter, titles), score);
        }
    }
    Ok(best)
}

/// Rejects other formats.
fn check_format(line: &[u8], collector: &mut Collector<'_>) -> Result<(), Stop> {
    let found = match line {
        [b'P', b'K', 3, 4, ..] => {
            let expected = "UTF-8 text; if it is an Excel workbook, name it .xlsx";
            return Err(collector.fail(Location::File, unexpected("a workbook or an archive", expected)));
        }
        _ if line.contains(&0) => "UTF-16 without a byte order mark, or binary data",
        _ => return Ok(()),
    };
    Err(collector.fail(Location::File, unexpected(found, SAVE_AS)))
}

/// Skips blank lines and returns the next one, or as much of it as a row may have.
fn load_line<'t>(text: &'t mut TextBuffer<'_>) -> Result<&'t [u8], Stop> {
    loop {
        let blank = text.bytes().iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        text.consume(blank);
        let is_complete = memchr2(b'\r', b'\n', text.bytes()).is_some();
        if is_complete || text.bytes().len() > RECORD_BYTES_MAX || !text.fill()? {
            break;
        }
    }
    let length = memchr2(b'\r', b'\n', text.bytes()).unwrap_or(text.bytes().len());
    Ok(&text.bytes()[..length])
}

/// The table of a file. Spreadsheets write numbers, dates and texts in their own way, and so does `pull --excel`.
struct Table<'o> {
    /// The text of the header.
    titles: String,
    roles: Vec<Role>,
    delimiter: u8,
    /// Whether it is for spreadsheets: it starts with a byte order mark.
    is_for_excel: bool,
    /// Whether every cell is quoted, so that quotes mean nothing.
    quotes_all: bool,
    converter: Converter<'o>,
}

impl Table<'_> {
    /// Reads one row. Skips empty ones, which spreadsheets write after the last row, and the header on each printed page.
    fn read_row(
        &mut self,
        row: &Row,
        row_text: &str,
        location: Location,
        collector: &mut Collector<'_>,
    ) -> Result<(), Stop> {
        let is_blank = |byte: u8| byte == self.delimiter || byte.is_ascii_whitespace();
        if row_text.bytes().all(is_blank) || row_text.trim_end() == self.titles {
            return Ok(());
        }
        let first = || row.cells(row_text).map(|(cell, _)| cell).find(|cell| !cell.trim().is_empty());
        if self.converter.ignores_rows() && first().is_some_and(|cell| self.converter.is_ignored_row(&cell)) {
            return Ok(());
        }
        let is_empty = |index: usize| row.cells.get(index).is_none_or(|cell| cell.start == cell.end);
        // Spreadsheets write different numbers of empty cells behind the table.
        let (cells, roles) = (row.cells.len(), self.roles.len());
        let is_outside = |index: usize| {
            self.roles.get(index).is_none_or(|role| matches!(role, Role::Unnamed | Role::Ignored))
        };
        // A decimal comma makes one cell more, which moves an empty one behind the table.
        let may_differ = || self.delimiter != b',' || cells < roles && !is_outside(cells - 1);
        let is_rest_empty =
            || (cells.min(roles)..cells.max(roles)).all(|index| is_outside(index) && is_empty(index));
        if cells != roles && !(may_differ() && is_rest_empty()) {
            return collector.reject_row(location, self.wrong_count(cells, row_text));
        }
        if is_no_batch(&self.roles, is_empty) {
            let unit = self.roles.iter().zip(row.cells(row_text)).find_map(|(role, (cell, _))| match role {
                Role::Field(column) => wrong_unit_in_row(column.field, &cell),
                _ => None,
            });
            if let Some(error) = unit {
                return collector.add_error(location, error);
            }
            return collector.ignore_row(location, first().as_deref());
        }
        if collector.notes().wants_examples() {
            self.note_cells(row, row_text, collector);
        }
        let mut raw = RawBatch::default();
        let mut date_and_time = Vec::new();
        for (index, (cell, is_quoted)) in row.cells(row_text).enumerate().take(roles) {
            match self.roles[index] {
                Role::DateOrTime => date_and_time.push(cell),
                Role::Field(column) => {
                    raw.set_or_reject(column.field, self.value(column, cell, is_quoted, location));
                }
                Role::Ignored => {}
                Role::Unnamed if cell.trim().is_empty() => {}
                Role::Unnamed => {
                    let column = format!("column {}", index + 1);
                    collector.add_error(location, FieldError::problem(&column, "missing column name"))?;
                }
            }
        }
        if let [first, second] = date_and_time.as_slice() {
            let field = Field::BatchCreationDate;
            let cell = join_date_and_time(first, second);
            collector.notes().add_cell(field, &cell);
            let value = match first.trim().is_empty() == second.trim().is_empty() {
                true => self.converter.text(field, cell.into(), location),
                false => Ok(Value::Other(ONE_OF_TWO)),
            };
            raw.set_or_reject(field, value);
        }
        collector.add(location, &mut raw)
    }

    fn wrong_count(&self, found: usize, row_text: &str) -> FieldError {
        let expected = self.roles.len();
        let note = row_text.split(|c: char| c.is_ascii_digit()).next().unwrap_or_default().trim();
        let hint = match self.delimiter {
            b',' if found > expected => {
                "; numbers with a decimal comma need semicolons between the cells, as `pull --excel` writes them".into()
            }
            _ if found == 1 && !note.is_empty() => {
                format!("; if it is a note, add ignore_rows = [{}] to a mapping", quoted(&clip(note)))
            }
            _ => String::new(),
        };
        unexpected(format!("{found}{hint}"), format!("{expected} cells, as in the header"))
    }

    #[cold]
    fn note_cells(&self, row: &Row, row_text: &str, collector: &mut Collector<'_>) {
        for (index, ((cell, _), role)) in row.cells(row_text).zip(&self.roles).enumerate() {
            match role {
                Role::Field(column) => collector.notes().add_cell(column.field, &cell),
                Role::Ignored => collector.notes().add_ignored_cell(index, &cell),
                Role::DateOrTime | Role::Unnamed => {}
            }
        }
    }

    /// The value of a cell. Values as the API has them need no conversion.
    fn value<'t>(
        &mut self,
        column: Column,
        cell: Cow<'t, str>,
        is_quoted: bool,
        location: Location,
    ) -> Result<Value<'t>, FieldError> {
        if self.converter.is_empty_word(&cell) {
            return self.converter.empty(column.field);
        }
        let is_plain = match column.kind {
            // An empty text is quoted; nothing is nothing.
            Kind::Text if cell.is_empty() && is_quoted && !self.quotes_all => return Ok(Value::Text(cell)),
            Kind::Id | Kind::Name | Kind::Text | Kind::Link if cell.is_empty() => return Ok(Value::Null),
            Kind::Id | Kind::Name | Kind::Text | Kind::Link if self.is_for_excel => {
                return Ok(Value::Cell(without_apostrophe(cell)));
            }
            Kind::Id | Kind::Name | Kind::Text | Kind::Link => true,
            Kind::Instant => {
                let utc = cell.strip_suffix('Z').filter(|_| column.is_plain);
                utc.is_some_and(|time| time.ends_with(|last: char| last.is_ascii_digit()))
            }
            Kind::Decimal if column.is_plain && is_usual_decimal(&cell) => {
                self.converter.has_point = true;
                true
            }
            Kind::Decimal => cell.is_empty(),
            Kind::Count => column.is_plain && cell.bytes().all(|byte| byte.is_ascii_digit()),
            Kind::Flag => column.is_plain && matches!(&*cell, "true" | "false"),
        };
        match cell.is_empty() && column.kind != Kind::Flag {
            true => Ok(Value::Null),
            false if is_plain => Ok(Value::Cell(cell)),
            false => self.converter.text(column.field, cell, location),
        }
    }
}

/// Whether a decimal has two fraction digits and a point, so that it cannot be a number of thousands.
fn is_usual_decimal(cell: &str) -> bool {
    let digits = cell.strip_prefix('-').unwrap_or(cell).as_bytes();
    let Some((whole, [b'.', tenth, hundredth])) = digits.split_last_chunk() else { return false };
    !whole.is_empty() && whole.iter().chain([tenth, hundredth]).all(u8::is_ascii_digit)
}

/// The row at the start of a buffer.
#[derive(Default)]
struct Row {
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
    fn find(
        &mut self,
        text: &mut TextBuffer<'_>,
        delimiter: u8,
        collector: &mut Collector<'_>,
    ) -> Result<bool, Stop> {
        self.locate(text, delimiter)?.map_err(|error| collector.fail(text.location(), error))
    }

    /// Finds the next row, or why there is none.
    fn locate(&mut self, text: &mut TextBuffer<'_>, delimiter: u8) -> Result<Result<bool, FieldError>, Stop> {
        let too_long = |expected| unexpected(format!("more than {RECORD_BYTES_MAX} bytes"), expected);
        let mut is_last = false;
        loop {
            let is_too_long = text.bytes().len() > RECORD_BYTES_MAX;
            let error = match self.split(text.bytes(), delimiter, is_last) {
                Ok(()) if self.length <= RECORD_BYTES_MAX => return Ok(Ok(self.length > 0)),
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
            return Ok(Err(error));
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

    /// The cells, and whether they are quoted. `text` is the text of the row.
    fn cells<'t>(&self, text: &'t str) -> impl Iterator<Item = (Cow<'t, str>, bool)> {
        self.cells.iter().map(move |cell| match &text[cell.start..cell.end] {
            inner if cell.is_doubled => (Cow::Owned(inner.replace("\"\"", "\"")), true),
            inner => (Cow::Borrowed(inner), cell.is_quoted),
        })
    }

    /// Drops the row from the buffer.
    fn consume(&self, text: &mut TextBuffer<'_>) {
        text.consume(self.length);
        if self.ends_in_bare_return {
            text.begin_line();
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

/// An apostrophe keeps spreadsheets from taking a text for a formula.
fn without_apostrophe(cell: Cow<'_, str>) -> Cow<'_, str> {
    match cell.strip_prefix('\'') {
        Some(text) if is_escaped_in_excel(text) => text.to_owned().into(),
        _ => cell,
    }
}

/// Whether a text gets an apostrophe: because Excel would evaluate it, or because it would be taken for one that has.
pub(crate) fn is_escaped_in_excel(text: &str) -> bool {
    const FORMULA: [char; 7] = ['=', '+', '-', '@', '\t', '\r', '\n'];
    text.starts_with(FORMULA) || text.strip_prefix('\'').is_some_and(is_escaped_in_excel)
}
