//! Validates each record, renders it once and passes it on. Collects the errors.

use std::io;
use std::ops::ControlFlow;

use batchscan_model::{Batch, FieldError, FieldErrors, RawBatch};

use super::error::{ERRORS_SHOWN_MAX, LocatedError, Location, ReadError};

/// Receives a batch and its JSON text, and returns whether to continue.
pub type Accept<'a> = dyn FnMut(Batch, String) -> ControlFlow<()> + 'a;

/// The batches and errors of one file.
pub(super) struct Collector<'a> {
    accept: &'a mut Accept<'a>,
    batches: u64,
    errors: Vec<LocatedError>,
    more: bool,
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
    pub(super) fn new(accept: &'a mut Accept<'a>) -> Self {
        Self { accept, batches: 0, errors: Vec::new(), more: false }
    }

    /// Validates a record, and passes its batch on unless there was an error before.
    pub(super) fn add(&mut self, location: Location, raw: &RawBatch<'_>) -> Result<(), Stop> {
        let batch = match Batch::from_raw(raw) {
            Ok(batch) => batch,
            Err(FieldErrors(errors)) => {
                return errors.into_iter().try_for_each(|error| self.add_error(location, error));
            }
        };
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

    /// Adds an error after which reading can continue.
    pub(super) fn add_error(&mut self, location: Location, error: FieldError) -> Result<(), Stop> {
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

    pub(super) fn finish(self, outcome: Result<(), Stop>) -> Result<u64, ReadError> {
        match outcome {
            Err(Stop::Callback) => Err(ReadError::Stopped),
            Err(Stop::Io(error)) => Err(ReadError::Io(error)),
            Ok(()) | Err(Stop::Errors) if self.errors.is_empty() => Ok(self.batches),
            Ok(()) | Err(Stop::Errors) => Err(ReadError::Invalid { errors: self.errors, more: self.more }),
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
