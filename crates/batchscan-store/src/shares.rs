//! A share of the readers for each organisation, so that one organisation cannot use all of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use batchscan_model::OrgId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Organisations that are tracked. Beyond this, those that do not read are dropped.
const ORGANISATIONS_MAX: usize = 10_000;

#[derive(Debug)]
pub(crate) struct Shares {
    each: usize,
    organisations: Mutex<HashMap<OrgId, Arc<Semaphore>>>,
}

impl Shares {
    /// An organisation can have three quarters of the total, and at least one.
    pub(crate) fn new(total: usize) -> Self {
        Self { each: (total - total.div_ceil(4)).max(1), organisations: Mutex::default() }
    }

    /// Waits until the organisation has a free share. It is returned when the result is dropped.
    pub(crate) async fn acquire(&self, org: OrgId) -> Option<OwnedSemaphorePermit> {
        // Fails only if the semaphore is closed, which never happens.
        self.semaphore(org).acquire_owned().await.ok()
    }

    fn semaphore(&self, org: OrgId) -> Arc<Semaphore> {
        let mut organisations = self.organisations.lock().unwrap_or_else(PoisonError::into_inner);
        if organisations.len() >= ORGANISATIONS_MAX {
            organisations.retain(|_, shares| Arc::strong_count(shares) > 1);
        }
        organisations.entry(org).or_insert_with(|| Arc::new(Semaphore::new(self.each))).clone()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn an_organisation_cannot_have_everything() {
        let shares = Shares::new(4);
        let mut held = Vec::new();
        for _ in 0..3 {
            held.push(shares.acquire(OrgId(1)).now_or_never().unwrap());
        }
        assert!(shares.acquire(OrgId(1)).now_or_never().is_none());
        assert!(shares.acquire(OrgId(2)).now_or_never().is_some());
        held.pop();
        assert!(shares.acquire(OrgId(1)).now_or_never().is_some());
        assert!(Shares::new(1).acquire(OrgId(1)).now_or_never().is_some());
    }
}
