//! A rate limit for each credential, if the operator sets one (decision 033).

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use batchscan_model::{ClientId, UtcInstant};

use crate::config::Rate;

/// Tracked credentials. Beyond this, those without recent requests are dropped: their limit is not in use.
const CLIENTS_MAX: usize = 100_000;

/// The generic cell rate algorithm (GCRA): for each client, the time when its burst has drained.
#[derive(Debug)]
pub(super) struct RateLimit {
    rate: Rate,
    drained_at: Mutex<HashMap<ClientId, i64>>,
}

impl RateLimit {
    pub(super) fn new(rate: Rate) -> Self {
        Self { rate, drained_at: Mutex::default() }
    }

    /// `Err` with the seconds to wait if this request exceeds the limit.
    pub(super) fn check(&self, client: &ClientId, now: UtcInstant) -> Result<(), u64> {
        let now = now.micros();
        let period = i64::try_from(self.rate.per.as_micros()).unwrap_or(i64::MAX);
        let one = period / i64::from(self.rate.requests.max(1));
        let mut clients = self.drained_at.lock().unwrap_or_else(PoisonError::into_inner);
        if clients.len() >= CLIENTS_MAX {
            clients.retain(|_, drained_at| *drained_at > now);
        }
        // Between now and one period from now, even if the clock was set back.
        let drained_at = clients.get(client).copied().unwrap_or(now).clamp(now, now.saturating_add(period));
        let after = drained_at.saturating_add(one);
        if after - now > period {
            let wait = u64::try_from(after - now - period).unwrap_or(0);
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
    fn a_burst_is_allowed_and_then_a_steady_rate() {
        let limit = RateLimit::new(Rate { requests: 4, per: Duration::from_secs(60) });
        let (a, b) = (ClientId::new("a").unwrap(), ClientId::new("b").unwrap());
        let at = |secs| UtcInstant::EPOCH.plus_secs(secs);
        for _ in 0..4 {
            assert_eq!(limit.check(&a, at(0)), Ok(()));
        }
        assert_eq!(limit.check(&a, at(0)), Err(15));
        assert_eq!(limit.check(&b, at(0)), Ok(()), "each credential has its own limit");
        assert_eq!(limit.check(&a, at(15)), Ok(()));
        assert!(limit.check(&a, at(15)).is_err());
    }

    #[test]
    fn a_clock_that_is_set_back_blocks_a_client_for_one_period_at_most() {
        let limit = RateLimit::new(Rate { requests: 1, per: Duration::from_secs(60) });
        let a = ClientId::new("a").unwrap();
        assert_eq!(limit.check(&a, UtcInstant::EPOCH.plus_secs(7_200)), Ok(()));
        assert_eq!(limit.check(&a, UtcInstant::EPOCH), Err(60));
    }
}
