//! Rows, cells and what they mean.

use std::io::{Cursor, Read as _};

use crate::Format::Csv;
use crate::read::{ReadOptions, preview};
use crate::testing::{batches, errors, ids, read_all, temporary_file};

const HEADER: &str = "batch_id,batch_name,batch_creation_date,number_of_images,warnings,comment";

/// A file with the header and these rows; `@` is short for four valid cells.
fn table(rows: &str) -> String {
    format!("{HEADER}\n{}\n", rows.replace('@', "n,2026-01-31T08:00:00Z,1,true"))
}

#[test]
fn a_decimal_comma_in_a_cell_without_quotes_is_named() {
    let expected = "line 2: expected 6 cells, as in the header, found 7; numbers with a decimal comma need \
                    semicolons between the cells, as `pull --excel` writes them";
    assert_eq!(errors(Csv, table("a,@,92,5")), expected);
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
        let rows = "a,@,\"x\n\ny\"\n\nb,@\nc,,2026-01-31T08:00:00Z,1,true,";
        let expected = "line 6: expected 6 cells, as in the header, found 5\n\
            line 7: batch_name: required field is null";
        assert_eq!(errors(Csv, table(rows).replace('\n', end)), expected);
    }
    let errors = errors(Csv, table("a,@,\n7").replace('\n', "\r"));
    assert_eq!(errors, "line 3: expected 6 cells, as in the header, found 1");
}

/// Decision 039: a typo in a column name must not become a silent null.
#[test]
fn invalid_column_names_are_errors_of_the_header() {
    let hint = |title| {
        format!(
            "did you mean comment? Then add \"{title}\" = \"comment\" to [columns] of a mapping, or else add it to ignore"
        )
    };
    for (file, expected) in [
        (
            "batch_id,batch_id,coment,,batch_name,number_of_images,warnings\nx,y,z,,,,\n".into(),
            format!(
                "line 1: batch_id (2): not sure that it is batch_id, because another column has the same title; if so, add \"batch_id (2)\" = \"batch_id\" to [columns] of a mapping, or else add it to ignore\n\
                line 1: coment: unknown field; {}\n\
                line 1: batch_creation_date: missing required column",
                hint("coment")
            ),
        ),
        // The rows are still validated.
        (
            table("a,@,x\n,@,x").replace("comment", "commend"),
            format!(
                "line 1: commend: unknown field; {}\nline 3: batch_id: required field is null",
                hint("commend")
            ),
        ),
        // Spreadsheets write empty columns.
        (table("a,@,\nb,@,x").replace("comment", ""), "line 3: column 6: missing column name".into()),
    ] {
        assert_eq!(errors(Csv, file), expected);
    }
}

#[test]
fn broken_quotes_and_other_encodings_stop_the_reading() {
    let mut mixed = table("a,@,ö\nb,@,?").into_bytes();
    *mixed.iter_mut().rfind(|byte| **byte == b'?').unwrap() = 0xE4;
    let mut dos = table("a,@,?").into_bytes();
    *dos.iter_mut().rfind(|byte| **byte == b'?').unwrap() = 0x81;
    let utf8 = "expected UTF-8 text; save the sheet as \"CSV UTF-8\"";
    for (file, expected) in [
        (mixed, format!("line 3: {utf8}, found byte 0xE4 at byte 33 of the row")),
        (
            dos,
            "line 2: text of an unknown encoding: add the right one to a mapping: encoding = \"windows-1251\" (\"Ѓ\") or \"macintosh\" (\"Å\"); if none is \
            right, save the file as UTF-8"
                .into(),
        ),
        (
            b"PK\x03\x04\n".to_vec(),
            "expected UTF-8 text; if it is an Excel workbook, name it .xlsx, found a workbook or an archive".into(),
        ),
        (b"b\0a\0".to_vec(), format!("{utf8}, found UTF-16 without a byte order mark, or binary data")),
        (vec![], "expected a header with the field names, found an empty file".into()),
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

#[test]
fn an_apostrophe_before_a_formula_is_of_a_file_for_excel() {
    let comment = |file: String| batches(Csv, file)[0].split("\"comment\":").nth(1).unwrap().to_owned();
    for (cell, excel, plain) in
        [("'=1", "=1", "'=1"), ("''=1", "'=1", "''=1"), ("'quoted'", "'quoted'", "'quoted'")]
    {
        let file = table(&format!("a,@,{cell}"));
        assert!(comment(format!("\u{FEFF}{file}")).starts_with(&format!("\"{excel}\"")));
        assert!(comment(file).starts_with(&format!("\"{plain}\"")));
    }
}

#[test]
fn an_empty_text_is_quoted_unless_every_cell_is() {
    let file = table("a,@,\"\"");
    assert!(batches(Csv, file.clone())[0].contains("\"comment\":\"\""));
    let quoted = file.replacen(HEADER, &format!("\"{}\"", HEADER.replace(',', "\",\"")), 1);
    assert!(batches(Csv, quoted)[0].contains("\"comment\":null"));
}

#[test]
fn umlauts_of_an_old_mac_are_a_warning() {
    let bytes = [table("a,@,x").as_bytes(), b"b,n,2026-01-31T08:00:00Z,1,true,M\x9Ahre gro\xA7\n"].concat();
    let shown = preview(Csv, temporary_file(Cursor::new(bytes)), &ReadOptions::default());
    let warnings = shown.result.unwrap().warnings.first;
    let warning = warnings.first().unwrap().to_string();
    assert!(warning.starts_with("line 3: read as windows-1252, which may be wrong"), "{warning}");
    assert!(warning.contains("or \"macintosh\" (\"Möhre\")"), "{warning}");
    assert_eq!(warnings.len(), 1);
}
