//! Writes CSV: RFC 4180 for programs; for Excel, numbers and dates as it reads them in its language, and no formulas.

use batchscan_model::digits::push_digits;
use batchscan_model::{Batch, Field, FieldValue, Hundredths, UtcInstant};

use super::columns::{Columns, excel_title};
use crate::read::csv::is_escaped_in_excel;

/// Without it Excel assumes an old code page.
const BYTE_ORDER_MARK: &str = "\u{FEFF}";

const LINE_END: &str = "\r\n";

/// The reader of a CSV file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CsvStyle {
    /// Programs: RFC 4180, values as in the API.
    Plain,
    /// Excel in a language with a decimal comma, which separates cells by semicolons.
    ExcelSemicolon,
    /// Excel in a language with a decimal point.
    ExcelComma,
}

pub(super) fn push_header(out: &mut String, style: CsvStyle, columns: &Columns) {
    if style.is_for_excel() {
        out.push_str(BYTE_ORDER_MARK);
    }
    let title = |field: &Field| if style.is_for_excel() { excel_title(*field) } else { field.name().into() };
    let titles: Vec<_> = columns.fields().iter().map(title).collect();
    let mut separator = [0; 4];
    out.push_str(&titles.join(style.separator().encode_utf8(&mut separator)));
    out.push_str(LINE_END);
}

pub(super) fn push_row(out: &mut String, batch: &Batch, style: CsvStyle, columns: &Columns) {
    push_cells(out, columns.values(batch).map(|(_, value)| value), style);
}

/// Appends a line.
pub(super) fn push_cells<'v>(
    out: &mut String,
    values: impl Iterator<Item = FieldValue<'v>>,
    style: CsvStyle,
) {
    for (index, value) in values.enumerate() {
        if index > 0 {
            out.push(style.separator());
        }
        match value {
            FieldValue::Null => {}
            FieldValue::Text(text) => push_text(out, text, style),
            FieldValue::Instant(instant) => push_instant(out, instant, style),
            FieldValue::Count(count) => push_digits(out, count, 1),
            FieldValue::Decimal(decimal) => push_decimal(out, decimal, style),
            FieldValue::Flag(flag) => out.push_str(if flag { "true" } else { "false" }),
        }
    }
    out.push_str(LINE_END);
}

impl CsvStyle {
    fn is_for_excel(self) -> bool {
        self != CsvStyle::Plain
    }

    /// In such languages Excel reads a number with a point as a date or as text.
    fn has_decimal_comma(self) -> bool {
        self == CsvStyle::ExcelSemicolon
    }

    fn separator(self) -> char {
        if self.has_decimal_comma() { ';' } else { ',' }
    }
}

/// Quotes a text only if necessary: to separate the cells, or to tell an empty text from null.
fn push_text(line: &mut String, text: &str, style: CsvStyle) {
    let separator = style.separator();
    let needs_quotes = |byte: u8| matches!(byte, b'"' | b'\r' | b'\n') | (char::from(byte) == separator);
    // The name of a tray must not run code on a user's machine.
    let apostrophe = if style.is_for_excel() && is_escaped_in_excel(text) { "'" } else { "" };
    // Without an early exit the compiler vectorises the loop.
    if !text.is_empty() && !text.bytes().fold(false, |any, byte| any | needs_quotes(byte)) {
        line.push_str(apostrophe);
        line.push_str(text);
        return;
    }
    line.push('"');
    line.push_str(apostrophe);
    line.push_str(&text.replace('"', "\"\""));
    line.push('"');
}

fn push_decimal(line: &mut String, decimal: Hundredths, style: CsvStyle) {
    decimal.push_to(line);
    if style.has_decimal_comma() {
        let point = line.len() - ".00".len();
        line.replace_range(point..=point, ",");
    }
}

/// As in the API; for Excel `2026-01-31 08:00:00`, which it reads as a date in every language.
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
        line.replace_range(point..=point, if style.has_decimal_comma() { "," } else { "." });
        let end = point + ".123".len();
        line.extend(std::iter::repeat_n('0', end - line.len()));
    }
}

/// Excel reads a time with digits below the millisecond as text.
fn to_whole_millis(instant: UtcInstant) -> UtcInstant {
    let micros = instant.micros();
    UtcInstant::from_micros(micros - micros.rem_euclid(1_000)).unwrap_or(instant)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Format;
    use crate::read::{Mapping, RateUnit, RateUnits, ReadOptions};
    use crate::testing::{any_batch, bare, full, read_back, read_with};
    use crate::write::TextWriter;

    fn line(batch: &Batch, style: CsvStyle) -> String {
        let mut out = String::new();
        push_row(&mut out, batch, style, &Columns::All);
        out
    }

    fn file(batches: &[Batch], style: CsvStyle) -> String {
        TextWriter::new(Format::Csv, style, Columns::All).file(batches)
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

    #[test]
    fn every_value_is_written_in_each_style() {
        let plain = "b-000123,\"Tray 7 \"\"early\"\"\",2026-01-31T08:00:00.5Z,Tomato 'Roma',12,128,118.40,9.60,92.50,110.00,\
            18.00,85.94,24.07,-0.50,ann@example.org,https://reports.example.org/b-000123,\"a, b; c\r\nd\",false\r\n";
        let semicolon = "b-000123;\"Tray 7 \"\"early\"\"\";2026-01-31 08:00:00,500;Tomato 'Roma';12;128;118,40;9,60;92,50;\
            110,00;18,00;85,94;24,07;-0,50;ann@example.org;https://reports.example.org/b-000123;\"a, b; c\r\nd\";false\r\n";
        let comma = plain.replace("T08:00:00.5Z", " 08:00:00.500");
        let bare = bare("b");
        for (batch, style, expected) in [
            (&full(), CsvStyle::Plain, plain),
            (&full(), CsvStyle::ExcelSemicolon, semicolon),
            (&full(), CsvStyle::ExcelComma, &comma),
            (&bare, CsvStyle::Plain, "b,n,2026-01-31T08:00:00Z,,1,,,,,,,,,,,,,true\r\n"),
        ] {
            assert_eq!(line(batch, style), expected);
        }
    }

    #[test]
    fn the_header_names_the_fields_and_excel_gets_a_byte_order_mark() {
        let header = |style| file(&[], style);
        let names = header(CsvStyle::Plain);
        assert!(names.starts_with("batch_id,batch_name,") && names.ends_with(",comment,warnings\r\n"));
        let names = names.replace("_date", "_date (UTC)").replace("_rate", "_rate (%)");
        let names = names.replace("_variation", "_variation (%)");
        assert_eq!(header(CsvStyle::ExcelComma), format!("\u{FEFF}{names}"));
        assert_eq!(header(CsvStyle::ExcelSemicolon), format!("\u{FEFF}{}", names.replace(',', ";")));
    }

    #[test]
    fn texts_are_quoted_if_necessary_and_never_formulas_in_excel() {
        use CsvStyle::{ExcelComma, ExcelSemicolon, Plain};
        for (value, style, cell) in [
            ("a;b 'c' \t", Plain, "a;b 'c' \t"),
            ("a;b", ExcelSemicolon, "\"a;b\""),
            ("a,b", ExcelSemicolon, "a,b"),
            ("a,b", ExcelComma, "\"a,b\""),
            ("\"", Plain, "\"\"\"\""),
            ("", Plain, "\"\""),
            ("\n", Plain, "\"\n\""),
            ("=1+1", Plain, "=1+1"),
            ("=1+1", ExcelComma, "'=1+1"),
            ("+1", ExcelSemicolon, "'+1"),
            ("-1", ExcelComma, "'-1"),
            ("@SUM(A1)", ExcelSemicolon, "'@SUM(A1)"),
            ("\tx", ExcelComma, "'\tx"),
            ("=A1&\";,\"", ExcelComma, "\"'=A1&\"\";,\"\"\""),
            ("\r=1", ExcelSemicolon, "\"'\r=1\""),
            ("a=1", ExcelComma, "a=1"),
        ] {
            assert_eq!(text(value, style), cell);
        }
    }

    #[test]
    fn a_date_for_excel_has_three_fraction_digits_or_none() {
        use CsvStyle::{ExcelComma, ExcelSemicolon, Plain};
        let fine = "2026-01-31T08:00:00.123987Z";
        for (date, style, cell) in [
            (fine, Plain, fine),
            (fine, ExcelComma, "2026-01-31 08:00:00.123"),
            (fine, ExcelSemicolon, "2026-01-31 08:00:00,123"),
            ("2026-01-31T08:00:00.000987Z", ExcelComma, "2026-01-31 08:00:00"),
            ("2026-01-31T08:00:00.01Z", ExcelComma, "2026-01-31 08:00:00.010"),
            ("0001-01-01T00:00:00Z", ExcelComma, "0001-01-01 00:00:00"),
        ] {
            assert_eq!(instant(date, style), cell);
        }
    }

    proptest! {
        #[test]
        fn a_plain_file_reads_back_as_itself(batches in prop::collection::vec(any_batch(), 0..4)) {
            let written = std::io::Cursor::new(file(&batches, CsvStyle::Plain));
            // Else rates that are all at most 1 are rejected.
            let mapping = Mapping { rates: RateUnits::All(RateUnit::Percent), ..Mapping::default() };
            let read = read_with(Format::Csv, written, &ReadOptions { mapping, ..ReadOptions::default() }).unwrap();
            prop_assert_eq!(read, batches.iter().map(Batch::to_json).collect::<Vec<_>>());
        }

        /// Excel has milliseconds only.
        #[test]
        fn a_file_for_excel_reads_back_as_itself(
            batches in prop::collection::vec(any_batch(), 0..4),
            style in prop::sample::select(vec![CsvStyle::ExcelSemicolon, CsvStyle::ExcelComma]),
        ) {
            let written = file(&batches, style);
            let read = read_back(Format::Csv, written.clone().into_bytes());
            prop_assert_eq!(file(&read, style), written);
        }
    }
}
