//! Writes an Excel workbook with typed cells, row by row through a temporary file. The same batches always produce the
//! same bytes.

#[cfg(test)]
mod tests;

use std::io::{BufWriter, Seek, Write};
use std::iter::Peekable;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;

use batchscan_model::{Batch, Field, FieldValue, Kind, UtcInstant};
use rust_xlsxwriter::{DocProperties, ExcelDateTime, Format, IgnoreError, Workbook, Worksheet, XlsxError};

use super::columns::{Columns, excel_title};
use super::output::{Batches, CELL_UNITS_MAX, CutTexts, WriteError};

/// The rows of a sheet, with its header: a limit of Excel.
const SHEET_ROWS_MAX: u32 = 1_048_576;

/// The level of Excel: two thirds of the time of the library's default for a tenth more bytes.
const COMPRESSION_LEVEL: u8 = 3;

/// Writes all batches.
pub(super) fn write(
    batches: &mut Batches<'_>,
    columns: &Columns,
    file: impl Write + Seek + Send,
    temp_dir: &Path,
) -> Result<CutTexts, WriteError> {
    catch_panic(|| write_sheets(batches, columns, file, temp_dir, SHEET_ROWS_MAX))
}

/// The library panics if it cannot write its temporary files, for example on a full disk.
fn catch_panic<T>(call: impl FnOnce() -> Result<T, WriteError>) -> Result<T, WriteError> {
    panic::catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|payload| {
        let message = payload.downcast_ref::<String>().map_or("unknown error", |text| system_message(text));
        Err(WriteError::TempFile(message.into()))
    })
}

/// The message in `…: Os { code: 28, kind: StorageFull, message: "No space left on device" }`.
fn system_message(text: &str) -> &str {
    let message = text.split_once("message: \"").and_then(|(_, rest)| rest.split_once('"'));
    message.map_or(text, |(message, _)| message)
}

fn write_sheets(
    batches: &mut Batches<'_>,
    columns: &Columns,
    file: impl Write + Seek + Send,
    temp_dir: &Path,
    rows_max: u32,
) -> Result<CutTexts, WriteError> {
    let mut workbook = Workbook::new();
    workbook.set_tempdir(temp_dir)?.set_zip_compression_level(COMPRESSION_LEVEL);
    workbook.set_properties(&creation_properties()?);
    let mut cut = CutTexts::default();
    let mut batches = batches.peekable();
    let mut sheets = 0;
    while sheets == 0 || batches.peek().is_some() {
        sheets += 1;
        let sheet = workbook.add_worksheet_with_constant_memory()?;
        sheet.set_name(if sheets == 1 { "Batches".into() } else { format!("Batches {sheets}") })?;
        write_sheet(sheet, &mut batches, columns, rows_max, &mut cut)?;
    }
    let mut file = BufWriter::new(file);
    workbook.save_to_writer(&mut file)?;
    file.flush()?;
    Ok(cut)
}

/// A constant creation date of the workbook, so that files do not differ: the first date of ZIP.
pub(super) fn creation_properties() -> Result<DocProperties, XlsxError> {
    Ok(DocProperties::new().set_creation_datetime(&ExcelDateTime::from_ymd(1980, 1, 1)?))
}

/// Writes batches to a sheet until it is full.
fn write_sheet(
    sheet: &mut Worksheet,
    batches: &mut Peekable<&mut Batches<'_>>,
    columns: &Columns,
    rows_max: u32,
    cut: &mut CutTexts,
) -> Result<(), WriteError> {
    let with_fraction = Format::new().set_num_format("yyyy-mm-dd hh:mm:ss.000");
    let last_column = columns.fields().len() as u16 - 1;
    write_header(sheet, columns)?;
    let mut last_row = 0;
    while last_row + 1 < rows_max
        && let Some(batch) = batches.next()
    {
        last_row += 1;
        let mut row = Row { sheet, columns, row: last_row, with_fraction: &with_fraction, cut };
        row.write(&batch.map_err(WriteError::Source)?)?;
    }
    sheet.autofilter(0, 0, last_row, last_column)?;
    // Names are often numbers, which Excel would mark as likely mistakes.
    sheet.ignore_error_range(0, 0, last_row, last_column, IgnoreError::NumberStoredAsText)?;
    Ok(())
}

/// Writes the frozen header and sets the format of the columns.
fn write_header(sheet: &mut Worksheet, columns: &Columns) -> Result<(), XlsxError> {
    let bold = Format::new().set_bold();
    for (column, field) in (0..).zip(columns.fields().iter().copied()) {
        sheet.set_column_width(column, width(field))?;
        if let Some(digits) = number_format(field) {
            sheet.set_column_format(column, &Format::new().set_num_format(digits))?;
        }
        sheet.write_string_with_format(0, column, excel_title(field), &bold)?;
    }
    sheet.set_freeze_panes(1, 0)?;
    Ok(())
}

/// The number format of a column, if it has numbers.
fn number_format(field: Field) -> Option<&'static str> {
    match field.kind() {
        Kind::Instant => Some("yyyy-mm-dd hh:mm:ss"),
        Kind::Count => Some("0"),
        Kind::Decimal => Some("0.00"),
        _ => None,
    }
}

/// The width of a column in characters: for its usual values, and for its name with the filter button.
fn width(field: Field) -> u16 {
    let values = match field {
        Field::BatchId => 38,
        Field::BatchName | Field::CropType => 28,
        Field::BatchCreationDate => 24,
        Field::ScannedByEmail => 32,
        Field::AnalysisLink | Field::Comment => 48,
        _ => 12,
    };
    values.max(excel_title(field).len() as u16 + 4)
}

struct Row<'a> {
    sheet: &'a mut Worksheet,
    columns: &'a Columns,
    row: u32,
    with_fraction: &'a Format,
    cut: &'a mut CutTexts,
}

impl Row<'_> {
    fn write(&mut self, batch: &Batch) -> Result<(), XlsxError> {
        for (column, (field, value)) in (0..).zip(self.columns.values(batch)) {
            match value {
                FieldValue::Null => {}
                FieldValue::Text(text) => {
                    let fitting = cut_to_cell(text);
                    if fitting.len() < text.len() {
                        self.cut.add(&batch.batch_id, field);
                    }
                    self.sheet.write_string(self.row, column, fitting)?;
                }
                FieldValue::Instant(instant) => self.instant(column, instant)?,
                FieldValue::Count(count) => self.number(column, count as f64)?,
                // The quotient of two whole numbers is the double nearest to the decimal.
                FieldValue::Decimal(decimal) => self.number(column, decimal.count() as f64 / 100.0)?,
                FieldValue::Flag(flag) => {
                    self.sheet.write_boolean(self.row, column, flag)?;
                }
            }
        }
        Ok(())
    }

    fn number(&mut self, column: u16, number: f64) -> Result<(), XlsxError> {
        self.sheet.write_number(self.row, column, number)?;
        Ok(())
    }

    fn instant(&mut self, column: u16, instant: UtcInstant) -> Result<(), XlsxError> {
        match serial(instant) {
            Some(days) if instant == instant.to_whole_secs() => self.number(column, days)?,
            Some(days) => {
                self.sheet.write_number_with_format(self.row, column, days, self.with_fraction)?;
            }
            None => {
                self.sheet.write_string(self.row, column, instant.to_string())?;
            }
        }
        Ok(())
    }
}

const MICROS_PER_DAY: i64 = 86_400_000_000;
/// 1970-01-01 in days of Excel's calendar.
const EPOCH_DAYS: i64 = 25_569;
/// 1900-03-01. Excel has a wrong 29 February before it, and nothing before 1900.
const FIRST_MICROS: i64 = (61 - EPOCH_DAYS) * MICROS_PER_DAY;
/// 9999-12-31T23:59:59.999Z. Excel would round later instants to a day it does not have.
const LAST_MICROS: i64 = (2_958_466 - EPOCH_DAYS) * MICROS_PER_DAY - 1_000;

/// The instant in days of Excel's calendar, if it is in range. To the microsecond until 2079.
pub(super) fn serial(instant: UtcInstant) -> Option<f64> {
    let micros = instant.micros();
    let (days, rest) = (micros.div_euclid(MICROS_PER_DAY), micros.rem_euclid(MICROS_PER_DAY));
    let is_in_range = (FIRST_MICROS..=LAST_MICROS).contains(&micros);
    is_in_range.then(|| (days + EPOCH_DAYS) as f64 + rest as f64 / MICROS_PER_DAY as f64)
}

/// The part of a text that fits into a cell. Never splits a character.
pub(super) fn cut_to_cell(text: &str) -> &str {
    // A text has at most as many UTF-16 units as bytes.
    if text.len() <= CELL_UNITS_MAX {
        return text;
    }
    let mut units = 0;
    let end = text.char_indices().find(|(_, c)| {
        units += c.len_utf16();
        units > CELL_UNITS_MAX
    });
    end.map_or(text, |(end, _)| &text[..end])
}
