//! Rows, cells and what they mean.

use std::io::{Cursor, Read as _};

use super::*;
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

fn value(dialect: Dialect, field: Field, cell: &'static str, is_quoted: bool) -> Value<'static> {
    dialect.value(field, Cow::Borrowed(cell), is_quoted)
}

#[test]
fn numbers_dates_and_texts_of_spreadsheets_are_understood() {
    let excel = Dialect { delimiter: b';', is_for_excel: true, quotes_all: false };
    let plain = Dialect { delimiter: b',', is_for_excel: false, quotes_all: false };
    let cell = |text: &'static str| Value::Cell(Cow::Borrowed(text));
    for (dialect, field, text, expected) in [
        (excel, Field::AvgGerminationRate, "92,50", cell("92.50")),
        (excel, Field::AvgGerminationRate, "1.234,50", cell("1.234,50")),
        (plain, Field::AvgGerminationRate, "92,50", Value::Other(DECIMAL_COMMA)),
        (excel, Field::BatchCreationDate, "2026-01-31 08:00:00,5", cell("2026-01-31T08:00:00.5Z")),
        (excel, Field::BatchCreationDate, "2026-01-31 08:00", cell("2026-01-31 08:00")),
        (plain, Field::BatchCreationDate, "2026-01-31 08:00:00", cell("2026-01-31 08:00:00")),
        (excel, Field::Comment, "'=1", cell("=1")),
        (excel, Field::Comment, "''=1", cell("'=1")),
        (excel, Field::Comment, "'quoted'", cell("'quoted'")),
        (plain, Field::Comment, "'=1", cell("'=1")),
    ] {
        assert_eq!(value(dialect, field, text, false), expected, "{text}");
    }
}

#[test]
fn an_empty_text_is_quoted_unless_every_cell_is() {
    let mut dialect = Dialect { delimiter: b',', is_for_excel: false, quotes_all: false };
    assert_eq!(value(dialect, Field::Comment, "", true), Value::Text("".into()));
    assert_eq!(value(dialect, Field::Comment, "", false), Value::Null);
    assert_eq!(value(dialect, Field::AvgGerminationRate, "", true), Value::Null);
    dialect.quotes_all = true;
    assert_eq!(value(dialect, Field::Comment, "", true), Value::Null);
}
