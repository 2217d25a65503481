//! A batch as a line of CSV. RFC 4180 for programs; for Excel, cells that it reads as numbers and dates wherever it
//! runs, and never as formulas.

use batchscan_model::digits::push_digits;
use batchscan_model::{Batch, Field, Hundredths, UtcInstant};

use super::CsvStyle;
use super::cells::{Cell, cells};

/// Without it Excel takes the file for text in an old code page.
const BYTE_ORDER_MARK: &str = "\u{FEFF}";

const LINE_END: &str = "\r\n";

/// Appends the line of the eighteen names.
pub(super) fn push_header(out: &mut String, style: CsvStyle) {
    if style.is_for_excel() {
        out.push_str(BYTE_ORDER_MARK);
    }
    let names = Field::ALL.map(Field::name);
    let mut separator = [0; 4];
    out.push_str(&names.join(style.separator().encode_utf8(&mut separator)));
    out.push_str(LINE_END);
}

/// Appends the line of a batch.
pub(super) fn push_row(out: &mut String, batch: &Batch, style: CsvStyle) {
    for (place, cell) in cells(batch).into_iter().enumerate() {
        if place > 0 {
            out.push(style.separator());
        }
        match cell {
            Cell::Null => {}
            Cell::Text(text) => push_text(out, text, style),
            Cell::Instant(instant) => push_instant(out, instant, style),
            Cell::Count(count) => push_digits(out, count, 1),
            Cell::Decimal(decimal) => push_decimal(out, decimal, style),
            Cell::Flag(flag) => out.push_str(if flag { "true" } else { "false" }),
        }
    }
    out.push_str(LINE_END);
}

impl CsvStyle {
    fn is_for_excel(self) -> bool {
        self != CsvStyle::Plain
    }

    fn separator(self) -> char {
        match self {
            CsvStyle::Plain | CsvStyle::ExcelComma => ',',
            CsvStyle::ExcelSemicolon => ';',
        }
    }

    /// Where Excel wants semicolons it takes a number with a point for a date, or for text.
    fn decimal_sign(self) -> char {
        match self {
            CsvStyle::Plain | CsvStyle::ExcelComma => '.',
            CsvStyle::ExcelSemicolon => ',',
        }
    }
}

/// In quotes only where the line could not be taken apart without them, or where an empty text would look like null.
fn push_text(line: &mut String, text: &str, style: CsvStyle) {
    let separator = style.separator();
    let is_mark = |byte: u8| matches!(byte, b'"' | b'\r' | b'\n') | (char::from(byte) == separator);
    let apostrophe = if style.is_for_excel() && is_like_a_formula(text) { "'" } else { "" };
    // Without an early exit the compiler looks at many bytes at once.
    if !text.is_empty() && !text.bytes().fold(false, |any, byte| any | is_mark(byte)) {
        line.push_str(apostrophe);
        line.push_str(text);
        return;
    }
    line.push('"');
    line.push_str(apostrophe);
    for (place, part) in text.split('"').enumerate() {
        line.push_str(if place > 0 { "\"\"" } else { "" });
        line.push_str(part);
    }
    line.push('"');
}

/// What Excel would work out instead of showing it. What others named a tray must not run on somebody's desk.
fn is_like_a_formula(text: &str) -> bool {
    text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n'])
}

fn push_decimal(line: &mut String, decimal: Hundredths, style: CsvStyle) {
    decimal.push_to(line);
    if style.decimal_sign() == ',' {
        let point = line.len() - ".00".len();
        line.replace_range(point..=point, ",");
    }
}

/// As the interface prints it; for Excel `2026-01-31 08:00:00`, which it reads as a date in every language.
fn push_instant(line: &mut String, instant: UtcInstant, style: CsvStyle) {
    if !style.is_for_excel() {
        return instant.push_to(line);
    }
    let start = line.len();
    to_whole_millis(instant).push_to(line);
    line.pop();
    let blank = start + "2026-01-31".len();
    line.replace_range(blank..=blank, " ");
    let point = start + "2026-01-31 08:00:00".len();
    if line.len() > point {
        line.replace_range(point..=point, if style.decimal_sign() == ',' { "," } else { "." });
        let end = point + ".123".len();
        line.extend(std::iter::repeat_n('0', end - line.len()));
    }
}

/// Excel takes a time with digits below the millisecond for text.
fn to_whole_millis(instant: UtcInstant) -> UtcInstant {
    let micros = instant.micros();
    UtcInstant::from_micros(micros - micros.rem_euclid(1_000)).unwrap_or(instant)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::{any_batch, bare, full, imported, whole};
    use super::super::text::TextForm;
    use super::*;
    use crate::read as import;

    const STYLES: [CsvStyle; 3] = [CsvStyle::Plain, CsvStyle::ExcelSemicolon, CsvStyle::ExcelComma];

    fn line(batch: &Batch, style: CsvStyle) -> String {
        let mut out = String::new();
        push_row(&mut out, batch, style);
        out
    }

    fn text(text: &str, style: CsvStyle) -> String {
        let mut line = String::new();
        push_text(&mut line, text, style);
        line
    }

    fn instant(text: &str, style: CsvStyle) -> String {
        let mut line = String::from("x");
        push_instant(&mut line, UtcInstant::parse_any_offset(text).unwrap(), style);
        line.split_off(1)
    }

    /// The rows of a file as any reader of RFC 4180 takes them apart.
    fn rows(file: &str, separator: char) -> Vec<Vec<String>> {
        let mut rows = vec![vec![String::new()]];
        let mut is_quoted = false;
        let mut rest = file.chars().peekable();
        while let Some(sign) = rest.next() {
            let row = rows.last_mut().unwrap();
            let cell = row.last_mut().unwrap();
            match sign {
                '"' if is_quoted && rest.next_if_eq(&'"').is_some() => cell.push('"'),
                '"' => is_quoted = !is_quoted,
                sign if is_quoted => cell.push(sign),
                sign if sign == separator => row.push(String::new()),
                '\r' => assert_eq!(rest.next(), Some('\n')),
                '\n' => panic!("a line end without its carriage return"),
                sign => cell.push(sign),
            }
            if sign == '\r' && !is_quoted {
                rows.push(vec![String::new()]);
            }
        }
        assert_eq!(rows.pop().unwrap(), [""], "the file ends with a line end");
        rows
    }

    #[test]
    fn a_plain_line_holds_every_value_as_the_interface_prints_it() {
        let expected = "b-1,\"Tray 7 \"\"early\"\"\",2026-01-31T08:00:00.5Z,Fußball-Salat,12,128,118.40,9.60,92.50,\
            110.00,18.00,85.94,0.07,-0.50,ann@example.org,https://example.org/a?b=1,\"a, b; c\r\nd\",false\r\n";
        assert_eq!(line(&full(), CsvStyle::Plain), expected);
        assert_eq!(line(&bare("b"), CsvStyle::Plain), "b,n,2026-01-31T08:00:00Z,,1,,,,,,,,,,,,,true\r\n");
    }

    #[test]
    fn a_line_for_excel_has_its_decimal_sign_and_dates_that_it_reads() {
        let expected = "b-1;\"Tray 7 \"\"early\"\"\";2026-01-31 08:00:00,500;Fußball-Salat;12;128;118,40;9,60;92,50;\
            110,00;18,00;85,94;0,07;-0,50;ann@example.org;https://example.org/a?b=1;\"a, b; c\r\nd\";false\r\n";
        assert_eq!(line(&full(), CsvStyle::ExcelSemicolon), expected);
        let comma = expected.replace(',', ".").replace(';', ",").replace("a. b, c", "a, b; c");
        assert_eq!(line(&full(), CsvStyle::ExcelComma), comma);
    }

    #[test]
    fn the_header_names_the_fields_and_only_excel_needs_a_mark() {
        let header = |style| whole(TextForm::Csv(style), &[]);
        let names = header(CsvStyle::Plain);
        assert!(names.starts_with("batch_id,batch_name,") && names.ends_with(",comment,warnings\r\n"));
        assert_eq!(header(CsvStyle::ExcelComma), format!("\u{FEFF}{names}"));
        assert_eq!(header(CsvStyle::ExcelSemicolon), format!("\u{FEFF}{}", names.replace(',', ";")));
    }

    #[test]
    fn quotes_stand_only_where_they_are_needed() {
        use CsvStyle::{ExcelComma, ExcelSemicolon, Plain};
        assert_eq!(text("a;b 'c' \t", Plain), "a;b 'c' \t");
        assert_eq!(text("a;b", ExcelSemicolon), "\"a;b\"");
        assert_eq!(text("a,b", ExcelSemicolon), "a,b");
        assert_eq!(text("a,b", ExcelComma), "\"a,b\"");
        assert_eq!(text("\"", Plain), "\"\"\"\"");
        assert_eq!(text("", Plain), "\"\"");
        assert_eq!(text("\n", Plain), "\"\n\"");
    }

    #[test]
    fn no_cell_for_excel_is_a_formula() {
        for style in [CsvStyle::ExcelSemicolon, CsvStyle::ExcelComma] {
            for formula in ["=1+1", "+1", "-1", "@SUM(A1)", "\tx"] {
                assert_eq!(text(formula, style), format!("'{formula}"));
            }
            assert_eq!(text("=A1&\";,\"", style), "\"'=A1&\"\";,\"\"\"");
            assert_eq!(text("\r=1", style), "\"'\r=1\"");
            assert_eq!(text("a=1", style), "a=1");
        }
        assert_eq!(text("=1+1", CsvStyle::Plain), "=1+1");
    }

    #[test]
    fn a_date_for_excel_has_three_fraction_digits_or_none() {
        use CsvStyle::{ExcelComma, ExcelSemicolon, Plain};
        let fine = "2026-01-31T08:00:00.123987Z";
        assert_eq!(instant(fine, Plain), fine);
        assert_eq!(instant(fine, ExcelComma), "2026-01-31 08:00:00.123");
        assert_eq!(instant(fine, ExcelSemicolon), "2026-01-31 08:00:00,123");
        assert_eq!(instant("2026-01-31T08:00:00.000987Z", ExcelComma), "2026-01-31 08:00:00");
        assert_eq!(instant("2026-01-31T08:00:00.01Z", ExcelComma), "2026-01-31 08:00:00.010");
        assert_eq!(instant("0001-01-01T00:00:00Z", ExcelComma), "0001-01-01 00:00:00");
    }

    proptest! {
        #[test]
        fn every_cell_reads_back_as_it_is_in_every_style(batches in prop::collection::vec(any_batch(), 0..4)) {
            for style in STYLES {
                let file = whole(TextForm::Csv(style), &batches);
                let rows = rows(file.trim_start_matches(BYTE_ORDER_MARK), style.separator());
                prop_assert_eq!(rows.len(), batches.len() + 1);
                for (batch, row) in batches.iter().zip(&rows[1..]) {
                    prop_assert_eq!(row.len(), Field::ALL.len());
                    for (cell, read) in cells(batch).into_iter().zip(row) {
                        match cell {
                            Cell::Null => prop_assert_eq!(read, ""),
                            Cell::Text(text) if style.is_for_excel() && is_like_a_formula(text) => {
                                prop_assert_eq!(read.strip_prefix('\''), Some(text));
                            }
                            Cell::Text(text) => prop_assert_eq!(read, text),
                            Cell::Count(count) => prop_assert_eq!(read, &count.to_string()),
                            Cell::Decimal(decimal) => {
                                prop_assert_eq!(read.replace(',', "."), decimal.to_string());
                            }
                            Cell::Instant(instant) if style.is_for_excel() => {
                                let text = format!("{}Z", read.replace(',', "."));
                                let millis = UtcInstant::parse_any_offset(&text).unwrap();
                                prop_assert_eq!(millis, to_whole_millis(instant));
                            }
                            Cell::Instant(instant) => prop_assert_eq!(read, &instant.to_string()),
                            Cell::Flag(flag) => prop_assert_eq!(read, &flag.to_string()),
                        }
                    }
                }
            }
        }

        #[test]
        fn the_import_reads_a_plain_file_back(batches in prop::collection::vec(any_batch(), 0..4)) {
            let file = whole(TextForm::Csv(CsvStyle::Plain), &batches);
            // To the import an empty cell is null, quotes or not.
            let null_if_empty = |text: Option<String>| text.filter(|text| !text.is_empty());
            let expected: Vec<Batch> = batches.into_iter().map(|batch| Batch {
                crop_type: null_if_empty(batch.crop_type),
                scanned_by_email: null_if_empty(batch.scanned_by_email),
                comment: null_if_empty(batch.comment),
                ..batch
            }).collect();
            prop_assert_eq!(imported(import::Format::Csv, file.into_bytes()), expected);
        }
    }
}
