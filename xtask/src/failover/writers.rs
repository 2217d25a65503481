//! The operator's commands during a run: one thread imports batches, one issues and rotates credentials.
//!
//! What a command acknowledges with exit status 0 is remembered. A failed command is repeated.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use batchscan_testbed::wait_until;

use super::expected::{Expected, Position};
use super::load::{Load, LoadClient};
use super::lock::lock;
use crate::cluster::ORGANISATION;
use crate::cluster::cli::Cli;
use crate::cluster::http::Credential;

const IMPORT_PAUSE: Duration = Duration::from_millis(500);
const CREDENTIAL_PAUSE: Duration = Duration::from_secs(2);
const RETRY_PAUSE: Duration = Duration::from_millis(200);
/// Every third command rotates the newest credential instead of issuing one.
const ROTATE_EVERY: usize = 3;

/// What was acknowledged, except the batches, which [`Expected`] has.
#[derive(Debug, Default)]
pub(crate) struct Acknowledged {
    credentials: Mutex<Vec<Credential>>,
    last_import: Mutex<Option<Instant>>,
    failed_commands: Mutex<Vec<String>>,
}

impl Acknowledged {
    pub(crate) fn credentials(&self) -> Vec<Credential> {
        lock(&self.credentials).clone()
    }

    /// The errors of commands that failed and were repeated.
    pub(crate) fn failed_commands(&self) -> Vec<String> {
        lock(&self.failed_commands).clone()
    }

    /// Waits for an import that is acknowledged after an instant; returns when it was.
    pub(crate) fn wait_for_import_after(&self, instant: Instant, timeout: Duration) -> Result<Instant> {
        let after = || lock(&self.last_import).filter(|at| *at > instant);
        wait_until(timeout, || after().is_some());
        after().with_context(|| format!("no import was acknowledged in {timeout:?}"))
    }

    fn note_failure(&self, error: &anyhow::Error) {
        lock(&self.failed_commands).push(format!("{error:#}"));
        sleep(RETRY_PAUSE);
    }
}

/// Imports one batch after the other until the load is over.
pub(crate) fn import(cli: &Cli, expected: &Expected, acknowledged: &Acknowledged, is_over: &AtomicBool) {
    let mut number = 0;
    while !is_over.load(Ordering::Relaxed) {
        // A prime step spreads the batches over the base.
        let position: Position = (expected.range(number * 1_213, 0).0, format!("added-{number:05}"));
        expected.send(&position);
        match cli.import(ORGANISATION, "ndjson", ndjson(&position).as_bytes()) {
            Ok(()) => {
                expected.acknowledge(&position);
                *lock(&acknowledged.last_import) = Some(Instant::now());
                number += 1;
                sleep(IMPORT_PAUSE);
            }
            Err(error) => acknowledged.note_failure(&error),
        }
    }
}

/// Issues and rotates credentials until the load is over. Each must get a token at once.
pub(crate) fn issue(cli: &Cli, load: &Load<'_>, acknowledged: &Acknowledged) {
    let mut client = LoadClient::new(load, 0);
    let mut number = 0;
    while !load.is_over.load(Ordering::Relaxed) {
        number += 1;
        // The old secret stays valid for days, so both are checked in the end. A third one would end it.
        let rotated = acknowledged.credentials().pop().filter(|_| number % ROTATE_EVERY == 0);
        let credential = match rotated {
            Some(credential) => cli.rotate_credential(&credential.client_id),
            None => cli.issue_credential(ORGANISATION),
        };
        match credential {
            Ok(credential) => {
                lock(&acknowledged.credentials).push(credential.clone());
                client.fetch_token(&credential);
                sleep(CREDENTIAL_PAUSE);
            }
            Err(error) => acknowledged.note_failure(&error),
        }
    }
}

fn ndjson((date, id): &Position) -> String {
    format!(
        "{{\"batch_id\":\"{id}\",\"batch_name\":\"{id}\",\"batch_creation_date\":\"{date}Z\",\
         \"number_of_images\":1,\"warnings\":false}}\n"
    )
}
