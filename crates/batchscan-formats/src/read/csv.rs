//! CSV: a header of field names in any order, then a row per batch. Separated by comma, semicolon or tab; any line ends.

use std::str::Utf8Error;

use batchscan_model::{Field, RawBatch};
use memchr::{memchr_iter, memchr2};

use super::collector::{Collector, Stop, unexpected};
use super::csv_cells::Dialect;
use super::csv_rows::Row;
use super::error::Location;
use super::header::match_columns;
use super::text_buffer::{RECORD_BYTES_MAX, TextBuffer};

/// Names the option in Excel's save dialog.
const SAVE_AS: &str = "UTF-8 text; save the sheet as \"CSV UTF-8\"";

pub(super) fn read(text: &mut TextBuffer<'_>, collector: &mut Collector<'_>) -> Result<(), Stop> {
    let is_for_excel = text.skip_byte_order_mark(collector)?;
    let header = load_header(text)?;
    if let Some(found) = detect_other_format(header) {
        return Err(collector.fail(Location::File, unexpected(found, SAVE_AS)));
    }
    let delimiter = detect_delimiter(header);
    let mut row = Row::default();
    if !row.find(text, delimiter, collector)? {
        let error = unexpected("an empty file", "a header with the field names");
        return Err(collector.fail(text.location(), error));
    }
    let names: Vec<_> = row.cells(row_text(&row, text, collector)?).map(|(name, _)| name).collect();
    let columns = match_columns(names.iter().map(AsRef::as_ref), text.location(), collector)?;
    let dialect = Dialect { delimiter, is_for_excel, quotes_all: row.is_quoted() };
    row.consume(text);
    while row.find(text, delimiter, collector)? {
        read_row(&row, &columns, dialect, text, collector)?;
        row.consume(text);
    }
    Ok(())
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

fn detect_other_format(header: &[u8]) -> Option<&'static str> {
    match header {
        [b'P', b'K', 3, 4, ..] => Some("a workbook or an archive"),
        _ if header.contains(&0) => Some("UTF-16 or binary data"),
        _ => None,
    }
}

/// The most frequent one in the header: field names contain none of them.
fn detect_delimiter(header: &[u8]) -> u8 {
    let count = |delimiter: &u8| memchr_iter(*delimiter, header).count();
    // The last of equals wins, which does not matter: they all occur 0 times.
    [b'\t', b';', b','].into_iter().max_by_key(count).unwrap_or(b',')
}

/// Reads one row. Skips empty ones: spreadsheets write them after the last row.
fn read_row(
    row: &Row,
    columns: &[Option<Field>],
    dialect: Dialect,
    text: &TextBuffer<'_>,
    collector: &mut Collector<'_>,
) -> Result<(), Stop> {
    if row.bytes(text).iter().all(|byte| *byte == dialect.delimiter || byte.is_ascii_whitespace()) {
        return Ok(());
    }
    let cells = row_text(row, text, collector)?;
    if row.cell_count() != columns.len() {
        let hint = match dialect.delimiter {
            b',' if row.cell_count() > columns.len() => {
                "; numbers with a decimal comma need semicolons between the cells, as `pull --excel` writes them"
            }
            _ => "",
        };
        let (found, expected) = (row.cell_count(), format!("{} cells, as in the header", columns.len()));
        return collector.add_error(text.location(), unexpected(format!("{found}{hint}"), expected));
    }
    let mut raw = RawBatch::default();
    for ((cell, is_quoted), column) in row.cells(cells).zip(columns) {
        if let Some(field) = column {
            raw.set(*field, dialect.value(*field, cell, is_quoted));
        }
    }
    collector.add(text.location(), &raw)
}

/// The row as text. Another encoding stops the reading: it would be an error in every row.
fn row_text<'t>(row: &Row, text: &'t TextBuffer<'_>, collector: &mut Collector<'_>) -> Result<&'t str, Stop> {
    let bytes = row.bytes(text);
    std::str::from_utf8(bytes)
        .map_err(|error| collector.fail(text.location(), unexpected(describe(bytes, error), SAVE_AS)))
}

fn describe(bytes: &[u8], error: Utf8Error) -> String {
    let at = error.valid_up_to();
    format!("byte 0x{:02X} at byte {} of the row", bytes.get(at).copied().unwrap_or_default(), at + 1)
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Read as _};

    use crate::Format::Csv;
    use crate::testing::{batches, errors, ids, read_all};

    const HEADER: &str = "batch_id,batch_name,batch_creation_date,number_of_images,warnings,comment";

    /// A file with the header and these rows; `@` is short for four valid cells.
    fn table(rows: &str) -> String {
        format!("{HEADER}\n{}\n", rows.replace('@', "n,2026-01-31T08:00:00Z,1,true"))
    }

    #[test]
    fn a_decimal_comma_needs_semicolons() {
        let file = |row: &str| table(row).replace("comment", "avg_germination_rate");
        let expected = "line 2: avg_germination_rate: expected a decimal such as 92.5, found a comma; write a point, or \
                        separate cells with semicolons";
        assert_eq!(errors(Csv, file("a,@,\"92,5\"")), expected);
        let expected = "line 2: expected 6 cells, as in the header, found 7; numbers with a decimal comma need \
                        semicolons between the cells, as `pull --excel` writes them";
        assert_eq!(errors(Csv, file("a,@,92,5")), expected);
        assert!(batches(Csv, file("a,@,92.5").replace(',', ";").replace('.', ","))[0].contains("\"92.50\""));
    }

    #[test]
    fn spaces_around_a_column_name_are_ignored() {
        assert_eq!(ids(Csv, table("a,@,x").replace(",batch_name,", ", batch_name ,")), ["a"]);
    }

    #[test]
    fn columns_may_have_any_order() {
        let file = "warnings,number_of_images,batch_name,batch_id,batch_creation_date\n1,2.0,n,a,2026-01-31 09:00:00+01:00";
        let text = batches(Csv, file).remove(0);
        let start = r#"{"batch_id":"a","batch_name":"n","batch_creation_date":"2026-01-31T08:00:00Z""#;
        assert!(text.starts_with(start) && text.ends_with(r#""comment":null,"warnings":true}"#), "{text}");
    }

    /// Decision 039.
    #[test]
    fn an_empty_cell_is_null_unless_it_is_quoted_and_quotes_may_enclose_anything() {
        for (row, comment) in [
            ("a,@,", "null"),
            ("a,@,\"\"", "\"\""),
            ("a,n,2026-01-31T08:00:00Z,1,TRUE,x", "\"x\""),
            ("a,@,\"x, \"\"y\"\"\r\nz\"", r#""x, \"y\"\r\nz""#),
            ("a,@,5\" pot", r#""5\" pot""#),
        ] {
            let texts = batches(Csv, table(row));
            assert!(texts[0].ends_with(&format!("\"comment\":{comment},\"warnings\":true}}")), "{texts:?}");
        }
    }

    #[test]
    fn a_byte_order_mark_any_line_end_and_three_delimiters_are_accepted() {
        for end in ["\n", "\r\n", "\r"] {
            for delimiter in [",", ";", "\t"] {
                let file = table("a,@,\n\n,,,,,\n \nb,@,").replace('\n', end).replace(',', delimiter);
                assert_eq!(ids(Csv, format!("\u{FEFF}{end}{file}")), ["a", "b"], "{file:?}");
            }
        }
        assert_eq!(ids(Csv, HEADER), [""; 0]);
    }

    #[test]
    fn an_error_names_the_first_line_of_its_row() {
        for end in ["\n", "\r\n"] {
            let rows = "a,@,\"x\n\ny\"\n\nb,@\nc,n,2026-01-31T08:00:00,1,true,";
            let expected = "line 6: expected 6 cells, as in the header, found 5\n\
                line 7: batch_creation_date: expected a date and time with a UTC offset, such as 2026-01-31T08:00:00Z, \
                found \"2026-01-31T08:00:00\"";
            assert_eq!(errors(Csv, table(rows).replace('\n', end)), expected);
        }
        let errors = errors(Csv, table("a,@,\n7").replace('\n', "\r"));
        assert_eq!(errors, "line 3: expected 6 cells, as in the header, found 1");
    }

    /// Decision 039: a typo in a column name must not become a silent null.
    #[test]
    fn invalid_column_names_are_errors_of_the_header() {
        for (file, expected) in [
            (
                "batch_id,batch_id,coment,,batch_name,number_of_images,warnings\nx,y,z,,,,\n".into(),
                "line 1: column 4: missing column name\n\
                line 1: batch_id: duplicate field\n\
                line 1: coment: unknown field; did you mean comment?\n\
                line 1: batch_creation_date: missing required column",
            ),
            // The rows are still validated.
            (
                table("a,@,x\n,@,x").replace("comment", "commend"),
                "line 1: commend: unknown field; did you mean comment?\nline 3: batch_id: required field is null",
            ),
        ] {
            assert_eq!(errors(Csv, file), expected);
        }
    }

    #[test]
    fn broken_quotes_and_other_encodings_stop_the_reading() {
        let mut latin1 = table("a,@,x\nb,@,?").into_bytes();
        *latin1.iter_mut().rfind(|byte| **byte == b'?').unwrap() = 0xE4;
        let utf8 = "expected UTF-8 text; save the sheet as \"CSV UTF-8\"";
        for (file, expected) in [
            (latin1, format!("line 3: {utf8}, found byte 0xE4 at byte 33 of the row")),
            (b"PK\x03\x04\n".to_vec(), format!("{utf8}, found a workbook or an archive")),
            (b"b\0a\0".to_vec(), format!("{utf8}, found UTF-16 or binary data")),
            (vec![], "line 1: expected a header with the field names, found an empty file".into()),
            (
                table("a,@,\"x\"y\n7").into(),
                "line 2: expected the end of the cell; a \" inside quotes is doubled, found `y\\n7` after the closing \" \
                of cell 6"
                    .into(),
            ),
            (
                table("a,@,\nb,@,\"x\n\n").into(),
                "line 3: unexpected end of file in a quoted cell of this row".into(),
            ),
        ] {
            assert_eq!(errors(Csv, file), expected);
        }
    }

    #[test]
    fn an_open_quote_is_rejected_before_it_fills_the_memory() {
        let stream = Cursor::new(table("a,@,\nb,@,\"")).chain(std::io::repeat(b'\n').take(100 << 20));
        let error = read_all(Csv, stream).unwrap_err().to_string();
        assert_eq!(error, "line 3: expected the closing \" of its last cell, found more than 1048576 bytes");
    }
}
