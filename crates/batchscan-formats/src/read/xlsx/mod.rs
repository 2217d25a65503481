//! Excel: the one sheet that has the columns, or all sheets of a file that `pull` wrote. Reads cell by cell; only the
//! texts that Excel shares between cells are in memory.

mod limited_file;
mod mixed_dates;
#[cfg(test)]
mod tests;
mod value;
mod xml;

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::sync::atomic::{AtomicU64, Ordering};

use batchscan_model::printable::clip;
use batchscan_model::{Field, FieldError, Kind, RawBatch, Value};
use calamine::{
    DataRef, DataType as _, Dimensions, Hyperlink, Reader as _, SheetType, SheetVisible, Xlsx, XlsxError,
};

use super::ReadOptions;
use super::catch_panic::catch_panic;
use super::collector::{Collector, Stop, problem, unexpected};
use super::columns::{Role, is_no_batch};
use super::convert::Converter;
use super::error::Location;
use super::header::{ColumnTitle, Header, HeaderSearch, match_columns, number_equal};
use super::mapping::quoted;
use super::preview::PERCENT_CELL;
use super::title::wrong_unit_in_row;
use limited_file::{LIMITS, LimitedFile, Limits, PartsError, too_large};
use mixed_dates::MixedDates;
use value::{CellValue, Look, shown};

/// In a mapping: all sheets that have the columns.
const ALL_SHEETS: &str = "*";
/// A sheet with this many titles of fields was probably meant to be one of them.
const TABLE_FIELDS_MIN: usize = 3;
/// Columns of a sheet: a limit of Excel.
const COLUMNS_MAX: usize = 16_384;
/// The error after a panic of the library.
const INCONSISTENT: &str = "inconsistent data";
/// Programs that do not calculate write such cells.
const WITHOUT_VALUE: &str = "a formula without a stored value; open the file in a spreadsheet program and save it, so \
                             that values are stored";
/// Formulas without a value that are remembered. A file with more of them is not worth the memory.
const FORMULAS_MAX: usize = 100_000;

pub(super) fn read(
    mut file: File,
    options: &ReadOptions,
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
    limits.open_sheets();
    let names = sheet_names(&workbook, collector)?;
    collector.set_sheets(&names.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>());
    let mut sheets = Sheets { options, limits: &limits, tables: Vec::new(), search: None };
    for (sheet, (name, is_visible)) in (1..).zip(&names) {
        let is_wanted = match &options.mapping.sheet {
            Some(only) if only != ALL_SHEETS => only == name,
            _ => *is_visible && !options.mapping.is_ignored_sheet(name),
        };
        if is_wanted {
            sheets.read(&mut workbook, sheet, name, collector)?;
        } else {
            collector.notes().ignore_sheet(name);
        }
    }
    let names: Vec<String> = names.into_iter().map(|(name, _)| name).collect();
    sheets.finish(&names, collector)?;
    bytes_read.fetch_max(length, Ordering::Relaxed);
    Ok(())
}

/// The names of the sheets with cells, and whether people see them. The library finds sheets by their names.
fn sheet_names(
    workbook: &Xlsx<LimitedFile<'_>>,
    collector: &mut Collector<'_>,
) -> Result<Vec<(String, bool)>, Stop> {
    let sheets = workbook.sheets_metadata().iter().filter(|sheet| sheet.typ == SheetType::WorkSheet);
    let names: Vec<(String, bool)> =
        sheets.map(|sheet| (sheet.name.clone(), sheet.visible == SheetVisible::Visible)).collect();
    if names.iter().map(|(name, _)| name).collect::<HashSet<_>>().len() < names.len() {
        let found = "two sheets with the same name";
        return Err(collector.fail(Location::File, unexpected(found, "a complete Excel workbook")));
    }
    Ok(names)
}

/// Which sheets have the columns.
struct Sheets<'o> {
    options: &'o ReadOptions,
    limits: &'o Limits,
    /// The sheets that were read.
    tables: Vec<String>,
    /// Of the sheets without the columns, the one that is most like a table.
    search: Option<(usize, HeaderSearch<'o>)>,
}

impl<'o> Sheets<'o> {
    fn read(
        &mut self,
        workbook: &mut Xlsx<LimitedFile<'_>>,
        sheet: usize,
        name: &str,
        collector: &mut Collector<'_>,
    ) -> Result<(), Stop> {
        let is_1904 = workbook.has_1904_epoch();
        let formulas = self.find_formulas(workbook, sheet, name, collector)?;
        let mut table = Table::new(sheet, is_1904, formulas, self.options);
        table.has_merged_cells = self.limits.contents().has_merged_cells;
        table.links = self.find_links(workbook, sheet, name, collector)?;
        let outcome = read_sheet(workbook, name, &mut table, self.limits, collector);
        match table.header {
            Some(_) => {
                collector.notes().set_sheet(name);
                if let Some(converter) = &table.converter {
                    collector.finish_conversion(converter, outcome)?;
                }
                match table.dates.finish() {
                    Some(Err(error)) => collector.reject_column(error)?,
                    Some(Ok(warning)) => collector.warn(warning.location, warning.error)?,
                    None => {}
                }
                if let Some(warning) = table.dates.warn_about_number() {
                    collector.warn(warning.location, warning.error)?;
                }
                collector.finish_rates()?;
                self.tables.push(name.to_owned());
                self.check_merged_cells(workbook, name, &table, collector)?;
                self.check_second(sheet, collector)
            }
            None => {
                outcome?;
                collector.notes().ignore_sheet(name);
                let best = self.search.as_ref().map_or((0, 0), |(_, search)| search.score());
                if table.search.score() > best || table.has_cells && self.search.is_none() {
                    self.search = Some((sheet, table.search));
                }
                Ok(())
            }
        }
    }

    /// A value for several rows is stored in the first of them: the others would be empty.
    fn check_merged_cells(
        &self,
        workbook: &mut Xlsx<LimitedFile<'_>>,
        name: &str,
        table: &Table<'_>,
        collector: &mut Collector<'_>,
    ) -> Result<(), Stop> {
        let (Some(roles), true) = (&table.header, self.limits.contents().has_merged_cells) else {
            return Ok(());
        };
        self.limits.begin_part();
        let merged = catch_panic(damaged, || workbook.merge_cells_by_sheet_name(name));
        let merged = merged.map_err(|error| fail(&error, self.limits, table.location(), collector))?;
        for Dimensions { start, end } in merged {
            let columns = start.1 as usize..=end.1 as usize;
            let is_read = |index: usize| matches!(roles.get(index), Some(Role::Field(_) | Role::DateOrTime));
            if end.0 > start.0.max(table.header_row) && columns.into_iter().any(is_read) {
                let location = Location::SheetRow(table.sheet, u64::from(start.0) + 1);
                let rows = format!("the rows {} to {} have merged cells", start.0 + 1, end.0 + 1);
                collector.add_error(
                    location,
                    problem(format!("{rows}: unmerge them, and give each row its value")),
                )?;
            }
        }
        Ok(())
    }

    /// Two sheets with the columns may be two versions of the same. Only `pull` continues a table on a second sheet.
    fn check_second(&self, sheet: usize, collector: &mut Collector<'_>) -> Result<(), Stop> {
        let is_pulled = |(number, name): (usize, &String)| match number {
            1 => name == "Batches",
            _ => *name == format!("Batches {number}"),
        };
        let [first, .., last] = self.tables.as_slice() else { return Ok(()) };
        if self.options.mapping.sheet.is_some() || (1..).zip(&self.tables).all(is_pulled) {
            return Ok(());
        }
        let (first, last) = (quoted(first), quoted(last));
        let text = format!(
            "the sheets {first} and {last} both have the columns; add sheet = {first}, ignore_sheets = [{last}], or \
             sheet = \"{ALL_SHEETS}\" for all sheets to a mapping"
        );
        Err(collector.fail(Location::SheetRow(sheet, 1), problem(text)))
    }

    /// The positions of formulas without a stored value, if the workbook has any. Only another way of reading sees them.
    fn find_formulas(
        &self,
        workbook: &mut Xlsx<LimitedFile<'_>>,
        sheet: usize,
        name: &str,
        collector: &mut Collector<'_>,
    ) -> Result<HashSet<(u32, u32)>, Stop> {
        let mut found = HashSet::new();
        if !self.limits.contents().has_uncalculated {
            return Ok(found);
        }
        let location = Location::SheetRow(sheet, 1);
        self.limits.begin_cell();
        let opened = catch_panic(damaged, || workbook.worksheet_cells_reader(name));
        let mut cells = opened.map_err(|error| fail(&error, self.limits, location, collector))?;
        loop {
            self.limits.begin_cell();
            let cell = catch_panic(damaged, || cells.next_cell_with_formula_metadata());
            match cell.map_err(|error| fail(&error, self.limits, location, collector))? {
                Some(cell) if cell.value == DataRef::Empty && cell.formula.is_some() => {
                    found.insert(cell.pos)
                }
                Some(_) => continue,
                None => return Ok(found),
            };
            if found.len() > FORMULAS_MAX {
                return Err(collector.fail(location, problem(WITHOUT_VALUE)));
            }
        }
    }

    /// The links behind the words of single cells.
    fn find_links(
        &self,
        workbook: &mut Xlsx<LimitedFile<'_>>,
        sheet: usize,
        name: &str,
        collector: &mut Collector<'_>,
    ) -> Result<HashMap<(u32, u32), String>, Stop> {
        if !self.limits.contents().has_links {
            return Ok(HashMap::new());
        }
        self.limits.begin_part();
        let links = catch_panic(damaged, || workbook.hyperlinks_by_sheet_name(name));
        let links =
            links.map_err(|error| fail(&error, self.limits, Location::SheetRow(sheet, 1), collector))?;
        // Excel stores what is behind a # on its own.
        let address = |link: Hyperlink| match (link.target?, link.location) {
            (target, None) => Some(target),
            (target, Some(location)) => Some(format!("{target}#{location}")),
        };
        let of_cell = |link: Hyperlink| {
            let Dimensions { start, end } = link.range;
            (start == end).then_some((start, address(link)?))
        };
        Ok(links.into_iter().filter_map(of_cell).collect())
    }

    /// Reports what is missing if no sheet has the columns, or warns about sheets that were not read.
    fn finish(self, names: &[String], collector: &mut Collector<'_>) -> Result<(), Stop> {
        let list =
            |names: &[&String]| names.iter().map(|name| quoted(&clip(name))).collect::<Vec<_>>().join(", ");
        let wanted = self.options.mapping.sheet.as_ref().filter(|wanted| *wanted != ALL_SHEETS);
        if let Some(wanted) = wanted.filter(|wanted| !names.contains(wanted)) {
            let (found, expected) = (
                list(&names.iter().collect::<Vec<_>>()),
                format!("the sheet {} of the mapping", quoted(wanted)),
            );
            return Err(collector.fail(Location::File, unexpected(found, expected)));
        }
        // One of several sheets with a wrong title must not be lost with only a warning.
        let is_for_all = self.options.mapping.sheet.as_deref() == Some(ALL_SHEETS);
        match self.search {
            Some((sheet, search))
                if self.tables.is_empty() || is_for_all && search.score().0 >= TABLE_FIELDS_MIN =>
            {
                let (name, location) = (&names[sheet - 1], Location::SheetRow(sheet, 1));
                collector.notes().set_likely_sheet(name);
                if !self.tables.is_empty() {
                    let name = quoted(&clip(name));
                    let text = format!(
                        "some of the columns are missing; correct the titles, or add ignore_sheets = [{name}] \
                         to a mapping"
                    );
                    collector.add_error(location, problem(text))?;
                }
                return Err(search.fail(location, collector));
            }
            None if self.tables.is_empty() => {
                let error = unexpected("an empty workbook", "a header with the field names");
                return Err(collector.fail(Location::File, error));
            }
            _ => {}
        }
        let is_ignored =
            |name: &&String| !self.tables.contains(name) && !self.options.mapping.is_ignored_sheet(name);
        let ignored: Vec<&String> = names.iter().filter(is_ignored).collect();
        if self.search.is_none() || wanted.is_some() || ignored.is_empty() {
            return Ok(());
        }
        collector.warn(Location::File, problem(format!("ignored sheets: {}", list(&ignored))))
    }
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
        _ => {
            let expected = "an Excel workbook (.xlsx); name a CSV file .csv";
            return Err(collector.fail(Location::File, unexpected("another format", expected)));
        }
    };
    Err(fail_as_other_format(found, collector))
}

fn fail_as_other_format(found: &str, collector: &mut Collector<'_>) -> Stop {
    collector.fail(Location::File, unexpected(found, "an Excel workbook (.xlsx)"))
}

/// Reads a sheet to its end, or until it is clear that it has no header.
fn read_sheet(
    workbook: &mut Xlsx<LimitedFile<'_>>,
    name: &str,
    table: &mut Table<'_>,
    limits: &Limits,
    collector: &mut Collector<'_>,
) -> Result<(), Stop> {
    limits.begin_cell();
    let opened = catch_panic(damaged, || workbook.worksheet_cells_reader(name));
    let mut cells = opened.map_err(|error| fail(&error, limits, table.location(), collector))?;
    let looks: Vec<Look> = cells.styles().iter().map(Look::new).collect();
    let plain = Look::default();
    let mut row = Row::default();
    while !table.is_search_over {
        limits.begin_cell();
        let cell = catch_panic(damaged, || cells.next_cell_with_style_id());
        let Some((cell, style)) = cell.map_err(|error| fail(&error, limits, table.location(), collector))?
        else {
            break;
        };
        let look = looks.get(style).unwrap_or(&plain);
        table.add(&mut row, cell.get_position(), cell.get_value().clone(), look, collector)?;
    }
    table.finish_row(&mut row, collector)
}

/// The current row of a sheet.
#[derive(Default)]
struct Row<'a> {
    raw: RawBatch<'a>,
    /// The cells of a date in two columns.
    date_and_time: Vec<DataRef<'a>>,
    /// The titles, before the header is found.
    titles: Vec<String>,
    /// The text of the first cell.
    first: Option<String>,
    /// Whether the mapping says to ignore it.
    is_ignored: bool,
    /// Whether it has the title of the dates where they are: it is the header again, as on printed pages.
    is_header: bool,
    /// How many cells are the titles of their columns.
    titles_repeated: usize,
    /// A unit that is not the field's.
    wrong_unit: Option<FieldError>,
    has_values: bool,
    /// Whether a value is missing, which is already an error.
    is_incomplete: bool,
}

/// The table of a sheet.
struct Table<'o> {
    sheet: usize,
    is_1904: bool,
    /// Where formulas without a value are.
    formulas: HashSet<(u32, u32)>,
    options: &'o ReadOptions,
    search: HeaderSearch<'o>,
    /// The columns, after the header.
    header: Option<Vec<Role>>,
    titles: Vec<ColumnTitle>,
    /// Its row, from 0.
    header_row: u32,
    converter: Option<Converter<'o>>,
    dates: MixedDates,
    has_merged_cells: bool,
    /// What is behind the words of a report.
    links: HashMap<(u32, u32), String>,
    has_cells: bool,
    is_search_over: bool,
    /// The current row, from 0, and the next column in it.
    row: u32,
    next_column: usize,
}

impl<'o> Table<'o> {
    fn new(sheet: usize, is_1904: bool, formulas: HashSet<(u32, u32)>, options: &'o ReadOptions) -> Self {
        Self {
            sheet,
            is_1904,
            formulas,
            options,
            search: HeaderSearch::new(options),
            header: None,
            titles: Vec::new(),
            header_row: 0,
            converter: None,
            dates: MixedDates::default(),
            has_merged_cells: false,
            links: HashMap::new(),
            has_cells: false,
            is_search_over: false,
            row: 0,
            next_column: 0,
        }
    }

    fn location(&self) -> Location {
        Location::SheetRow(self.sheet, u64::from(self.row) + 1)
    }

    fn add<'a>(
        &mut self,
        row: &mut Row<'a>,
        position: (u32, u32),
        cell: DataRef<'a>,
        look: &Look,
        collector: &mut Collector<'_>,
    ) -> Result<(), Stop> {
        let column = position.1 as usize;
        if position.0 > self.row {
            self.finish_row(row, collector)?;
            (self.row, self.next_column) = (position.0, 0);
        }
        if position.0 < self.row || column < self.next_column || column >= COLUMNS_MAX {
            let found = "cells in another order";
            return Err(collector.fail(self.location(), unexpected(found, "rows and columns in order")));
        }
        self.next_column = column + 1;
        let is_formula = self.formulas.contains(&position);
        if cell == DataRef::Empty && !is_formula {
            return Ok(());
        }
        self.has_cells = true;
        let Some(roles) = &self.header else {
            row.titles.resize(column, String::new());
            row.titles.push(clip(&cell.as_string().unwrap_or_default()));
            return Ok(());
        };
        if self.is_no_data(row, column, &cell) {
            return Ok(());
        }
        match roles.get(column) {
            Some(Role::Field(role)) if is_formula => {
                row.is_incomplete = true;
                collector.reject_row(self.location(), FieldError::problem(role.field.name(), WITHOUT_VALUE))
            }
            Some(Role::DateOrTime) => {
                row.date_and_time.push(cell);
                Ok(())
            }
            Some(Role::Field(role)) => {
                let link = self.links.get(&position).filter(|_| role.kind == Kind::Link);
                let cell = match link.filter(|_| !self.shown(&cell).contains("://")) {
                    Some(link) => DataRef::String(link.clone()),
                    None => cell,
                };
                self.set(row, role.field, cell, look, collector);
                Ok(())
            }
            Some(Role::Ignored) => {
                if collector.notes().wants_examples() {
                    collector.notes().add_ignored_cell(column, &self.shown_as(&cell, look));
                }
                Ok(())
            }
            Some(Role::Unnamed) | None if self.shown(&cell).trim().is_empty() => Ok(()),
            Some(Role::Unnamed) | None if self.options.mapping.ignore.iter().any(String::is_empty) => Ok(()),
            Some(Role::Unnamed) | None => {
                let column = format!("column {}", column + 1);
                // Titles of two rows would be one error in every row.
                if self.has_merged_cells && self.row == self.header_row + 1 {
                    let text = "missing column name; if titles are merged over two rows, unmerge them and write all titles \
                                into one row";
                    return Err(collector.fail(self.location(), FieldError::problem(&column, text)));
                }
                collector.add_error(self.location(), FieldError::problem(&column, "missing column name"))
            }
        }
    }

    /// Whether the row is no batch, as far as its cells up to this one show.
    fn is_no_data(&self, row: &mut Row<'_>, column: usize, cell: &DataRef<'_>) -> bool {
        if row.first.is_none() {
            row.is_ignored = self.options.mapping.is_ignored_row(row.first.insert(self.shown(cell)));
        }
        self.compare_with_header(row, column, cell);
        row.is_ignored || row.is_header
    }

    fn compare_with_header(&self, row: &mut Row<'_>, column: usize, cell: &DataRef<'_>) {
        let is_date = match self.header.as_ref().and_then(|roles| roles.get(column)) {
            Some(Role::Field(role)) => role.kind == Kind::Instant,
            Some(Role::DateOrTime) => true,
            Some(Role::Ignored | Role::Unnamed) | None => return,
        };
        let title = self.titles.get(column).map_or("", AsRef::as_ref);
        // Of equal titles, the later ones were given a number.
        let is_equal = cell.get_string().is_some_and(|text| text == title || title.starts_with(&clip(text)));
        row.is_header |= is_date && is_equal;
        row.titles_repeated += usize::from(is_equal);
    }

    fn set<'a>(
        &mut self,
        row: &mut Row<'a>,
        field: Field,
        cell: DataRef<'a>,
        look: &Look,
        collector: &mut Collector<'_>,
    ) {
        let before = collector.notes().wants_examples().then(|| self.shown_as(&cell, look));
        if matches!(field.kind(), Kind::Count | Kind::Decimal)
            && let Some(text) = cell.get_string()
        {
            row.wrong_unit = row.wrong_unit.take().or_else(|| wrong_unit_in_row(field, text));
        }
        let number = cell.get_float().filter(|number| number.fract() == 0.0);
        let value = CellValue::new(field, cell, look, self.is_1904);
        if let Some(number) = number.filter(|_| field.kind() == Kind::Instant) {
            self.dates.observe_number(number, &value, self.location());
        }
        if let Some(before) = before {
            let before = match &value {
                // A date may look like a number.
                CellValue::Clock(_) => value.shown(),
                _ => before,
            };
            collector.notes().add_cell(field, &before);
        }
        self.set_value(row, field, value);
    }

    fn shown(&self, cell: &DataRef<'_>) -> String {
        shown(cell, self.is_1904)
    }

    /// The value, and whether Excel shows it with a percent sign.
    fn shown_as(&self, cell: &DataRef<'_>, look: &Look) -> String {
        self.shown(cell) + if look.is_percent { PERCENT_CELL } else { "" }
    }

    fn set_value<'a>(&mut self, row: &mut Row<'a>, field: Field, value: CellValue<'a>) {
        let location = self.location();
        let Some(converter) = &mut self.converter else { return };
        if field.kind() == Kind::Instant {
            self.dates.observe(&value, location);
        }
        let value = match value {
            CellValue::Text(text) => converter.text(field, text, location),
            CellValue::Clock(clock) => converter.clock(field, clock),
            CellValue::Value(value) => Ok(value),
        };
        row.has_values |= !matches!(value, Ok(Value::Null));
        // Nulls are set at the end of the row, together with the cells that the file does not have.
        if !matches!(value, Ok(Value::Null)) {
            row.raw.set_or_reject(field, value);
        }
    }

    /// Passes the row on. Skips empty ones: spreadsheets write them after the last row.
    fn finish_row(&mut self, row: &mut Row<'_>, collector: &mut Collector<'_>) -> Result<(), Stop> {
        let mut row = std::mem::take(row);
        if !row.date_and_time.is_empty() {
            let cells = std::mem::take(&mut row.date_and_time);
            let value = CellValue::of_date_and_time(&cells, self.is_1904);
            collector.notes().add_cell(Field::BatchCreationDate, &value.shown());
            self.set_value(&mut row, Field::BatchCreationDate, value);
        }
        let (Some(roles), Some(converter)) = (&self.header, &self.converter) else {
            return self.finish_title_row(row.titles, collector);
        };
        let is_used = |role: &&Role| matches!(role, Role::Field(_) | Role::DateOrTime);
        if row.is_header && !row.is_ignored && row.titles_repeated < roles.iter().filter(is_used).count() {
            let found = format!(
                "another header than in row {}; put each table on a sheet of its own",
                self.header_row + 1
            );
            return collector.add_error(self.location(), problem(found));
        }
        if !row.has_values || row.is_incomplete || row.is_ignored || row.is_header {
            collector.notes().forget_cells();
            return Ok(());
        }
        let is_empty = |index: usize| match roles[index] {
            Role::Field(column) => row.raw.get(column.field).is_none(),
            _ => row.raw.get(Field::BatchCreationDate).is_none(),
        };
        if is_no_batch(roles, is_empty) {
            if let Some(error) = row.wrong_unit.take() {
                return collector.add_error(self.location(), error);
            }
            return collector.ignore_row(self.location(), row.first.as_deref());
        }
        for role in roles {
            let field = match role {
                Role::Field(column) => column.field,
                Role::DateOrTime => Field::BatchCreationDate,
                Role::Ignored | Role::Unnamed => continue,
            };
            if row.raw.get(field).is_none() {
                row.raw.set_or_reject(field, converter.empty(field));
            }
        }
        collector.add(self.location(), &mut row.raw)
    }

    /// Looks for the header.
    fn finish_title_row(&mut self, titles: Vec<String>, collector: &mut Collector<'_>) -> Result<(), Stop> {
        if titles.iter().all(|title| title.trim().is_empty()) {
            return Ok(());
        }
        let titles = number_equal(titles);
        let (number, location) = (u64::from(self.row) + 1, self.location());
        if self.search.is_header(&titles, number, location) {
            let Header { roles, zone } = match_columns(&titles, location, self.options, collector)?;
            self.converter = Some(Converter::new(self.options, zone, &roles));
            self.header = Some(roles);
            (self.titles, self.header_row) = (titles, self.row);
        } else {
            self.is_search_over = self.search.is_over(number);
        }
        Ok(())
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
