//! Rate limits: for each credential if the operator sets one (decision 033), and for guesses of secrets (decision 050).

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use batchscan_model::ClientId;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// At most so many requests in a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Number of requests.
    pub requests: u32,
    /// In this time.
    pub per: Duration,
}

/// Tracked keys. Beyond this, those without recent requests are dropped: their limit is not in use.
const KEYS_MAX: usize = 100_000;
/// Wrong secrets of one client id, and from one address. A client with an old secret stays far below.
const WRONG_SECRETS: Rate = Rate { requests: 600, per: Duration::from_secs(60) };
/// How long the responses to further wrong secrets are delayed. They stay the same: behind a proxy, all clients share an
/// address, and a client with an old secret has to learn that it is wrong.
const WRONG_SECRET_DELAY: Duration = Duration::from_secs(1);
/// Responses that are delayed at the same time. Bounds their memory.
const DELAYED_MAX: usize = 1_000;

/// The generic cell rate algorithm (GCRA): for each key, the time when its burst has drained. On the monotonic clock:
/// setting the system clock changes nothing.
#[derive(Debug)]
pub struct RateLimit<K> {
    rate: Rate,
    drained_at: Mutex<HashMap<K, Instant>>,
}

impl<K: Eq + Hash + Clone> RateLimit<K> {
    /// For every key the same rate.
    pub fn new(rate: Rate) -> Self {
        Self { rate, drained_at: Mutex::default() }
    }

    /// `Err` with the seconds to wait if this request exceeds the limit.
    pub fn check(&self, key: &K) -> Result<(), u64> {
        self.check_at(key, Instant::now())
    }

    fn check_at(&self, key: &K, now: Instant) -> Result<(), u64> {
        let mut keys = self.drained_at.lock().unwrap_or_else(PoisonError::into_inner);
        if keys.len() >= KEYS_MAX {
            keys.retain(|_, drained_at| *drained_at > now);
        }
        if keys.len() >= KEYS_MAX {
            // Keys that an attacker invents. To search all of them again for each request would be slow.
            keys.clear();
        }
        let drained_at = keys.get(key).copied().unwrap_or(now).max(now);
        let after = drained_at + self.rate.per / self.rate.requests.max(1);
        let wait = (after - now).saturating_sub(self.rate.per);
        if !wait.is_zero() {
            return Err(u64::try_from(wait.as_millis().div_ceil(1_000)).unwrap_or(u64::MAX).max(1));
        }
        keys.insert(key.clone(), after);
        Ok(())
    }
}

/// Slows down clients that send wrong secrets. It cannot lock out the owner of a credential: it never rejects the right
/// secret.
#[derive(Debug)]
pub struct WrongSecrets {
    by_client: RateLimit<ClientId>,
    by_address: RateLimit<IpAddr>,
    delayed: Semaphore,
}

impl Default for WrongSecrets {
    fn default() -> Self {
        let delayed = Semaphore::new(DELAYED_MAX);
        Self { by_client: RateLimit::new(WRONG_SECRETS), by_address: RateLimit::new(WRONG_SECRETS), delayed }
    }
}

impl WrongSecrets {
    /// Counts a wrong secret. Above the limit this takes a second; if too many do, `Err` with the seconds to wait.
    pub async fn count(&self, client: Option<&ClientId>, address: Option<IpAddr>) -> Result<(), u64> {
        let by_client = client.map_or(Ok(()), |client| self.by_client.check(client));
        let by_address = address.map_or(Ok(()), |address| self.by_address.check(&network(address)));
        if let Err(wait_secs) = by_client.and(by_address) {
            let _slot = self.delayed.try_acquire().map_err(|_| wait_secs)?;
            tokio::time::sleep(WRONG_SECRET_DELAY).await;
        }
        Ok(())
    }
}

/// An IPv4 address, or the /64 network of an IPv6 address, which has one owner.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() & (u128::MAX << 64)).into()),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decision 033.
    #[test]
    fn a_burst_is_allowed_and_then_a_steady_rate() {
        let limit = RateLimit::new(Rate { requests: 4, per: Duration::from_secs(60) });
        let (a, b) = (ClientId::new("a").unwrap(), ClientId::new("b").unwrap());
        let start = Instant::now();
        let at = |secs| start + Duration::from_secs(secs);
        for _ in 0..4 {
            assert_eq!(limit.check_at(&a, at(0)), Ok(()));
        }
        assert_eq!(limit.check_at(&a, at(0)), Err(15));
        assert_eq!(limit.check_at(&b, at(0)), Ok(()), "each credential has its own limit");
        assert_eq!(limit.check_at(&a, at(15)), Ok(()));
        assert!(limit.check_at(&a, at(15)).is_err());
    }

    #[test]
    fn the_number_of_keys_is_limited() {
        let limit = RateLimit::new(Rate { requests: 1, per: Duration::from_secs(60) });
        let now = Instant::now();
        for key in 0..2 * KEYS_MAX + 1 {
            assert_eq!(limit.check_at(&key, now), Ok(()));
        }
        assert!(limit.drained_at.lock().unwrap().len() <= KEYS_MAX);
    }

    /// Decision 050.
    #[tokio::test(start_paused = true)]
    async fn wrong_secrets_are_limited_by_client_id_and_by_address() {
        let wrong = WrongSecrets::default();
        let (a, b) = (ClientId::new("a"), ClientId::new("b"));
        let address = |text: &str| Some(text.parse::<IpAddr>().unwrap());
        for _ in 0..WRONG_SECRETS.requests {
            wrong.count(a.as_ref(), address("2001:db8::1")).await.unwrap();
        }
        let start = Instant::now();
        let delayed_by_client = wrong.count(a.as_ref(), address("192.0.2.1"));
        let delayed_by_network = wrong.count(b.as_ref(), address("2001:db8::2"));
        let delayed = tokio::join!(delayed_by_client, delayed_by_network);
        assert!(matches!(delayed, (Ok(()), Ok(()))));
        assert_eq!(start.elapsed(), WRONG_SECRET_DELAY);
        wrong.count(b.as_ref(), address("192.0.2.1")).await.unwrap();
        assert_eq!(start.elapsed(), WRONG_SECRET_DELAY, "neither limit is reached");
        let flood = (0..2 * DELAYED_MAX).map(|_| wrong.count(a.as_ref(), None));
        let rejected = futures_util::future::join_all(flood).await.into_iter().filter(Result::is_err);
        assert!(rejected.count() > DELAYED_MAX / 2, "the delayed responses are limited");
    }
}
