//! Decides when to retry and when to give up. Does not sleep; knows nothing about HTTP.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::Error;

/// A retry that is about to happen.
#[derive(Debug)]
pub struct Retry<'a> {
    /// Why the last try failed.
    pub error: &'a Error,
    /// Time until the next try.
    pub wait: Duration,
}

type Listener = dyn Fn(&Retry<'_>) + Send + Sync;

#[derive(Clone)]
pub(crate) struct RetryPolicy {
    /// Time limit for one page, all tries and waits included.
    pub(crate) limit: Duration,
    /// Wait between tries, unless the service asks for another.
    pub(crate) wait: RangeInclusive<Duration>,
    pub(crate) listener: Option<Arc<Listener>>,
}

impl Default for RetryPolicy {
    /// The API suggests 3 to 5 seconds; two minutes are enough for a restart of the service.
    fn default() -> Self {
        let wait = Duration::from_secs(3)..=Duration::from_secs(5);
        Self { limit: Duration::from_secs(120), wait, listener: None }
    }
}

impl std::fmt::Debug for RetryPolicy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("RetryPolicy");
        shown.field("limit", &self.limit).field("wait", &self.wait).finish_non_exhaustive()
    }
}

/// The retries of one page.
pub(crate) struct Backoff<'a> {
    policy: &'a RetryPolicy,
    started: Instant,
    tries: u32,
}

impl<'a> Backoff<'a> {
    pub(crate) fn new(policy: &'a RetryPolicy, now: Instant) -> Self {
        Self { policy, started: now, tries: 0 }
    }

    /// How long to wait before the next try, or the final error if there is no time for one.
    pub(crate) fn next_wait(&mut self, error: Error, now: Instant) -> Result<Duration, Error> {
        if self.policy.limit.is_zero() {
            return Err(error);
        }
        self.tries += 1;
        let elapsed = now.duration_since(self.started);
        let left = self.policy.limit.saturating_sub(elapsed);
        let retry_after = match &error {
            // Zero would cause thousands of tries.
            Error::Unavailable { retry_after, .. } => retry_after.filter(|wait| !wait.is_zero()),
            _ => None,
        };
        if let Some(retry_after) = retry_after.filter(|wait| *wait > left) {
            return Err(Error::RetryAfterTooLong { retry_after, left, last: Box::new(error) });
        }
        let wait = retry_after.unwrap_or_else(|| random_within(&self.policy.wait));
        if wait >= left {
            return Err(Error::RetriesExhausted { elapsed, tries: self.tries, last: Box::new(error) });
        }
        if let Some(listener) = &self.policy.listener {
            listener(&Retry { error: &error, wait });
        }
        Ok(wait)
    }
}

/// Random, so that clients that failed together do not return together.
fn random_within(range: &RangeInclusive<Duration>) -> Duration {
    let spread = range.end().saturating_sub(*range.start());
    *range.start() + spread.mul_f64(fastrand::f64())
}

#[cfg(test)]
mod tests {
    use reqwest::StatusCode;

    use super::*;

    const fn secs(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    fn busy(retry_after: Option<u64>) -> Error {
        let retry_after = retry_after.map(secs);
        Error::Unavailable { status: StatusCode::SERVICE_UNAVAILABLE, detail: None, retry_after }
    }

    #[test]
    fn retry_after_replaces_the_random_wait() {
        let (policy, now) = (RetryPolicy::default(), Instant::now());
        let mut backoff = Backoff::new(&policy, now);
        assert_eq!(backoff.next_wait(busy(Some(7)), now), Ok(secs(7)));
        let waits: Vec<_> = (0..9).map(|_| backoff.next_wait(busy(None), now).unwrap()).collect();
        assert!(waits.iter().all(|wait| policy.wait.contains(wait)), "{waits:?}");
        assert!(waits.iter().any(|wait| *wait != waits[0]), "{waits:?}");
        assert!(policy.wait.contains(&backoff.next_wait(busy(Some(0)), now).unwrap()));
    }

    #[test]
    fn the_limit_includes_the_next_wait() {
        let policy = RetryPolicy { limit: secs(60), wait: secs(4)..=secs(4), listener: None };
        let started = Instant::now();
        let mut backoff = Backoff::new(&policy, started);
        assert_eq!(backoff.next_wait(busy(None), started + secs(55)), Ok(secs(4)));
        let error = backoff.next_wait(busy(None), started + secs(56)).unwrap_err();
        let last = Box::new(busy(None));
        assert_eq!(error, Error::RetriesExhausted { elapsed: secs(56), tries: 2, last });
        let expected = "the service responded with 503 Service Unavailable; gave up after 2 tries in 56 s: the next one \
                        would be after the time limit for retries";
        assert_eq!(error.to_string(), expected);
        let error = backoff.next_wait(busy(Some(11)), started + secs(50)).unwrap_err();
        let expected = "the service responded with 503 Service Unavailable; the service asks to wait 11 s, but only 10 s \
                        are left for retries";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn no_limit_or_no_wait_does_not_retry_forever() {
        let now = Instant::now();
        let none = RetryPolicy { limit: Duration::ZERO, ..RetryPolicy::default() };
        assert_eq!(Backoff::new(&none, now).next_wait(busy(Some(1)), now), Err(busy(Some(1))));
        let eager = RetryPolicy { wait: Duration::ZERO..=Duration::ZERO, ..RetryPolicy::default() };
        let mut backoff = Backoff::new(&eager, now);
        assert_eq!(backoff.next_wait(busy(None), now), Ok(Duration::ZERO));
        let error = backoff.next_wait(busy(None), now + secs(120)).unwrap_err();
        assert!(matches!(error, Error::RetriesExhausted { .. }), "{error}");
    }
}
