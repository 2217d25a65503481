//! Requests that wait for changes. One read of the store, a few times a second, is for all of them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use batchscan_model::OrgId;
use batchscan_store::{DataVersion, Store, StoreError};
use tokio::sync::watch;
use tokio::time::Instant;

/// How often the store is asked for the versions of the organisations that requests wait for.
pub(crate) const CHECK_INTERVAL: Duration = Duration::from_millis(150);
/// Requests that may wait, of all organisations and of one. Each takes some kilobytes.
const WAITING_MAX: usize = 20_000;
const WAITING_OF_ORG_MAX: usize = 5_000;

/// The requests that wait.
#[derive(Debug)]
pub(super) struct Waiting {
    /// The last known version of each organisation that a request waits for.
    versions: Mutex<HashMap<OrgId, watch::Sender<DataVersion>>>,
    requests: AtomicUsize,
    is_stopped: watch::Sender<bool>,
}

impl Default for Waiting {
    fn default() -> Self {
        let (is_stopped, _) = watch::channel(false);
        Self { versions: Mutex::default(), requests: AtomicUsize::new(0), is_stopped }
    }
}

impl Waiting {
    /// Waits until the organisation has a later version than the one seen, or until a time, or until the service stops.
    /// `None` if too many requests wait.
    pub(super) async fn wait(&self, org: OrgId, seen: DataVersion, until: Instant) -> Option<()> {
        let _request = self.count_request()?;
        let mut version = self.subscribe(org, seen)?;
        let mut is_stopped = self.is_stopped.subscribe();
        // A standby may report an older version.
        let is_later = |version: &DataVersion| *version != seen && version.number >= seen.number;
        tokio::select! {
            _ = version.wait_for(is_later) => {}
            _ = is_stopped.wait_for(|is_stopped| *is_stopped) => {}
            () = tokio::time::sleep_until(until) => {}
        }
        Some(())
    }

    /// Lets all requests continue, now and later.
    pub(super) fn stop(&self) {
        self.is_stopped.send_replace(true);
    }

    /// Reads the versions of the organisations that requests wait for.
    pub(super) async fn check(&self, store: &Store) -> Result<(), StoreError> {
        let orgs: Vec<OrgId> = {
            let mut versions = self.lock();
            versions.retain(|_, version| version.receiver_count() > 0);
            versions.keys().copied().collect()
        };
        if orgs.is_empty() {
            return Ok(());
        }
        for (org, version) in store.versions(orgs).await? {
            if let Some(known) = self.lock().get(&org) {
                known.send_if_modified(|known| std::mem::replace(known, version) != version);
            }
        }
        Ok(())
    }

    fn subscribe(&self, org: OrgId, seen: DataVersion) -> Option<watch::Receiver<DataVersion>> {
        let mut versions = self.lock();
        let version = versions.entry(org).or_insert_with(|| watch::channel(seen).0);
        (version.receiver_count() < WAITING_OF_ORG_MAX).then(|| version.subscribe())
    }

    fn count_request(&self) -> Option<Counted<'_>> {
        let counted = Counted(&self.requests);
        (self.requests.fetch_add(1, Ordering::Relaxed) < WAITING_MAX).then_some(counted)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<OrgId, watch::Sender<DataVersion>>> {
        self.versions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts a request until it is dropped.
struct Counted<'w>(&'w AtomicUsize);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
