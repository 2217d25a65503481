//! The way of one record: judged, rendered once, handed out. Collects the faults of all of them.

use std::io;

use batchscan_model::batch::{BATCH_BYTES_MAX, too_long};
use batchscan_model::{Batch, FieldError, FieldErrors, Record};

use super::Accept;
use super::fault::{FAULTS_SHOWN_MAX, Fault, Place, ReadError};

/// Takes in the records of one file.
pub(super) struct Intake<'a> {
    accept: &'a mut Accept<'a>,
    batches: u64,
    faults: Vec<Fault>,
    more: bool,
}

/// Why reading ends before the end of the file.
pub(super) enum Halt {
    /// The faults are told: enough of them, or one past which the file cannot be read.
    Told,
    /// The taker of the batches asked to stop.
    Stopped,
    /// Reading failed.
    Unreadable(io::Error),
}

impl From<io::Error> for Halt {
    fn from(error: io::Error) -> Self {
        Halt::Unreadable(error)
    }
}

impl<'a> Intake<'a> {
    pub(super) fn new(accept: &'a mut Accept<'a>) -> Self {
        Self { accept, batches: 0, faults: Vec::new(), more: false }
    }

    /// Judges a record, and hands out its batch unless a fault was met before.
    pub(super) fn record(&mut self, place: Place, record: &Record<'_>) -> Result<(), Halt> {
        let batch = match Batch::from_record(record) {
            Ok(batch) => batch,
            Err(FieldErrors(faults)) => {
                return faults.into_iter().try_for_each(|fault| self.fault(place, fault));
            }
        };
        let text = batch.to_json();
        if text.len() > BATCH_BYTES_MAX {
            return self.fault(place, too_long(&batch, text.len()));
        }
        self.batches += 1;
        if self.faults.is_empty() && (self.accept)(batch, text).is_break() {
            return Err(Halt::Stopped);
        }
        Ok(())
    }

    /// Notes a fault after which the file can be read on.
    pub(super) fn fault(&mut self, place: Place, fault: FieldError) -> Result<(), Halt> {
        if self.faults.len() == FAULTS_SHOWN_MAX {
            self.more = true;
            return Err(Halt::Told);
        }
        self.faults.push(Fault { place, fault });
        Ok(())
    }

    /// Notes a fault past which nothing in the file can be trusted to stand where it seems to.
    pub(super) fn broken(&mut self, place: Place, found: String, expected: &str) -> Halt {
        match self.fault(place, whole(found, expected)) {
            Ok(()) => Halt::Told,
            Err(halt) => halt,
        }
    }

    /// What came of reading the file.
    pub(super) fn finish(self, outcome: Result<(), Halt>) -> Result<u64, ReadError> {
        match outcome {
            Err(Halt::Stopped) => Err(ReadError::Stopped),
            Err(Halt::Unreadable(error)) => Err(ReadError::Unreadable(error)),
            Ok(()) | Err(Halt::Told) if self.faults.is_empty() => Ok(self.batches),
            Ok(()) | Err(Halt::Told) => Err(ReadError::Faulty { faults: self.faults, more: self.more }),
        }
    }
}

/// The fault of a record, or of more, as a whole.
pub(super) fn whole(found: String, expected: &str) -> FieldError {
    FieldError { field: String::new(), found, expected: expected.into() }
}
