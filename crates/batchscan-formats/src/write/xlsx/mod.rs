//! An Excel workbook: numbers that are numbers, dates that are dates, and texts that are never anything else. Written
//! row by row by way of a temporary file, and the same batches always give the same bytes.

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::iter::Peekable;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;

use anyhow::{Context as _, anyhow};
use batchscan_model::{Batch, Field, UtcInstant};
use rust_xlsxwriter::{DocProperties, ExcelDateTime, Format, IgnoreError, Workbook, Worksheet, XlsxError};

use super::cells::{Cell, Kind, cells, kind};
use super::{Batches, Remarks};

/// The longest text of a cell, in units of UTF-16: Excel's own limit.
pub(super) const CELL_UNITS_MAX: usize = 32_767;

/// The rows of a sheet, with its header: Excel's own limit.
const SHEET_ROWS_MAX: u32 = 1_048_576;

/// As Excel itself compresses: two thirds of the time of the library's own choice, for a tenth more bytes.
const COMPRESSION_LEVEL: u8 = 3;

const LAST_COLUMN: u16 = Field::ALL.len() as u16 - 1;

/// Writes all batches. The sheets lie in nameless files in `folder` until the workbook is put together: some
/// kilobyte for each batch.
pub fn write(batches: &mut Batches<'_>, file: File, folder: &Path) -> anyhow::Result<Remarks> {
    guarded(|| write_sheets(batches, file, folder, SHEET_ROWS_MAX))
}

/// The library panics where its temporary files cannot be written, as on a full disk. Nothing of it is used again.
fn guarded<T>(call: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    panic::catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|payload| {
        let told = payload.downcast_ref::<String>().map_or("no reason told", |told| system_message(told));
        Err(anyhow!("{told}").context("cannot write the workbook's temporary file"))
    })
}

/// What the system said, out of `…: Os { code: 28, kind: StorageFull, message: "No space left on device" }`.
fn system_message(told: &str) -> &str {
    let message = told.split_once("message: \"").and_then(|(_, rest)| rest.split_once('"'));
    message.map_or(told, |(message, _)| message)
}

fn write_sheets(
    batches: &mut Batches<'_>,
    file: File,
    folder: &Path,
    rows_max: u32,
) -> anyhow::Result<Remarks> {
    let mut workbook = Workbook::new();
    workbook.set_tempdir(folder)?.set_zip_compression_level(COMPRESSION_LEVEL);
    workbook.set_properties(&DocProperties::new().set_creation_datetime(&timeless()?));
    let mut remarks = Remarks::default();
    let mut batches = batches.peekable();
    let mut sheets = 0;
    while sheets == 0 || batches.peek().is_some() {
        sheets += 1;
        let sheet = workbook.add_worksheet_with_constant_memory()?;
        sheet.set_name(if sheets == 1 { "Batches".into() } else { format!("Batches {sheets}") })?;
        fill(sheet, &mut batches, rows_max, &mut remarks)?;
    }
    let mut file = BufWriter::new(file);
    workbook.save_to_writer(&mut file).context("cannot put the workbook together")?;
    file.flush()?;
    Ok(remarks)
}

/// The workbook's own date of creation. The hour of the pull would make every file differ; this is where ZIP begins.
fn timeless() -> Result<ExcelDateTime, XlsxError> {
    ExcelDateTime::from_ymd(1980, 1, 1)
}

/// Fills a sheet with as many batches as it has rows.
fn fill(
    sheet: &mut Worksheet,
    batches: &mut Peekable<&mut Batches<'_>>,
    rows_max: u32,
    remarks: &mut Remarks,
) -> anyhow::Result<()> {
    let with_fraction = Format::new().set_num_format("yyyy-mm-dd hh:mm:ss.000");
    head(sheet)?;
    let mut last_row = 0;
    while last_row + 1 < rows_max
        && let Some(batch) = batches.next()
    {
        last_row += 1;
        let mut row = Row { sheet, row: last_row, with_fraction: &with_fraction, remarks };
        row.write(&batch?)?;
    }
    sheet.autofilter(0, 0, last_row, LAST_COLUMN)?;
    // Batches are often named by a number, and Excel would mark each of them as a likely mistake.
    sheet.ignore_error_range(0, 0, last_row, LAST_COLUMN, IgnoreError::NumberStoredAsText)?;
    Ok(())
}

/// Writes the header, which stays in sight, and sets how the columns look.
fn head(sheet: &mut Worksheet) -> Result<(), XlsxError> {
    let bold = Format::new().set_bold();
    for (column, field) in (0..).zip(Field::ALL) {
        sheet.set_column_width(column, width(field))?;
        if let Some(digits) = number_format(field) {
            sheet.set_column_format(column, &Format::new().set_num_format(digits))?;
        }
        sheet.write_string_with_format(0, column, field.name(), &bold)?;
    }
    sheet.set_freeze_panes(1, 0)?;
    Ok(())
}

/// How a column's numbers are shown. A column of texts or flags has none.
fn number_format(field: Field) -> Option<&'static str> {
    match kind(field) {
        Kind::Instant => Some("yyyy-mm-dd hh:mm:ss"),
        Kind::Count => Some("0"),
        Kind::Decimal => Some("0.00"),
        Kind::Text | Kind::Flag => None,
    }
}

/// A column's width in characters: its usual values are in sight, and so is its name beside the filter's button.
fn width(field: Field) -> u16 {
    let values = match field {
        Field::BatchId => 38,
        Field::BatchName | Field::CropType => 28,
        Field::BatchCreationDate => 24,
        Field::ScannedByEmail => 32,
        Field::AnalysisLink | Field::Comment => 48,
        _ => 12,
    };
    values.max(field.name().len() as u16 + 4)
}

/// A row in the making.
struct Row<'a> {
    sheet: &'a mut Worksheet,
    row: u32,
    with_fraction: &'a Format,
    remarks: &'a mut Remarks,
}

impl Row<'_> {
    fn write(&mut self, batch: &Batch) -> Result<(), XlsxError> {
        for ((column, field), cell) in (0..).zip(Field::ALL).zip(cells(batch)) {
            match cell {
                Cell::Null => {}
                Cell::Text(text) => {
                    let held = held(text);
                    if held.len() < text.len() {
                        self.remarks.cut(&batch.batch_id, field);
                    }
                    self.sheet.write_string(self.row, column, held)?;
                }
                Cell::Instant(instant) => self.instant(column, instant)?,
                Cell::Count(count) => self.number(column, count as f64)?,
                // The quotient of two whole numbers is the double nearest to the decimal.
                Cell::Decimal(decimal) => self.number(column, decimal.count() as f64 / 100.0)?,
                Cell::Flag(flag) => {
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
/// 1970-01-01, in days of Excel's calendar.
const EPOCH_DAYS: i64 = 25_569;
/// 1900-03-01. Excel believes in a 29th of February before it, and in nothing before 1900.
const FIRST_MICROS: i64 = (61 - EPOCH_DAYS) * MICROS_PER_DAY;
/// 9999-12-31T23:59:59.999Z. What comes after it would be shown as a day that Excel does not have.
const LAST_MICROS: i64 = (2_958_466 - EPOCH_DAYS) * MICROS_PER_DAY - 1_000;

/// The instant in days of Excel's calendar, if that has it.
fn serial(instant: UtcInstant) -> Option<f64> {
    let micros = instant.micros();
    let (days, rest) = (micros.div_euclid(MICROS_PER_DAY), micros.rem_euclid(MICROS_PER_DAY));
    let is_known = (FIRST_MICROS..=LAST_MICROS).contains(&micros);
    is_known.then(|| (days + EPOCH_DAYS) as f64 + rest as f64 / MICROS_PER_DAY as f64)
}

/// As much of a text as a cell holds. No character is cut in two.
fn held(text: &str) -> &str {
    // A text has at most as many units as bytes, so that most need no counting.
    if text.len() <= CELL_UNITS_MAX {
        return text;
    }
    let mut units = 0;
    let end = text.char_indices().find(|(_, sign)| {
        units += sign.len_utf16();
        units > CELL_UNITS_MAX
    });
    end.map_or(text, |(end, _)| &text[..end])
}
