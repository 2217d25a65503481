//! Writes a table of other values than batches, in memory.

use batchscan_model::FieldValue;
use rust_xlsxwriter::{Format, Workbook};

use super::csv::{self, CsvStyle};
use super::output::WriteError;
use super::xlsx::{creation_properties, cut_to_cell, serial};

/// A CSV file for programs.
pub fn table_to_csv(head: &[&str], rows: &[Vec<FieldValue<'_>>]) -> String {
    let mut out = String::new();
    for row in std::iter::once(&head.iter().map(|name| FieldValue::Text(name)).collect()).chain(rows) {
        csv::push_cells(&mut out, row.iter().copied(), CsvStyle::Plain);
    }
    out
}

/// An Excel workbook of one sheet, with typed cells. Instants are shown as days.
pub fn table_to_xlsx(name: &str, head: &[&str], rows: &[Vec<FieldValue<'_>>]) -> Result<Vec<u8>, WriteError> {
    let mut workbook = Workbook::new();
    workbook.set_properties(&creation_properties()?);
    let (bold, decimals) = (Format::new().set_bold(), Format::new().set_num_format("0.00"));
    let days = Format::new().set_num_format("yyyy-mm-dd");
    let sheet = workbook.add_worksheet();
    sheet.set_name(name)?.set_freeze_panes(1, 0)?;
    for (column, name) in (0..).zip(head) {
        sheet.write_string_with_format(0, column, *name, &bold)?;
    }
    for (row, values) in (1..).zip(rows) {
        for (column, value) in (0..).zip(values) {
            match value {
                FieldValue::Null => {}
                FieldValue::Text(text) => drop(sheet.write_string(row, column, cut_to_cell(text))?),
                FieldValue::Instant(instant) => drop(match serial(*instant) {
                    Some(number) => sheet.write_number_with_format(row, column, number, &days)?,
                    None => sheet.write_string(row, column, instant.to_string())?,
                }),
                FieldValue::Count(count) => drop(sheet.write_number(row, column, *count as f64)?),
                FieldValue::Decimal(decimal) => {
                    let number = decimal.count() as f64 / 100.0;
                    sheet.write_number_with_format(row, column, number, &decimals)?;
                }
                FieldValue::Flag(flag) => drop(sheet.write_boolean(row, column, *flag)?),
            }
        }
    }
    sheet.autofit();
    Ok(workbook.save_to_buffer()?)
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, read_to_string};

    use batchscan_model::{Hundredths, UtcInstant};

    use super::*;

    fn rows() -> [Vec<FieldValue<'static>>; 2] {
        let rate = Hundredths::from_hundredths(9_250).unwrap();
        [
            vec![FieldValue::Text("Leek, early"), FieldValue::Count(3), FieldValue::Decimal(rate)],
            vec![FieldValue::Null, FieldValue::Count(1), FieldValue::Null],
        ]
    }

    #[test]
    fn a_table_is_written_as_csv() {
        let text = table_to_csv(&["crop", "batches", "rate"], &rows());
        assert_eq!(text, "crop,batches,rate\r\n\"Leek, early\",3,92.50\r\n,1,\r\n");
    }

    #[test]
    fn a_table_is_written_as_a_workbook_with_typed_cells() {
        let bytes = table_to_xlsx("Summary", &["crop", "batches", "rate"], &rows()).unwrap();
        let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
        let mut read = |name| read_to_string(archive.by_name(name).unwrap()).unwrap();
        assert!(read("xl/workbook.xml").contains("<sheet name=\"Summary\""));
        assert!(read("xl/sharedStrings.xml").contains("<t>Leek, early</t>"));
        let sheet = read("xl/worksheets/sheet1.xml");
        assert!(sheet.contains("<c r=\"B2\"><v>3</v></c>") && sheet.contains("<v>92.5</v>"), "{sheet}");
        assert!(!sheet.contains("r=\"A3\""), "{sheet}");
    }

    #[test]
    fn an_instant_is_a_day_in_a_workbook() {
        let day = FieldValue::Instant(UtcInstant::EPOCH);
        let bytes = table_to_xlsx("Summary", &["day"], &[vec![day]]).unwrap();
        let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
        let mut read = |name| read_to_string(archive.by_name(name).unwrap()).unwrap();
        assert!(read("xl/worksheets/sheet1.xml").contains("<v>25569</v>"));
        assert!(read("xl/styles.xml").contains("formatCode=\"yyyy-mm-dd\""));
    }
}
