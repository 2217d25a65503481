//! Validates each record, renders it once and passes it on. Collects the errors.

use std::io;
use std::ops::ControlFlow;

use batchscan_model::{Batch, FieldError, FieldErrors, RawBatch};

use super::error::{
    ERRORS_SHOWN_MAX, Implausible, LocatedError, Location, ReadError, ReadSummary, WARNINGS_SHOWN_MAX,
    Warnings,
};

/// Receives a batch and its JSON text, and returns whether to continue.
pub type Accept<'a> = dyn FnMut(Batch, String) -> ControlFlow<()> + 'a;

/// The batches and errors of one file.
pub(super) struct Collector<'a> {
    accept: &'a mut Accept<'a>,
    implausible: Implausible,
    batches: u64,
    warnings: Warnings,
    errors: Vec<LocatedError>,
    more: bool,
    /// Whether all errors are implausible values.
    only_implausible: bool,
    /// Batches with a germination rate, and the highest one.
    rates: u64,
    highest_rate: i64,
}

/// Fewer rates can all be low by chance.
const RATES_MIN: u64 = 20;
/// 1.00, in hundredths.
const FRACTION_MAX: i64 = 100;

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
    pub(super) fn new(implausible: Implausible, accept: &'a mut Accept<'a>) -> Self {
        let (warnings, errors) = (Warnings::default(), Vec::new());
        Self {
            accept,
            implausible,
            batches: 0,
            warnings,
            errors,
            more: false,
            only_implausible: true,
            rates: 0,
            highest_rate: 0,
        }
    }

    /// Validates a record, and passes its batch on unless there was an error before.
    pub(super) fn add(&mut self, location: Location, raw: &RawBatch<'_>) -> Result<(), Stop> {
        let batch = match Batch::from_raw(raw) {
            Ok(batch) => batch,
            Err(FieldErrors(errors)) => {
                return errors.into_iter().try_for_each(|error| self.add_error(location, error));
            }
        };
        if let Some(rate) = batch.avg_germination_rate {
            self.rates += 1;
            self.highest_rate = self.highest_rate.max(rate.count());
        }
        let implausible = batch.implausible_values();
        if !implausible.is_empty() {
            self.add_implausible(location, implausible)?;
        }
        let json = match batch.to_bounded_json() {
            Ok(json) => json,
            Err(error) => return self.add_error(location, error),
        };
        self.batches += 1;
        if self.errors.is_empty() && (self.accept)(batch, json).is_break() {
            return Err(Stop::Callback);
        }
        Ok(())
    }

    /// Adds warnings or errors.
    #[cold]
    fn add_implausible(&mut self, location: Location, values: Vec<FieldError>) -> Result<(), Stop> {
        if self.implausible == Implausible::Reject {
            return values.into_iter().try_for_each(|error| self.push_error(location, error));
        }
        self.warnings.count += values.len() as u64;
        let left = WARNINGS_SHOWN_MAX - self.warnings.first.len();
        let shown = values.into_iter().take(left).map(|error| LocatedError { location, error });
        self.warnings.first.extend(shown);
        Ok(())
    }

    /// Adds an error after which reading can continue.
    pub(super) fn add_error(&mut self, location: Location, error: FieldError) -> Result<(), Stop> {
        self.only_implausible = false;
        self.push_error(location, error)
    }

    fn push_error(&mut self, location: Location, error: FieldError) -> Result<(), Stop> {
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

    /// Warns about rates that are fractions: each one is plausible, but not all of them.
    fn check_rates(&mut self) -> Result<(), Stop> {
        if self.rates < RATES_MIN || !(1..=FRACTION_MAX).contains(&self.highest_rate) {
            return Ok(());
        }
        let text = "rates look like fractions (0 to 1); the API's rates are percentages";
        self.warnings.first.truncate(WARNINGS_SHOWN_MAX - 1);
        self.add_implausible(Location::File, vec![FieldError::problem("avg_germination_rate", text)])
    }

    pub(super) fn finish(mut self, outcome: Result<(), Stop>) -> Result<ReadSummary, ReadError> {
        match outcome.and_then(|()| self.check_rates()) {
            Err(Stop::Callback) => Err(ReadError::Stopped),
            Err(Stop::Io(error)) => Err(ReadError::Io(error)),
            Ok(()) | Err(Stop::Errors) if self.errors.is_empty() => {
                Ok(ReadSummary { batches: self.batches, warnings: self.warnings })
            }
            Ok(()) | Err(Stop::Errors) => {
                let Self { errors, more, only_implausible, .. } = self;
                Err(ReadError::Invalid { errors, more, only_implausible })
            }
        }
    }
}

/// An error of a whole record or file.
pub(super) fn unexpected(found: impl Into<String>, expected: impl Into<String>) -> FieldError {
    FieldError::new("", found, expected)
}

/// An error of a whole record or file that needs no expected value.
pub(super) fn problem(problem: impl Into<String>) -> FieldError {
    FieldError::problem("", problem)
}
