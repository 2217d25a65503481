//! What this process knows about the organisations, for the log and the metrics.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use batchscan_model::{OrgId, UtcInstant};
use batchscan_store::{DataVersion, OrgOverview, Store, StoreError};

use crate::metrics::OrgNumbers;

/// The organisations. Read from the store every few seconds and for `/metrics`.
#[derive(Debug, Default)]
pub(super) struct Organisations(Mutex<HashMap<OrgId, OrgEntry>>);

#[derive(Debug, Default)]
struct OrgEntry {
    /// `None` until it is read from the store.
    overview: Option<OrgOverview>,
    /// The number of batches, and the version that has it. Counted only for `/metrics`.
    batches: Option<(DataVersion, u64)>,
    /// When a client last read batches from this process.
    read_at: Option<UtcInstant>,
}

impl Organisations {
    /// The name of an organisation, if it was read from the store already. Notes when a client read its batches.
    pub(super) fn name(&self, org: OrgId, read_at: Option<UtcInstant>) -> Option<Arc<str>> {
        let mut all = self.lock();
        let known = all.entry(org).or_default();
        known.read_at = read_at.or(known.read_at);
        known.overview.as_ref().map(|overview| overview.name.clone())
    }

    /// Reads names, versions and the times of imports.
    pub(super) async fn refresh(&self, store: &Store) -> Result<(), StoreError> {
        let all = store.org_overviews().await?;
        let mut known = self.lock();
        let mut before = std::mem::take(&mut *known);
        for overview in all {
            let org = before.remove(&overview.id).unwrap_or_default();
            known.insert(overview.id, OrgEntry { overview: Some(overview), ..org });
        }
        Ok(())
    }

    /// The numbers for the metrics. Batches are counted again only after an import.
    pub(super) async fn numbers(&self, store: &Store) -> Result<Vec<OrgNumbers>, StoreError> {
        self.refresh(store).await?;
        for (org, version) in self.uncounted() {
            let batches = store.count_batches(org).await?;
            if let Some(known) = self.lock().get_mut(&org) {
                known.batches = Some((version, batches));
            }
        }
        Ok(self.lock().values().filter_map(OrgEntry::numbers).collect())
    }

    fn uncounted(&self) -> Vec<(OrgId, DataVersion)> {
        self.lock().values().filter_map(OrgEntry::uncounted).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<OrgId, OrgEntry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OrgEntry {
    fn numbers(&self) -> Option<OrgNumbers> {
        let overview = self.overview.as_ref()?;
        Some(OrgNumbers {
            name: overview.name.to_string(),
            batches: self.batches.map(|(_, batches)| batches),
            imported_at: overview.imported_at,
            read_at: self.read_at,
        })
    }

    fn uncounted(&self) -> Option<(OrgId, DataVersion)> {
        let OrgOverview { id, version, .. } = self.overview.as_ref()?;
        self.batches.is_none_or(|(counted, _)| counted != *version).then_some((*id, *version))
    }
}
