//! Excel: every sheet with cells is a table with a header, as `pull` writes them. Reads cell by cell; only the texts
//! that Excel shares between cells are in memory.

mod limited_file;
#[cfg(test)]
mod tests;
mod value;
mod xml;

use std::collections::HashSet;
use std::fmt::Display;
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::sync::atomic::{AtomicU64, Ordering};

use batchscan_model::printable::clip;
use batchscan_model::{Field, FieldError, RawBatch, Value};
use calamine::{
    DataRef, DataType as _, Reader as _, SheetType, Xlsx, XlsxCellFormulaMetadataRecord as Cell, XlsxError,
};

use super::catch_panic::catch_panic;
use super::collector::{Collector, Stop, unexpected};
use super::error::Location;
use super::header::match_columns;
use limited_file::{LIMITS, LimitedFile, Limits, PartsError, too_large};
use value::value;

/// Columns of a sheet: a limit of Excel.
const COLUMNS_MAX: usize = 16_384;
/// The error after a panic of the library.
const INCONSISTENT: &str = "inconsistent data";
/// Programs that do not calculate write such cells.
const WITHOUT_VALUE: &str = "a formula without a stored value; open the file in a spreadsheet program and save it, so \
                             that values are stored";

pub(super) fn read(
    mut file: File,
    bytes_read: &AtomicU64,
    collector: &mut Collector<'_>,
) -> Result<(), Stop> {
    let length = file.metadata()?.len();
    check_start(&mut file, collector)?;
    let file = LimitedFile::new(file, bytes_read);
    let limits = file.limits();
    let checked = catch_panic(|| PartsError::Damaged(INCONSISTENT.into()), || file.check_parts());
    let file = checked.map_err(|error| match error {
        PartsError::OtherFormat(found) => fail_as_other_format(found, collector),
        error => fail(&error, &limits, Location::File, collector),
    })?;
    let opened = catch_panic(damaged, || Xlsx::new(file));
    let mut workbook = opened.map_err(|error| fail(&error, &limits, Location::File, collector))?;
    limits.open_all_parts();
    let mut has_table = false;
    for (sheet, name) in (1..).zip(sheet_names(&workbook, collector)?) {
        let table = Table::new(sheet, workbook.has_1904_epoch());
        has_table |= read_sheet(&mut workbook, &name, table, &limits, collector)?;
    }
    if !has_table {
        let error = unexpected("an empty workbook", "a header with the field names");
        return Err(collector.fail(Location::File, error));
    }
    bytes_read.fetch_max(length, Ordering::Relaxed);
    Ok(())
}

/// The names of the sheets with cells. The library finds sheets by their names.
fn sheet_names(workbook: &Xlsx<LimitedFile<'_>>, collector: &mut Collector<'_>) -> Result<Vec<String>, Stop> {
    let sheets = workbook.sheets_metadata().iter().filter(|sheet| sheet.typ == SheetType::WorkSheet);
    let names: Vec<String> = sheets.map(|sheet| sheet.name.clone()).collect();
    if names.iter().collect::<HashSet<_>>().len() < names.len() {
        let found = "two sheets with the same name";
        return Err(collector.fail(Location::File, unexpected(found, "a complete Excel workbook")));
    }
    Ok(names)
}

/// Rejects other files before the library looks at them.
fn check_start(file: &mut File, collector: &mut Collector<'_>) -> Result<(), Stop> {
    let mut start = Vec::new();
    file.rewind()?;
    file.by_ref().take(4).read_to_end(&mut start)?;
    file.rewind()?;
    let found = match start.as_slice() {
        b"PK\x03\x04" => return Ok(()),
        [0xD0, 0xCF, 0x11, 0xE0] => "a workbook with a password, or of an Excel before 2007",
        _ => "another format",
    };
    Err(fail_as_other_format(found, collector))
}

fn fail_as_other_format(found: &str, collector: &mut Collector<'_>) -> Stop {
    collector.fail(Location::File, unexpected(found, "an Excel workbook (.xlsx)"))
}

/// Reads a sheet, and returns whether it has cells.
fn read_sheet<'a>(
    workbook: &'a mut Xlsx<LimitedFile<'_>>,
    name: &str,
    mut table: Table<'a>,
    limits: &Limits,
    collector: &mut Collector<'_>,
) -> Result<bool, Stop> {
    limits.begin_cell();
    let opened = catch_panic(damaged, || workbook.worksheet_cells_reader(name));
    let mut cells = opened.map_err(|error| fail(&error, limits, table.location(), collector))?;
    loop {
        limits.begin_cell();
        let cell = catch_panic(damaged, || cells.next_cell_with_formula_metadata());
        match cell.map_err(|error| fail(&error, limits, table.location(), collector))? {
            Some(cell) => table.add(cell, collector)?,
            None => break,
        }
    }
    table.finish_row(collector)?;
    Ok(table.columns.is_some())
}

/// The table of a sheet, row by row.
struct Table<'a> {
    sheet: usize,
    is_1904: bool,
    /// The fields of the columns, after the header.
    columns: Option<Vec<Option<Field>>>,
    /// The names of the columns, in the header.
    names: Vec<String>,
    /// The current row, from 0, and the next column in it.
    row: u32,
    next_column: usize,
    raw: RawBatch<'a>,
    is_empty: bool,
    /// Whether a value is missing, which is already an error.
    is_incomplete: bool,
}

impl<'a> Table<'a> {
    fn new(sheet: usize, is_1904: bool) -> Self {
        let (columns, names, raw) = (None, Vec::new(), RawBatch::default());
        Self {
            sheet,
            is_1904,
            columns,
            names,
            row: 0,
            next_column: 0,
            raw,
            is_empty: true,
            is_incomplete: false,
        }
    }

    fn location(&self) -> Location {
        Location::SheetRow(self.sheet, u64::from(self.row) + 1)
    }

    fn add(&mut self, cell: Cell<'a>, collector: &mut Collector<'_>) -> Result<(), Stop> {
        let (row, column) = (cell.pos.0, cell.pos.1 as usize);
        if row > self.row {
            self.finish_row(collector)?;
            (self.row, self.next_column) = (row, 0);
        }
        if row < self.row || column < self.next_column || column >= COLUMNS_MAX {
            let found = "cells in another order";
            return Err(collector.fail(self.location(), unexpected(found, "rows and columns in order")));
        }
        self.next_column = column + 1;
        let field = match &self.columns {
            _ if cell.value == DataRef::Empty && cell.formula.is_none() => return Ok(()),
            None => {
                self.names.resize(column, String::new());
                self.names.push(clip(&cell.value.as_string().unwrap_or_default()));
                self.is_empty = false;
                return Ok(());
            }
            Some(columns) => columns.get(column),
        };
        match field {
            Some(Some(field)) if cell.value == DataRef::Empty => {
                self.is_incomplete = true;
                let error = FieldError::problem(field.name(), WITHOUT_VALUE);
                collector.add_error(self.location(), error)?;
            }
            Some(Some(field)) => {
                let value = value(*field, cell.value, self.is_1904);
                self.is_empty &= value == Value::Null;
                self.raw.set(*field, value);
            }
            // The header has an error.
            Some(None) => self.is_empty = false,
            None => {
                let column = format!("column {}", column + 1);
                collector.add_error(self.location(), FieldError::problem(&column, "missing column name"))?;
            }
        }
        Ok(())
    }

    /// Passes the row on. Skips empty ones: spreadsheets write them after the last row.
    fn finish_row(&mut self, collector: &mut Collector<'_>) -> Result<(), Stop> {
        let mut raw = std::mem::take(&mut self.raw);
        let is_incomplete = std::mem::take(&mut self.is_incomplete);
        if std::mem::replace(&mut self.is_empty, true) || is_incomplete {
            return Ok(());
        }
        if self.columns.is_none() {
            let names = self.names.iter().map(String::as_str);
            self.columns = Some(match_columns(names, self.location(), collector)?);
            return Ok(());
        }
        for field in self.columns.iter().flatten().flatten() {
            if raw.get(*field).is_none() {
                raw.set(*field, Value::Null);
            }
        }
        collector.add(self.location(), &raw)
    }
}

fn damaged() -> XlsxError {
    XlsxError::Unexpected(INCONSISTENT)
}

/// A damaged file is an error of the file; a failing disk is not.
fn fail(error: &dyn Display, limits: &Limits, location: Location, collector: &mut Collector<'_>) -> Stop {
    match limits.take_failure() {
        Some(failure) if failure.kind() != too_large().kind() => Stop::Io(failure),
        Some(_) => {
            let expected = "a smaller workbook; save the sheet as \"CSV UTF-8\" and import that";
            let found = format!("a part or a cell that is too large ({LIMITS})");
            collector.fail(location, unexpected(found, expected))
        }
        None => {
            let found = format!("a damaged file ({})", clip(&error.to_string()));
            collector.fail(location, unexpected(found, "a complete Excel workbook"))
        }
    }
}
