//! CSV as spreadsheets write it: a header of field names in any order, then a row for each batch; quotes, line breaks
//! inside them, any line ends. Separated by comma, semicolon or tab, whichever the header has most of.

use std::str::Utf8Error;

use batchscan_model::{Field, Record, Value};
use memchr::{memchr_iter, memchr2};

use super::RECORD_BYTES_MAX;
use super::columns;
use super::fault::Place;
use super::intake::{Halt, Intake, whole};
use super::rows::Row;
use super::window::Window;

/// What a spreadsheet's dialog calls the right choice.
const SAVE_AS: &str = "UTF-8 text; save the sheet as \"CSV UTF-8\"";

/// Reads a file of rows.
pub(super) fn read(window: &mut Window<'_>, intake: &mut Intake<'_>) -> Result<(), Halt> {
    window.skip_mark(intake)?;
    let header = hold_header(window)?;
    if let Some(found) = foreign(header) {
        return Err(intake.broken(Place::File, found.into(), SAVE_AS));
    }
    let delimiter = delimiter(header);
    let mut row = Row::default();
    if !row.find(window, delimiter, intake)? {
        let expected = "a header with the names of the fields";
        return Err(intake.broken(window.place(), "an empty file".into(), expected));
    }
    let names = text(&row, window, intake)?;
    let names: Vec<_> = row.cells(names).collect();
    let columns = columns::by_name(names.iter().map(AsRef::as_ref), window.place(), intake)?;
    row.consume(window);
    while row.find(window, delimiter, intake)? {
        record(&row, &columns, delimiter, window, intake)?;
        row.consume(window);
    }
    Ok(())
}

/// Lets go of blank lines before the header. The header, once the window holds all of it, or as much as a row may be.
fn hold_header<'w>(window: &'w mut Window<'_>) -> Result<&'w [u8], Halt> {
    loop {
        let blank = window.bytes().iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        window.consume(blank);
        let is_whole = memchr2(b'\r', b'\n', window.bytes()).is_some();
        if is_whole || window.bytes().len() > RECORD_BYTES_MAX || !window.more()? {
            break;
        }
    }
    let length = memchr2(b'\r', b'\n', window.bytes()).unwrap_or(window.bytes().len());
    Ok(&window.bytes()[..length])
}

/// What a file is that is no CSV, where its first bytes give it away.
fn foreign(header: &[u8]) -> Option<&'static str> {
    match header {
        [b'P', b'K', 3, 4, ..] => Some("a workbook or an archive"),
        _ if header.contains(&0) => Some("text in UTF-16 or no text at all"),
        _ => None,
    }
}

/// Field names hold none of the three, so the commonest is the one that separates.
fn delimiter(header: &[u8]) -> u8 {
    let count = |delimiter| memchr_iter(delimiter, header).count();
    // The last of equals wins: a header without any is one column, whatever separates.
    [b'\t', b';', b','].into_iter().max_by_key(|delimiter| count(*delimiter)).unwrap_or(b',')
}

/// Takes in one row. One without anything in it is no record: spreadsheets write such rows below the last one.
fn record(
    row: &Row,
    columns: &[Option<Field>],
    delimiter: u8,
    window: &Window<'_>,
    intake: &mut Intake<'_>,
) -> Result<(), Halt> {
    if row.bytes(window).iter().all(|byte| *byte == delimiter || byte.is_ascii_whitespace()) {
        return Ok(());
    }
    let text = text(row, window, intake)?;
    if row.cell_count() != columns.len() {
        let found =
            if row.cell_count() == 1 { "1 cell".into() } else { format!("{} cells", row.cell_count()) };
        let expected = format!("{}, as many as the header has", columns.len());
        return intake.fault(window.place(), whole(found, &expected));
    }
    let mut record = Record::default();
    for (cell, column) in row.cells(text).zip(columns) {
        let value = if cell.is_empty() { Value::Null } else { Value::Cell(cell) };
        if let Some(field) = column {
            record.set(*field, value);
        }
    }
    intake.record(window.place(), &record)
}

/// The row as text. A file in another encoding is one fault, not one in every row.
fn text<'w>(row: &Row, window: &'w Window<'_>, intake: &mut Intake<'_>) -> Result<&'w str, Halt> {
    let bytes = row.bytes(window);
    std::str::from_utf8(bytes).map_err(|error| intake.broken(window.place(), not_utf8(bytes, error), SAVE_AS))
}

fn not_utf8(bytes: &[u8], error: Utf8Error) -> String {
    let at = error.valid_up_to();
    let byte = bytes.get(at).copied().unwrap_or_default();
    format!("the byte 0x{byte:02X}, which is not UTF-8, at byte {} of the row", at + 1)
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Read as _};

    use super::super::Format::Csv;
    use super::super::testing::{batches, faults, ids, read_all};

    const HEADER: &str = "batch_id,batch_name,batch_creation_date,number_of_images,warnings,comment";

    /// A file with the header and these rows.
    fn table(rows: &str) -> String {
        format!("{HEADER}\n{}\n", rows.replace('@', "n,2026-01-31T08:00:00Z,1,true"))
    }

    /// The comment of the only row.
    fn comment(file: String) -> String {
        let texts = batches(Csv, file);
        assert_eq!(texts.len(), 1);
        texts[0].split("\"comment\":").nth(1).unwrap().replace(",\"warnings\":true}", "")
    }

    #[test]
    fn a_row_is_a_batch_in_any_order_of_columns() {
        let file = "warnings,number_of_images,batch_name,batch_id,batch_creation_date\n1,2.0,n,a,2026-01-31 09:00:00+01:00";
        let text = batches(Csv, file).remove(0);
        assert!(
            text.starts_with(
                r#"{"batch_id":"a","batch_name":"n","batch_creation_date":"2026-01-31T08:00:00Z""#
            ),
            "{text}"
        );
        assert!(text.ends_with(r#""comment":null,"warnings":true}"#), "{text}");
    }

    /// Decision 039.
    #[test]
    fn an_empty_cell_is_null_and_a_flag_is_spelled_in_any_case() {
        assert_eq!(comment(table("a,@,")), "null");
        assert_eq!(comment(table("a,@,\"\"")), "null");
        assert_eq!(comment(table("a,n,2026-01-31T08:00:00Z,1,TRUE,x")), "\"x\"");
    }

    #[test]
    fn quotes_hold_delimiters_line_breaks_and_doubled_quotes() {
        assert_eq!(comment(table("a,@,\"x, \"\"y\"\"\r\nz\"")), r#""x, \"y\"\r\nz""#);
        assert_eq!(comment(table("a,@,5\" pot")), r#""5\" pot""#);
    }

    #[test]
    fn a_mark_any_line_end_and_any_of_three_delimiters_are_fine() {
        for end in ["\n", "\r\n", "\r"] {
            for delimiter in [",", ";", "\t"] {
                let file = table("a,@,\n\n,,,,,\n \nb,@,").replace('\n', end).replace(',', delimiter);
                assert_eq!(ids(Csv, format!("\u{FEFF}{end}{file}")), ["a", "b"], "{file:?}");
            }
        }
        assert_eq!(ids(Csv, HEADER), [""; 0]);
    }

    #[test]
    fn a_fault_names_the_line_in_which_its_row_begins() {
        for end in ["\n", "\r\n"] {
            let told = faults(
                Csv,
                table("a,@,\"x\n\ny\"\n\nb,@,y,z\nc,n,2026-01-31T08:00:00,1,true,").replace('\n', end),
            );
            let expected = "line 6: found 7 cells, expected 6, as many as the header has\n\
                line 7: batch_creation_date: found \"2026-01-31T08:00:00\", expected a date and time with an offset at the end, such as \
                2026-01-31T08:00:00Z or 2026-01-31T09:00:00+01:00";
            assert_eq!(told, expected);
        }
        assert!(faults(Csv, table("a,@,\n7").replace('\n', "\r")).starts_with("line 3: found 1 cell,"));
    }

    /// Decision 039: a typo in a column name must not become a silent null.
    #[test]
    fn unknown_repeated_nameless_and_missing_columns_are_faults_of_the_header() {
        let told = faults(Csv, "batch_id,batch_id,coment,,batch_name,number_of_images,warnings\nx,y,z,,,,\n");
        let expected = "line 1: column 4: found no name, expected a field of a batch over every column\n\
            line 1: batch_id: found it twice, expected each field once\n\
            line 1: coment: found an unknown field, expected a field of a batch; did you mean comment?\n\
            line 1: batch_creation_date: found nothing, expected a column of that name: this field is required";
        assert_eq!(told, expected);
    }

    #[test]
    fn rows_under_an_unknown_column_are_still_judged() {
        let told = faults(Csv, table("a,@,x\n,@,x").replace("comment", "commend"));
        assert!(told.starts_with("line 1: commend: found an unknown field"), "{told}");
        assert!(told.contains("\nline 3: batch_id: found null"), "{told}");
    }

    #[test]
    fn a_file_that_is_no_utf_8_is_one_fault_that_says_what_to_do() {
        let mut file = table("a,@,x\nb,@,?").into_bytes();
        *file.iter_mut().rfind(|byte| **byte == b'?').unwrap() = 0xE4;
        let told = faults(Csv, file);
        assert!(
            told.starts_with("line 3: found the byte 0xE4, which is not UTF-8, at byte 33 of the row"),
            "{told}"
        );
        assert!(told.ends_with("save the sheet as \"CSV UTF-8\""), "{told}");
        assert!(faults(Csv, "PK\u{3}\u{4}\n").starts_with("found a workbook or an archive"));
        assert!(faults(Csv, "b\0a\0").starts_with("found text in UTF-16 or no text at all"));
        assert!(faults(Csv, "").starts_with("line 1: found an empty file, expected a header"));
    }

    #[test]
    fn broken_quotes_end_the_reading() {
        let told = faults(Csv, table("a,@,\"x\"y\n7"));
        assert!(told.starts_with("line 2: found `y\\n7` after the closing \" of cell 6"), "{told}");
        let told = faults(Csv, table("a,@,\nb,@,\"x\n\n"));
        assert!(told.starts_with("line 3: found a cell that is still open at the end of the file"), "{told}");
    }

    #[test]
    fn a_quote_that_is_not_closed_does_not_draw_the_file_into_memory() {
        let stream = Cursor::new(table("a,@,\nb,@,\"")).chain(std::io::repeat(b'\n').take(100 << 20));
        let told = read_all(Csv, stream).unwrap_err().to_string();
        let expected =
            "line 3: found a row of more than 1048576 bytes, expected the closing \" of its last cell";
        assert_eq!(told, expected);
    }
}
