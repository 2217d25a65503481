//! Those who write while things break: one imports batches, one issues and rotates credentials. Exit status 0 is an
//! acknowledgement, and what was acknowledged is remembered; a command that failed is run again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::known::{Known, Place};
use super::load::{Load, Visitor};
use crate::cluster::ORGANISATION;
use crate::cluster::http::Credential;
use crate::cluster::operator::Operator;

/// Between two imports.
const IMPORT_PAUSE: Duration = Duration::from_millis(500);
/// Between two credentials.
const CREDENTIAL_PAUSE: Duration = Duration::from_secs(2);
/// After a command that failed.
const AFTER_FAILURE: Duration = Duration::from_millis(200);
/// Every so many credentials, one of those before gets a second secret instead.
const ROTATE_EVERY: usize = 3;
const POLL: Duration = Duration::from_millis(10);

/// What was acknowledged, beside the batches that [`Known`] remembers.
#[derive(Debug, Default)]
pub(crate) struct Acknowledged {
    credentials: Mutex<Vec<Credential>>,
    last_import: Mutex<Option<Instant>>,
    /// What commands said that failed and were run again.
    failed: Mutex<Vec<String>>,
}

impl Acknowledged {
    pub(crate) fn credentials(&self) -> Vec<Credential> {
        lock(&self.credentials).clone()
    }

    /// What commands said that failed and were run again.
    pub(crate) fn failed_commands(&self) -> Vec<String> {
        lock(&self.failed).clone()
    }

    /// A command failed: that is told, and waits a moment.
    fn note_failure(&self, error: &anyhow::Error) {
        lock(&self.failed).push(format!("{error:#}"));
        std::thread::sleep(AFTER_FAILURE);
    }

    /// Waits for an import that is acknowledged after an instant, and says when that was.
    pub(crate) fn wait_for_import_after(&self, instant: Instant, limit: Duration) -> Result<Instant> {
        let deadline = Instant::now() + limit;
        loop {
            let last = *lock(&self.last_import);
            match last.filter(|at| *at > instant) {
                Some(at) => return Ok(at),
                None if Instant::now() > deadline => {
                    return Err(anyhow::anyhow!("no import was acknowledged in {limit:?}"));
                }
                None => std::thread::sleep(POLL),
            }
        }
    }
}

/// Imports one batch after the other, until it is over.
pub(crate) fn import(operator: &Operator, known: &Known, acknowledged: &Acknowledged, is_over: &AtomicBool) {
    let mut number = 0;
    while !is_over.load(Ordering::Relaxed) {
        // A prime step, so that batches come to lie all over the base.
        let place: Place = (known.date(number * 1_213), format!("added-{number:05}"));
        known.offer(&place);
        let taken = operator.import(ORGANISATION, "ndjson", line(&place).as_bytes());
        if let Err(error) = taken {
            acknowledged.note_failure(&error);
            continue;
        }
        known.acknowledge(&place);
        *lock(&acknowledged.last_import) = Some(Instant::now());
        number += 1;
        std::thread::sleep(IMPORT_PAUSE);
    }
}

/// Issues and rotates credentials, each of which has to get a token at once, until it is over.
pub(crate) fn issue(operator: &Operator, load: &Load<'_>, acknowledged: &Acknowledged) {
    let mut visitor = Visitor::new(load, 0);
    for number in 1.. {
        if load.is_over.load(Ordering::Relaxed) {
            return;
        }
        match next_credential(operator, acknowledged, number) {
            Ok(credential) => {
                lock(&acknowledged.credentials).push(credential.clone());
                visitor.fetch_token_for(&credential);
                std::thread::sleep(CREDENTIAL_PAUSE);
            }
            Err(error) => acknowledged.note_failure(&error),
        }
    }
}

fn next_credential(operator: &Operator, acknowledged: &Acknowledged, number: usize) -> Result<Credential> {
    let before = acknowledged.credentials();
    if number.is_multiple_of(ROTATE_EVERY) && !before.is_empty() {
        // The secret before stays good for days: both are checked in the end. A third one would end it.
        let chosen = before.last().context("there is one")?;
        return operator.rotate_credential(&chosen.client_id);
    }
    operator.issue_credential(ORGANISATION)
}

/// The batch as a line of NDJSON.
fn line((date, id): &Place) -> String {
    format!(
        "{{\"batch_id\":\"{id}\",\"batch_name\":\"{id}\",\"batch_creation_date\":\"{date}Z\",\
         \"number_of_images\":1,\"warnings\":false}}\n"
    )
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::super::known::place_of;
    use super::*;

    #[test]
    fn a_line_holds_the_place_it_was_made_for() {
        let place = ("2026-01-31T08:00:00".to_owned(), "added-00001".to_owned());
        assert_eq!(place_of(&line(&place)), Some(place));
    }

    #[test]
    fn only_an_import_after_the_instant_counts() {
        let acknowledged = Acknowledged::default();
        let before = Instant::now();
        *lock(&acknowledged.last_import) = Some(before);
        assert!(acknowledged.wait_for_import_after(before, Duration::ZERO).is_err());
        *lock(&acknowledged.last_import) = Some(before + POLL);
        assert_eq!(acknowledged.wait_for_import_after(before, Duration::ZERO).unwrap(), before + POLL);
    }
}
