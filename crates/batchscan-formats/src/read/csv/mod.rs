//! CSV: a header of field names in any order, then a row per batch. Separated by comma, semicolon or tab; any line ends.
//!
//! The path of a row: `Row::find` splits the start of the buffer into cells, `read_row` sets the field of each cell to
//! its `Dialect::value`, and the collector validates the batch. Quotes are strict: a lenient reader would take the rest
//! of a file as one cell.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use batchscan_model::{Field, Kind, RawBatch, Value};
use memchr::{memchr, memchr_iter, memchr2, memchr3};

use super::collector::{Collector, Stop, problem, unexpected};
use super::error::Location;
use super::header::match_columns;
use super::json_syntax::excerpt;
use super::text_buffer::{RECORD_BYTES_MAX, TextBuffer};

/// Names the option in Excel's save dialog.
const SAVE_AS: &str = "UTF-8 text; save the sheet as \"CSV UTF-8\"";
/// `1,234` could also be a thousand.
const DECIMAL_COMMA: &str = "a comma; write a point, or separate cells with semicolons";

pub(super) fn read(text: &mut TextBuffer<'_>, collector: &mut Collector<'_>) -> Result<(), Stop> {
    let is_for_excel = text.skip_byte_order_mark(collector)?;
    let delimiter = detect_delimiter(text, collector)?;
    let mut row = Row::default();
    if !row.find(text, delimiter, collector)? {
        let error = unexpected("an empty file", "a header with the field names");
        return Err(collector.fail(text.location(), error));
    }
    let names: Vec<_> = row.cells(row.text(text, collector)?).map(|(name, _)| name).collect();
    let columns = match_columns(names.iter().map(AsRef::as_ref), text.location(), collector)?;
    let quotes_all = row.cells.iter().all(|cell| cell.is_quoted);
    let dialect = Dialect { delimiter, is_for_excel, quotes_all };
    row.consume(text);
    while row.find(text, delimiter, collector)? {
        read_row(&row, &columns, dialect, text, collector)?;
        row.consume(text);
    }
    Ok(())
}

/// The most frequent delimiter in the header: field names contain none of them. Rejects other formats.
fn detect_delimiter(text: &mut TextBuffer<'_>, collector: &mut Collector<'_>) -> Result<u8, Stop> {
    let header = load_header(text)?;
    let found = match header {
        [b'P', b'K', 3, 4, ..] => "a workbook or an archive",
        _ if header.contains(&0) => "UTF-16 or binary data",
        _ => {
            let count = |delimiter: &u8| memchr_iter(*delimiter, header).count();
            // The last of equals wins, which does not matter: they all occur 0 times.
            return Ok([b'\t', b';', b','].into_iter().max_by_key(count).unwrap_or(b','));
        }
    };
    Err(collector.fail(Location::File, unexpected(found, SAVE_AS)))
}

/// Skips blank lines and returns the header, or as much of it as a row may have.
fn load_header<'t>(text: &'t mut TextBuffer<'_>) -> Result<&'t [u8], Stop> {
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

/// Reads one row. Skips empty ones: spreadsheets write them after the last row.
fn read_row(
    row: &Row,
    columns: &[Option<Field>],
    dialect: Dialect,
    text: &TextBuffer<'_>,
    collector: &mut Collector<'_>,
) -> Result<(), Stop> {
    let is_blank = |byte: &u8| *byte == dialect.delimiter || byte.is_ascii_whitespace();
    if text.bytes()[..row.length].iter().all(is_blank) {
        return Ok(());
    }
    let row_text = row.text(text, collector)?;
    let (found, expected) = (row.cells.len(), columns.len());
    if found != expected {
        let hint = match dialect.delimiter {
            b',' if found > expected => {
                "; numbers with a decimal comma need semicolons between the cells, as `pull --excel` writes them"
            }
            _ => "",
        };
        let error = unexpected(format!("{found}{hint}"), format!("{expected} cells, as in the header"));
        return collector.add_error(text.location(), error);
    }
    let mut raw = RawBatch::default();
    for ((cell, is_quoted), column) in row.cells(row_text).zip(columns) {
        if let Some(field) = column {
            raw.set(*field, dialect.value(*field, cell, is_quoted));
        }
    }
    collector.add(text.location(), &raw)
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

    /// The row as text. Another encoding stops the reading: it would be an error in every row.
    fn text<'t>(&self, text: &'t TextBuffer<'_>, collector: &mut Collector<'_>) -> Result<&'t str, Stop> {
        let bytes = &text.bytes()[..self.length];
        std::str::from_utf8(bytes).map_err(|error| {
            let at = error.valid_up_to();
            let byte = bytes.get(at).copied().unwrap_or_default();
            let found = format!("byte 0x{byte:02X} at byte {} of the row", at + 1);
            collector.fail(text.location(), unexpected(found, SAVE_AS))
        })
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

/// How a file was written. Spreadsheets write numbers and dates in their own way, and so does `pull --excel`.
#[derive(Clone, Copy, Debug)]
struct Dialect {
    delimiter: u8,
    /// Whether it is for spreadsheets: it starts with a byte order mark.
    is_for_excel: bool,
    /// Whether every cell is quoted, so that quotes mean nothing.
    quotes_all: bool,
}

impl Dialect {
    /// The value of a cell of a field.
    fn value<'t>(self, field: Field, cell: Cow<'t, str>, is_quoted: bool) -> Value<'t> {
        match field.kind() {
            // An empty text is quoted; nothing is nothing.
            Kind::Text if cell.is_empty() && is_quoted && !self.quotes_all => Value::Text(cell),
            _ if cell.is_empty() => Value::Null,
            Kind::Decimal if self.delimiter == b';' => Value::Cell(with_point(cell)),
            Kind::Decimal if cell.contains(',') => Value::Other(DECIMAL_COMMA),
            Kind::Instant if self.is_for_excel => Value::Cell(with_offset(cell)),
            Kind::Id | Kind::Name | Kind::Text | Kind::Link if self.is_for_excel => {
                Value::Cell(without_apostrophe(cell))
            }
            _ => Value::Cell(cell),
        }
    }
}

/// `92,50` is 92.50 where semicolons separate cells.
fn with_point(cell: Cow<'_, str>) -> Cow<'_, str> {
    if cell.contains('.') || cell.matches(',').count() != 1 { cell } else { cell.replace(',', ".").into() }
}

/// `2026-01-31 08:00:00` is in UTC, as `pull --excel` writes it.
fn with_offset(cell: Cow<'_, str>) -> Cow<'_, str> {
    let is_date = cell.len() >= "2026-01-31 08:00:00".len()
        && cell.as_bytes()[10] == b' '
        && cell.bytes().all(|byte| byte.is_ascii_digit() || b"- :.,".contains(&byte));
    if is_date { format!("{}Z", cell.replacen(' ', "T", 1).replace(',', ".")).into() } else { cell }
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
