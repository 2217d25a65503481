//! A limit on the requests of each credential, where the operator sets one (decision 033).

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use batchscan_model::{ClientId, UtcInstant};

use crate::config::Rate;

/// Credentials tracked at once. Past this the idle ones are forgotten, which only ever lets a request through.
const CLIENTS_MAX: usize = 100_000;

/// Counts by the instant at which a client's burst will have drained: one number each (GCRA).
#[derive(Debug)]
pub(super) struct RateLimit {
    rate: Rate,
    drained_at: Mutex<HashMap<ClientId, i64>>,
}

impl RateLimit {
    pub(super) fn new(rate: Rate) -> Self {
        Self { rate, drained_at: Mutex::default() }
    }

    /// `Err` with the seconds to wait if this request is one too many.
    pub(super) fn admit(&self, client: &ClientId, now: UtcInstant) -> Result<(), u64> {
        let now = now.micros();
        let window = i64::try_from(self.rate.per.as_micros()).unwrap_or(i64::MAX);
        let one = window / i64::from(self.rate.requests.max(1));
        let mut clients = self.drained_at.lock().unwrap_or_else(PoisonError::into_inner);
        if clients.len() >= CLIENTS_MAX {
            clients.retain(|_, drained_at| *drained_at > now);
        }
        // Between now and a full window from now, also when the clock was set back.
        let drained_at = clients.get(client).copied().unwrap_or(now).clamp(now, now.saturating_add(window));
        let after = drained_at.saturating_add(one);
        if after - now > window {
            let wait = u64::try_from(after - now - window).unwrap_or(0);
            return Err(wait.div_ceil(1_000_000).max(1));
        }
        clients.insert(client.clone(), after);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Decision 033.
    #[test]
    fn a_burst_is_admitted_then_one_request_for_each_share_of_the_time() {
        let limit = RateLimit::new(Rate { requests: 4, per: Duration::from_secs(60) });
        let (a, b) = (ClientId::new("a").unwrap(), ClientId::new("b").unwrap());
        let at = |secs| UtcInstant::EPOCH.plus_secs(secs);
        for _ in 0..4 {
            assert_eq!(limit.admit(&a, at(0)), Ok(()));
        }
        assert_eq!(limit.admit(&a, at(0)), Err(15));
        assert_eq!(limit.admit(&b, at(0)), Ok(()), "another credential has a limit of its own");
        assert_eq!(limit.admit(&a, at(15)), Ok(()));
        assert!(limit.admit(&a, at(15)).is_err());
    }

    #[test]
    fn a_clock_that_is_set_back_locks_nobody_out_for_longer_than_the_window() {
        let limit = RateLimit::new(Rate { requests: 1, per: Duration::from_secs(60) });
        let a = ClientId::new("a").unwrap();
        assert_eq!(limit.admit(&a, UtcInstant::EPOCH.plus_secs(7_200)), Ok(()));
        assert_eq!(limit.admit(&a, UtcInstant::EPOCH), Err(60));
    }
}
