//! Limits of concurrent work that no organisation can use up alone.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use batchscan_model::OrgId;
use tokio::sync::{self, Semaphore, SemaphorePermit};

/// Files that are received or wait for their import at the same time, half of them for one organisation.
const RECEIVED_MAX: usize = 128;
/// Imports at the same time. Each needs a database connection.
const IMPORTS_MAX: usize = 2;
/// More than enough, so that hardly any organisations share one.
const TURNS: usize = 64;

/// The slots, and the organisations that have them. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    max: usize,
    acquired: Arc<Mutex<Vec<OrgId>>>,
}

impl Slots {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, acquired: Arc::default() }
    }

    /// `None` if there are too many. Beyond its first one, an organisation may have fewer than are left for others.
    pub(crate) fn acquire(&self, org: OrgId) -> Option<Slot> {
        let mut acquired = self.lock();
        let left = self.max.checked_sub(acquired.len() + 1)?;
        let own = acquired.iter().filter(|other| **other == org).count();
        if own > 0 && own >= left {
            return None;
        }
        acquired.push(org);
        Some(Slot { slots: self.clone(), org })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<OrgId>> {
        self.acquired.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A slot, until it is dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    slots: Slots,
    org: OrgId,
}

impl Slot {
    pub(crate) fn org(&self) -> OrgId {
        self.org
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut acquired = self.slots.lock();
        if let Some(at) = acquired.iter().position(|org| *org == self.org) {
            acquired.swap_remove(at);
        }
    }
}

/// The imports of all organisations.
#[derive(Debug)]
pub(crate) struct ImportQueue {
    received: Slots,
    /// One import at a time for each organisation, so that a long queue of one does not delay others.
    turns: [sync::Mutex<()>; TURNS],
    imports: Semaphore,
}

impl Default for ImportQueue {
    fn default() -> Self {
        let turns = std::array::from_fn(|_| sync::Mutex::new(()));
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
    ) -> (sync::MutexGuard<'_, ()>, Option<SemaphorePermit<'_>>) {
        let number = usize::try_from(org.0).unwrap_or_default();
        let turn = self.turns[number % TURNS].lock().await;
        (turn, self.imports.acquire().await.ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_organisation_acquires_all_slots() {
        let slots = Slots::new(4);
        let acquire = |org| slots.acquire(OrgId(org));
        let first = (acquire(1).unwrap(), acquire(1).unwrap());
        assert!(acquire(1).is_none());
        let _others = (acquire(2).unwrap(), acquire(3).unwrap());
        assert!(acquire(4).is_none());
        drop(first);
        assert!(acquire(4).is_some());
    }
}
