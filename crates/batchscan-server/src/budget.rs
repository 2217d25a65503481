//! Limits the memory of all responses and shares it, so that clients that stop reading cannot take it from others.
//!
//! An organisation gets at most as much as is left for the others, and a credential at most half of that. So a single
//! organisation can use half of the memory, two can use a third each, and there is always some left for the next one.
//! Connections have no shares: behind a proxy, one connection carries the requests of many organisations.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use batchscan_model::{ClientId, OrgId};
use batchscan_store::Caller;
use foldhash::fast::RandomState;

/// How long a client may stop reading while there is enough memory. Long enough for a client that writes to its database
/// between two reads.
const STALL_TIMEOUT_MAX: Duration = Duration::from_secs(300);
/// The same while there is hardly any memory left.
const STALL_TIMEOUT_MIN: Duration = Duration::from_secs(5);

/// The memory for responses that are cached or being sent. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    max: usize,
    used: Arc<Mutex<Used>>,
}

#[derive(Debug, Default)]
struct Used {
    total: usize,
    held: HashMap<Holder, usize, RandomState>,
}

/// Who has a share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Holder {
    Organisation(OrgId),
    Credential(ClientId),
}

impl Budget {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, used: Arc::default() }
    }

    /// Reserves memory until the reservation is dropped; `None` if the caller may not have that much.
    pub(crate) fn reserve(&self, caller: &Caller, bytes: usize) -> Option<Reservation> {
        let mut used = self.lock();
        let free = self.max.checked_sub(used.total)?.checked_sub(bytes)?;
        let shares =
            [(Holder::Organisation(caller.org), free), (Holder::Credential(caller.client.clone()), free / 2)];
        // A response that is the only one may be larger than a share.
        if !shares
            .iter()
            .all(|(holder, share)| used.held.get(holder).is_none_or(|held| held + bytes <= *share))
        {
            return None;
        }
        let holders = shares.map(|(holder, _)| holder);
        used.total += bytes;
        for holder in &holders {
            *used.held.entry(holder.clone()).or_default() += bytes;
        }
        Some(Reservation { budget: self.clone(), holders, bytes })
    }

    /// Whether a caller that has no responses yet would get this much memory.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.max.saturating_sub(self.lock().total) >= bytes
    }

    /// How long a client may stop reading: shorter when more than half of the memory is in use.
    pub(crate) fn stall_timeout(&self) -> Duration {
        let free = self.max.saturating_sub(self.lock().total);
        let percent = (free.saturating_mul(200) / self.max.max(1)).min(100);
        (STALL_TIMEOUT_MAX * u32::try_from(percent).unwrap_or(100) / 100).max(STALL_TIMEOUT_MIN)
    }

    fn lock(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reserved memory.
#[derive(Debug)]
pub(crate) struct Reservation {
    budget: Budget,
    holders: [Holder; 2],
    bytes: usize,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut used = self.budget.lock();
        used.total -= self.bytes;
        for holder in &self.holders {
            if let Some(held) = used.held.get_mut(holder) {
                *held -= self.bytes;
                if *held == 0 {
                    used.held.remove(holder);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(org: i64, client: &str) -> Caller {
        Caller { org: OrgId(org), client: ClientId::new(client).unwrap() }
    }

    /// Reserves pieces of 10 until there are no more.
    fn take_all(budget: &Budget, caller: &Caller) -> Vec<Reservation> {
        std::iter::from_fn(|| budget.reserve(caller, 10)).collect()
    }

    #[test]
    fn no_credential_and_no_organisation_takes_all_memory() {
        let budget = Budget::new(1_200);
        let first = take_all(&budget, &caller(1, "a"));
        assert_eq!(first.len(), 40, "a third for one credential");
        let second = take_all(&budget, &caller(1, "b"));
        assert_eq!(second.len(), 20, "half for an organisation");
        let other = take_all(&budget, &caller(2, "c"));
        assert_eq!(other.len(), 20, "a third of what is left");
        drop((first, second, other));
        assert!(budget.lock().total == 0 && budget.lock().held.is_empty());
    }

    #[test]
    fn a_large_response_gets_all_memory_if_the_caller_has_no_other() {
        let budget = Budget::new(1_000);
        let reserve = |bytes| budget.reserve(&caller(1, "a"), bytes);
        let whole = reserve(1_000).unwrap();
        assert!(budget.reserve(&caller(2, "b"), 1).is_none());
        assert!(!budget.has_room(1));
        drop(whole);
        assert!(budget.has_room(1_000));
        assert!(reserve(1_001).is_none());
    }

    #[test]
    fn the_less_memory_is_left_the_sooner_a_stalled_client_is_disconnected() {
        let budget = Budget::new(1_000);
        assert_eq!(budget.stall_timeout(), STALL_TIMEOUT_MAX);
        let _most = budget.reserve(&caller(1, "a"), 900).unwrap();
        assert_eq!(budget.stall_timeout(), Duration::from_secs(60));
        let _rest = budget.reserve(&caller(2, "b"), 100).unwrap();
        assert_eq!(budget.stall_timeout(), STALL_TIMEOUT_MIN);
    }
}
