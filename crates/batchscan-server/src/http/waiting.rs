//! Requests that wait for changes. One read of the store, a few times a second, is for all of them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use batchscan_model::OrgId;
use batchscan_store::{DataVersion, OrgState, Store, StoreError};
use tokio::sync::watch;
use tokio::time::Instant;

/// How often the states of the organisations that requests wait for are read.
pub(crate) const CHECK_INTERVAL: Duration = Duration::from_millis(150);
/// Requests that may wait, of all organisations and of one. Each takes some kilobytes.
const WAITING_MAX: usize = 20_000;
const WAITING_OF_ORG_MAX: usize = 5_000;

/// The requests that wait.
#[derive(Debug)]
pub(super) struct Waiting {
    /// Each organisation that a request waits for.
    orgs: Mutex<HashMap<OrgId, watch::Sender<LastState>>>,
    requests: AtomicUsize,
    is_stopped: watch::Sender<bool>,
}

/// What was last read of an organisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LastState {
    NotRead,
    Read(OrgState),
    Removed,
}

impl LastState {
    /// Whether a request must look again: there may be changes for it, or its credential may have been revoked. A standby
    /// may report an older version.
    fn concerns(self, seen: DataVersion, since: LastState) -> bool {
        match (self, since) {
            (Self::Read(now), _) if now.version != seen && now.version.number >= seen.number => true,
            _ => self.may_have_revocation(since),
        }
    }

    /// Whether a credential of the organisation may have been revoked since then, or the organisation was removed.
    pub(super) fn may_have_revocation(self, since: LastState) -> bool {
        match (self, since) {
            (Self::NotRead, _) | (Self::Removed, Self::Removed) => false,
            (Self::Read(now), Self::Read(since)) => now.revoked > since.revoked,
            (Self::Read(_) | Self::Removed, _) => true,
        }
    }
}

impl Default for Waiting {
    fn default() -> Self {
        let (is_stopped, _) = watch::channel(false);
        Self { orgs: Mutex::default(), requests: AtomicUsize::new(0), is_stopped }
    }
}

impl Waiting {
    /// Waits until the organisation has a later version than the one seen or a credential was revoked, or until a time, or
    /// until the service stops. `None` if too many requests wait.
    ///
    /// `since` is the state before the request read its credential: a revocation after that is noticed.
    pub(super) async fn wait(
        &self,
        org: OrgId,
        seen: DataVersion,
        since: LastState,
        until: Instant,
    ) -> Option<()> {
        let _request = self.count_request()?;
        let mut state = self.subscribe(org)?;
        let mut is_stopped = self.is_stopped.subscribe();
        tokio::select! {
            _ = state.wait_for(|state| state.concerns(seen, since)) => {}
            _ = is_stopped.wait_for(|is_stopped| *is_stopped) => {}
            () = tokio::time::sleep_until(until) => {}
        }
        Some(())
    }

    /// What was last read of an organisation, for [`Waiting::wait`].
    pub(super) fn last_state(&self, org: OrgId) -> LastState {
        self.lock().get(&org).map_or(LastState::NotRead, |state| *state.borrow())
    }

    /// Lets all requests continue, now and later.
    pub(super) fn stop(&self) {
        self.is_stopped.send_replace(true);
    }

    /// Reads the states of the organisations that requests wait for.
    pub(super) async fn check(&self, store: &Store) -> Result<(), StoreError> {
        let orgs: Vec<OrgId> = {
            let mut orgs = self.lock();
            orgs.retain(|_, state| state.receiver_count() > 0);
            orgs.keys().copied().collect()
        };
        if orgs.is_empty() {
            return Ok(());
        }
        let mut states: HashMap<_, _> = store.org_states(orgs.clone()).await?.into_iter().collect();
        let known = self.lock();
        for org in orgs {
            let state = states.remove(&org).map_or(LastState::Removed, LastState::Read);
            if let Some(known) = known.get(&org) {
                known.send_if_modified(|known| std::mem::replace(known, state) != state);
            }
        }
        Ok(())
    }

    fn subscribe(&self, org: OrgId) -> Option<watch::Receiver<LastState>> {
        let mut orgs = self.lock();
        let state = orgs.entry(org).or_insert_with(|| watch::channel(LastState::NotRead).0);
        (state.receiver_count() < WAITING_OF_ORG_MAX).then(|| state.subscribe())
    }

    fn count_request(&self) -> Option<Counted<'_>> {
        let counted = Counted(&self.requests);
        (self.requests.fetch_add(1, Ordering::Relaxed) < WAITING_MAX).then_some(counted)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<OrgId, watch::Sender<LastState>>> {
        self.orgs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts a request until it is dropped.
struct Counted<'w>(&'w AtomicUsize);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
