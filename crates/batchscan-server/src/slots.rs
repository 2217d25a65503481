//! A limit of concurrent work that no organisation can use up alone.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use batchscan_model::OrgId;

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
