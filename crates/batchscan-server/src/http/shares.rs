//! A limit of concurrent work that no organisation can use up alone.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use batchscan_model::OrgId;

/// Places for work, and the organisations that have them. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Shares {
    max: usize,
    taken: Arc<Mutex<Vec<OrgId>>>,
}

impl Shares {
    pub(super) fn new(max: usize) -> Self {
        Self { max, taken: Arc::default() }
    }

    /// `None` if there are too many. Beyond its first one, an organisation may have fewer than are left for others.
    pub(super) fn take(&self, org: OrgId) -> Option<Share> {
        let mut taken = self.lock();
        let left = self.max.checked_sub(taken.len() + 1)?;
        let own = taken.iter().filter(|other| **other == org).count();
        if own > 0 && own >= left {
            return None;
        }
        taken.push(org);
        Some(Share { shares: self.clone(), org })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<OrgId>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place, until it is dropped.
#[derive(Debug)]
pub(super) struct Share {
    shares: Shares,
    org: OrgId,
}

impl Share {
    pub(super) fn org(&self) -> OrgId {
        self.org
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut taken = self.shares.lock();
        if let Some(at) = taken.iter().position(|org| *org == self.org) {
            taken.swap_remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_organisation_takes_all_places() {
        let shares = Shares::new(4);
        let take = |org| shares.take(OrgId(org));
        let first = (take(1).unwrap(), take(1).unwrap());
        assert!(take(1).is_none());
        let _others = (take(2).unwrap(), take(3).unwrap());
        assert!(take(4).is_none());
        drop(first);
        assert!(take(4).is_some());
    }
}
