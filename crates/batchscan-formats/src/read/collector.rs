//! Validates each record, renders it once and passes it on. Collects the errors.

use std::io;
use std::ops::ControlFlow;

use batchscan_model::printable::clip;
use batchscan_model::{Batch, Field, FieldError, FieldErrors, FieldValue, Kind, RawBatch, UtcInstant, Value};

use super::ReadOptions;
use super::columns::Role;
use super::convert::Converter;
use super::error::{
    ERRORS_SHOWN_MAX, Implausible, LocatedError, Location, ReadError, ReadSummary, WARNINGS_SHOWN_MAX,
    Warnings,
};
use super::mapping::{IdTemplate, quoted};
use super::preview::Notes;
use super::rates::Rates;

/// How many errors of a field with the same expectation are listed: enough to see a pattern.
const EQUAL_SHOWN_MAX: usize = 5;

/// This many ids in order are not by chance.
const ROW_NUMBERS_MIN: u64 = 5;

/// A file with more of the same errors is not read to its end.
const REPEATS_MAX: u64 = 1_000;

/// How far the clocks of a scanner and of this machine may differ.
const CLOCKS_DIFFER_SECS: i64 = 24 * 60 * 60;

/// The year 2000, in seconds since 1970: older batches are typing mistakes.
const EARLIEST_SECS: i64 = 946_684_800;

/// What names of rows begin with that are no batches.
const SUMS: &str = "sum summe somme total totals totaal gesamt durchschnitt mittelwert average avg moyenne gemiddelde media promedio suma razem mittel ergebnis gesamtergebnis";

/// Receives a batch and its JSON text, and returns whether to continue.
pub type Accept<'a> = dyn FnMut(Batch, String) -> ControlFlow<()> + 'a;

/// The batches and errors of one file.
pub(super) struct Collector<'a> {
    accept: &'a mut Accept<'a>,
    implausible: Implausible,
    /// Times after this one are in the future.
    latest: Option<i64>,
    batches: u64,
    warnings: Warnings,
    errors: Vec<LocatedError>,
    /// How often each of these errors occurred again and is not listed.
    repeats: [u64; ERRORS_SHOWN_MAX],
    more: bool,
    /// Whether all errors are implausible values.
    only_implausible: bool,
    /// The values of fields that the file does not have, and how to make ids.
    values: &'a [(Field, String)],
    template: Option<&'a IdTemplate>,
    rates: Rates,
    notes: Notes,
    /// Whether the file has a header.
    is_table: bool,
    /// The names of the sheets, if there are several.
    sheets: Vec<String>,
    /// Whether a column is missing: rows are only examples for a preview.
    is_header_wrong: bool,
    /// The fields that a table has no column for.
    missing: Vec<Field>,
    /// By field: whether a batch of a table has a value, and whether one has none.
    has_values: [bool; Field::ALL.len()],
    has_gaps: [bool; Field::ALL.len()],
    /// Whether the ids so far are 1, 2, 3 and so on.
    has_row_numbers: bool,
}

/// Why reading ends before the end of the file.
pub(super) enum Stop {
    /// There are enough errors, or one after which the rest cannot be read.
    Errors,
    /// The callback asked for it.
    Callback,
    /// Reading failed.
    Io(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Stop::Io(error)
    }
}

impl<'a> Collector<'a> {
    pub(super) fn new(options: &'a ReadOptions, accept: &'a mut Accept<'a>) -> Self {
        let (warnings, errors) = (Warnings::default(), Vec::new());
        Self {
            accept,
            implausible: options.implausible(),
            latest: options.now.map(|now| now.secs() + CLOCKS_DIFFER_SECS),
            batches: 0,
            warnings,
            errors,
            repeats: [0; ERRORS_SHOWN_MAX],
            more: false,
            only_implausible: true,
            values: &options.mapping.values,
            template: options.mapping.batch_id.as_ref(),
            rates: Rates::new(options.mapping.rates),
            notes: Notes::default(),
            is_table: false,
            sheets: Vec::new(),
            is_header_wrong: false,
            missing: Vec::new(),
            has_values: [false; Field::ALL.len()],
            has_gaps: [false; Field::ALL.len()],
            has_row_numbers: true,
        }
    }

    /// Validates a record, and passes its batch on unless there was an error before.
    pub(super) fn add(&mut self, location: Location, raw: &mut RawBatch<'_>) -> Result<(), Stop> {
        let is_example = self.notes.wants_examples();
        if is_example {
            self.notes.add_values(raw);
        }
        self.complete(raw, is_example);
        self.rates.convert(location, raw);
        if self.is_header_wrong {
            fill_missing(raw);
        }
        let batch = Batch::from_raw(raw);
        if is_example {
            self.notes.add_row(location, raw);
            self.notes.reject_row(batch.as_ref().err().map_or(&[], |FieldErrors(errors)| errors));
        }
        if self.is_header_wrong {
            batch.iter().for_each(|batch| self.rates.observe(location, raw, batch));
            return self.stop_after_examples();
        }
        let batch = match batch {
            Ok(batch) => batch,
            Err(FieldErrors(errors)) => {
                self.rates.observe_rejected(location, raw);
                return errors.into_iter().try_for_each(|error| self.add_error(location, error));
            }
        };
        self.rates.observe(location, raw, &batch);
        let mut implausible = batch.implausible_values();
        if let Some(latest) = self.latest {
            check_time(&batch, latest, &mut implausible);
        }
        if self.is_table {
            implausible.extend(check_sum(&batch));
            for (index, value) in batch.values().into_iter().enumerate() {
                let seen =
                    if matches!(value, FieldValue::Null) { &mut self.has_gaps } else { &mut self.has_values };
                seen[index] = true;
            }
        }
        if !implausible.is_empty() {
            if is_example && self.implausible == Implausible::Reject {
                self.notes.reject_row(&implausible);
            }
            self.add_warnings(location, implausible)?;
        }
        let json = match batch.to_bounded_json() {
            Ok(json) => json,
            Err(error) => return self.add_error(location, error),
        };
        self.batches += 1;
        self.has_row_numbers = self.has_row_numbers && batch.batch_id.as_str().parse() == Ok(self.batches);
        if self.errors.is_empty() && (self.accept)(batch, json).is_break() {
            return Err(Stop::Callback);
        }
        Ok(())
    }

    /// Sets what the file does not have, and checks its id.
    fn complete(&mut self, raw: &mut RawBatch<'_>, is_example: bool) {
        for (field, text) in self.values {
            if raw.get(*field).is_none() {
                raw.set(*field, Value::Cell(text.clone().into()));
            }
        }
        if let Some(template) = self.template
            && raw.get(Field::BatchId).is_none()
        {
            template.apply(raw);
            if is_example {
                self.notes.add_cell(Field::BatchId, "");
            }
        }
        if let Some(Value::Cell(id)) = raw.get(Field::BatchId)
            && is_shortened(id)
        {
            let expected = "an id that a spreadsheet has not shortened; format its column as text";
            let error = FieldError::new(Field::BatchId.name(), clip(id), expected);
            raw.reject(Field::BatchId, error);
        }
    }

    /// A row without a date and another required field is no batch: a sum below the table, for example.
    pub(super) fn ignore_row(&mut self, location: Location, first: Option<&str>) -> Result<(), Stop> {
        self.notes.forget_cells();
        let hint = first.map(|first| {
            format!("; if that is right, add ignore_rows = [{}] to a mapping", quoted(&clip(first.trim())))
        });
        let text = "ignored: it has no date and not all other required fields";
        self.warn(location, problem(format!("{text}{}", hint.unwrap_or_default())))
    }

    /// Adds a warning about the file.
    pub(super) fn warn(&mut self, location: Location, warning: FieldError) -> Result<(), Stop> {
        self.add_warnings(location, vec![warning])
    }

    /// Adds warnings, or errors if warnings are rejected.
    #[cold]
    fn add_warnings(&mut self, location: Location, values: Vec<FieldError>) -> Result<(), Stop> {
        if self.implausible == Implausible::Reject {
            return values.into_iter().try_for_each(|error| self.push_error(location, error));
        }
        self.warnings.count += values.len() as u64;
        let left = WARNINGS_SHOWN_MAX - self.warnings.first.len();
        let shown = values.into_iter().take(left).map(|error| LocatedError { location, error });
        self.warnings.first.extend(shown);
        Ok(())
    }

    /// Adds the error of a column whose values have no certain meaning.
    pub(super) fn reject_column(
        &mut self,
        LocatedError { location, error }: LocatedError,
    ) -> Result<(), Stop> {
        self.notes.reject_column(&error);
        self.add_error(location, error)
    }

    /// Ends the conversion of the cells of a table. One error of a kind is enough, and none if it was not read to its end.
    pub(super) fn finish_conversion(
        &mut self,
        converter: &Converter<'_>,
        outcome: Result<(), Stop>,
    ) -> Result<(), Stop> {
        self.notes.set_conversion(converter);
        let errors = converter.finish();
        errors.iter().for_each(|errors| self.notes.reject_values(errors));
        outcome?;
        let first = errors.into_iter().filter_map(|errors| errors.into_iter().next());
        first.into_iter().try_for_each(|LocatedError { location, error }| self.add_error(location, error))
    }

    /// Adds an error after which reading can continue.
    pub(super) fn add_error(&mut self, location: Location, error: FieldError) -> Result<(), Stop> {
        self.only_implausible = false;
        self.push_error(location, error)
    }

    /// Adds an error of a row, whose rates are then unknown.
    pub(super) fn reject_row(&mut self, location: Location, error: FieldError) -> Result<(), Stop> {
        self.rates.is_incomplete = true;
        self.add_error(location, error)
    }

    fn push_error(&mut self, location: Location, error: FieldError) -> Result<(), Stop> {
        let is_equal = |known: &FieldError| {
            let is_same_kind = known.field == error.field && known.expected == error.expected;
            is_same_kind && (!error.expected.is_empty() || known.found == error.found)
        };
        let equal = (0..self.errors.len()).filter(|index| is_equal(&self.errors[*index].error));
        if let Some(last) = equal.skip(EQUAL_SHOWN_MAX - 1).last() {
            self.repeats[last] += 1;
            self.more = true;
            return if self.repeats[last] < REPEATS_MAX { Ok(()) } else { Err(Stop::Errors) };
        }
        if self.errors.len() == ERRORS_SHOWN_MAX {
            self.more = true;
            return Err(Stop::Errors);
        }
        self.errors.push(LocatedError { location, error });
        Ok(())
    }

    /// Adds an error after which the rest of the file cannot be read.
    pub(super) fn fail(&mut self, location: Location, error: FieldError) -> Stop {
        self.add_error(location, error).err().unwrap_or(Stop::Errors)
    }

    /// Without a required column, rows are read only as examples for a preview.
    pub(super) fn stop_after_examples(&mut self) -> Result<(), Stop> {
        self.is_header_wrong = true;
        if self.notes.wants_examples() { Ok(()) } else { Err(Stop::Errors) }
    }

    /// The title of a column says that its rates are percentages.
    pub(super) fn set_percent_title(&mut self, field: Field) {
        self.rates.set_percent_title(field);
    }

    /// The type of a column says that its rates are percentages.
    pub(super) fn set_percent_type(&mut self, field: Field) {
        self.rates.set_percent_type(field);
    }

    /// The columns of the table, for a preview.
    pub(super) fn set_columns<T: AsRef<str>>(&mut self, location: Location, titles: &[T], roles: &[Role]) {
        self.is_table = true;
        let is_missing = |field: &Field| {
            let has_column =
                roles.iter().any(|role| matches!(role, Role::Field(column) if column.field == *field));
            field.is_nullable() && !has_column && !self.values.iter().any(|(known, _)| known == field)
        };
        let missing = Field::ALL.into_iter().filter(is_missing);
        self.missing.extend(missing.filter(|field| !self.missing.contains(field)).collect::<Vec<_>>());
        self.notes.set_columns(location, titles, roles);
    }

    /// Errors name their sheet if there are several.
    pub(super) fn set_sheets(&mut self, names: &[String]) {
        if names.len() > 1 {
            self.sheets = names.to_vec();
        }
    }

    /// Replaces the numbers of sheets by their names.
    fn name_sheets(&self, errors: &mut [LocatedError]) {
        for LocatedError { location, error } in errors {
            if let Location::SheetRow(sheet, row) = *location
                && let Some(name) = self.sheets.get(sheet - 1)
            {
                let separator = if error.field.is_empty() { "" } else { ": " };
                error.field = format!("sheet {}, row {row}{separator}{}", quoted(&clip(name)), error.field);
                *location = Location::File;
            }
        }
    }

    /// What a preview shows.
    pub(super) fn notes(&mut self) -> &mut Notes {
        &mut self.notes
    }

    /// Ends a table, so that its rates alone show their unit: another sheet may have another one.
    pub(super) fn finish_rates(&mut self) -> Result<(), Stop> {
        let (errors, warnings) = self.rates.begin_table().finish();
        if self.is_header_wrong {
            errors.iter().for_each(|LocatedError { error, .. }| self.notes.reject_column(error));
            return Ok(());
        }
        errors.into_iter().try_for_each(|error| self.reject_column(error))?;
        warnings.into_iter().try_for_each(|LocatedError { location, error }| self.warn(location, error))
    }

    /// Ends the reading, also for a preview.
    pub(super) fn finish(mut self, outcome: Result<(), Stop>) -> (Result<ReadSummary, ReadError>, Notes) {
        let finished = if outcome.is_ok() || self.is_header_wrong { self.finish_rates() } else { Ok(()) };
        let outcome = outcome.and(finished).and_then(|()| {
            if self.is_table && self.batches == 0 && self.errors.is_empty() {
                self.warn(Location::File, problem("the file has no batches"))?;
            }
            if self.is_table && self.has_row_numbers && self.batches >= ROW_NUMBERS_MIN {
                let warning = format!(
                    "the ids are the numbers from 1 to {}. If they number the rows of this file, add \
                     batch_id = \"{{batch_name}} {{batch_creation_date}}\" to a mapping, and the title of their column to ignore",
                    self.batches
                );
                // Never an error: they may be the ids of the program that wrote the file.
                let error = FieldError::problem(Field::BatchId.name(), warning);
                self.warnings.count += 1;
                self.warnings.first.truncate(WARNINGS_SHOWN_MAX - 1);
                self.warnings.first.push(LocatedError { location: Location::File, error });
            }
            Ok(())
        });
        let notes = std::mem::take(&mut self.notes);
        let (mut errors, mut warnings) =
            (std::mem::take(&mut self.errors), std::mem::take(&mut self.warnings));
        self.name_sheets(&mut errors);
        self.name_sheets(&mut warnings.first);
        let result = match outcome {
            Err(Stop::Callback) => Err(ReadError::Stopped),
            Err(Stop::Io(error)) => Err(ReadError::Io(error)),
            Ok(()) | Err(Stop::Errors) if errors.is_empty() => {
                let (mut missing, mut incomplete) = (self.missing, Vec::new());
                for field in Field::ALL.into_iter().filter(|field| self.has_gaps[*field as usize]) {
                    match self.has_values[field as usize] {
                        _ if missing.contains(&field) => {}
                        true => incomplete.push(field),
                        false => missing.push(field),
                    }
                }
                Ok(ReadSummary { batches: self.batches, warnings, missing, incomplete })
            }
            Ok(()) | Err(Stop::Errors) => {
                let Self { repeats, more, only_implausible, .. } = self;
                for (LocatedError { error, .. }, repeats) in errors.iter_mut().zip(repeats) {
                    if repeats > 0 {
                        let more = if repeats == REPEATS_MAX { "or more" } else { "more" };
                        error.found += &format!(" (and {repeats} {more} like this)");
                    }
                }
                Err(ReadError::Invalid { errors, more, only_implausible })
            }
        };
        (result, notes)
    }
}

/// Sets what required columns would have, so that the others are examples of a batch.
fn fill_missing(raw: &mut RawBatch<'_>) {
    for field in Field::ALL.into_iter().filter(|field| !field.is_nullable()) {
        if raw.get(field).is_none() {
            raw.set(
                field,
                match field.kind() {
                    Kind::Instant => Value::Instant(UtcInstant::EPOCH),
                    Kind::Flag => Value::Bool(false),
                    _ => Value::Cell("1".into()),
                },
            );
        }
    }
}

/// Whether a cell is a number such as `2,02611E+11`, as spreadsheets write 202611160001 to CSV: different ids become equal.
fn is_shortened(id: &str) -> bool {
    let is_number = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_digit())
            && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b','))
    };
    id.split_once("E+").is_some_and(|(digits, exponent)| is_number(digits) && is_number(exponent))
}

/// Warns about a row with the name of a sum.
fn check_sum(batch: &Batch) -> Option<FieldError> {
    let is_sum = |text: &str| {
        let first = text.trim_start().split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        SUMS.split(' ').any(|sum| first.eq_ignore_ascii_case(sum))
    };
    let names = [(Field::BatchId, batch.batch_id.as_str()), (Field::BatchName, &*batch.batch_name)];
    let (field, name) = names.into_iter().find(|(_, name)| is_sum(name))?;
    let problem = format!(
        "{} may be a sum, and is stored as a batch; if it is a sum, add the first text of the row to ignore_rows in a mapping",
        quoted(&clip(name))
    );
    Some(FieldError::problem(field.name(), problem))
}

fn check_time(batch: &Batch, latest: i64, implausible: &mut Vec<FieldError>) {
    let secs = batch.batch_creation_date.secs();
    let expected = match secs {
        _ if secs > latest => "a time that has passed",
        _ if secs < EARLIEST_SECS => "a time since 2000",
        _ => return,
    };
    let found = batch.batch_creation_date.to_string();
    implausible.push(FieldError::new(Field::BatchCreationDate.name(), found, expected));
}

/// An error of a whole record or file.
pub(super) fn unexpected(found: impl Into<String>, expected: impl Into<String>) -> FieldError {
    FieldError::new("", found, expected)
}

/// An error of a whole record or file that needs no expected value.
pub(super) fn problem(problem: impl Into<String>) -> FieldError {
    FieldError::problem("", problem)
}
