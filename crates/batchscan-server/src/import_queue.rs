//! Limits the imports of the operator API.

use batchscan_model::OrgId;
use tokio::sync::{Mutex, MutexGuard, Semaphore, SemaphorePermit};

use crate::slots::{Slot, Slots};

/// Files that are received or wait for their import at the same time, half of them for one organisation.
const RECEIVED_MAX: usize = 128;
/// Imports at the same time. Each needs a database connection.
const IMPORTS_MAX: usize = 2;
/// More than enough, so that hardly any organisations share one.
const TURNS: usize = 64;

/// The imports of all organisations.
#[derive(Debug)]
pub(crate) struct ImportQueue {
    received: Slots,
    /// One import at a time for each organisation, so that a long queue of one does not delay others.
    turns: [Mutex<()>; TURNS],
    imports: Semaphore,
}

impl Default for ImportQueue {
    fn default() -> Self {
        let turns = std::array::from_fn(|_| Mutex::new(()));
        Self { received: Slots::new(RECEIVED_MAX), turns, imports: Semaphore::new(IMPORTS_MAX) }
    }
}

impl ImportQueue {
    /// A slot for a file. `None` if there are too many.
    pub(crate) fn enter(&self, org: OrgId) -> Option<Slot> {
        self.received.acquire(org)
    }

    /// Waits until an import of the organisation may start. It ends when the result is dropped.
    pub(crate) async fn wait_for_turn(
        &self,
        org: OrgId,
    ) -> (MutexGuard<'_, ()>, Option<SemaphorePermit<'_>>) {
        let number = usize::try_from(org.0).unwrap_or_default();
        let turn = self.turns[number % TURNS].lock().await;
        (turn, self.imports.acquire().await.ok())
    }
}
