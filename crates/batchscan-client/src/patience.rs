//! When to try again, and when to give up. Sleeps; knows nothing of HTTP.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::Error;

/// What is said before a wait.
#[derive(Debug)]
pub struct Retry<'a> {
    /// What went wrong.
    pub error: &'a Error,
    /// How long to wait before the next try.
    pub wait: Duration,
}

type Listener = dyn Fn(&Retry<'_>) + Send + Sync;

/// The caller's rules.
#[derive(Clone)]
pub(crate) struct Rules {
    /// How long one page may be tried.
    pub(crate) limit: Duration,
    /// How long to wait where the service does not say.
    pub(crate) wait: RangeInclusive<Duration>,
    pub(crate) listener: Option<Arc<Listener>>,
}

impl Default for Rules {
    /// The interface suggests 3 to 5 seconds; two minutes outlast a restart of anything.
    fn default() -> Self {
        let wait = Duration::from_secs(3)..=Duration::from_secs(5);
        Self { limit: Duration::from_secs(120), wait, listener: None }
    }
}

impl std::fmt::Debug for Rules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rules").field("limit", &self.limit).field("wait", &self.wait).finish_non_exhaustive()
    }
}

/// The patience that is left for one page.
#[derive(Debug)]
pub(crate) struct Patience<'a> {
    rules: &'a Rules,
    began: Instant,
    tries: u32,
}

impl<'a> Patience<'a> {
    pub(crate) fn new(rules: &'a Rules) -> Self {
        Self { rules, began: Instant::now(), tries: 0 }
    }

    /// Waits before the next try; fails if there is no time for one.
    pub(crate) async fn wait(&mut self, error: Error, asked: Option<Duration>) -> Result<(), Error> {
        if self.rules.limit.is_zero() {
            return Err(error);
        }
        self.tries += 1;
        let after = self.began.elapsed();
        let left = self.rules.limit.saturating_sub(after);
        let last = |error| Box::new(error);
        // Zero is as if it were not said: taken at its word it would make for thousands of tries.
        let asked = asked.filter(|asked| !asked.is_zero());
        if let Some(asked) = asked.filter(|asked| *asked > left) {
            return Err(Error::AskedToWait { asked, left, last: last(error) });
        }
        let wait = asked.unwrap_or_else(|| jittered(&self.rules.wait));
        if wait >= left {
            return Err(Error::GaveUp { after, tries: self.tries, last: last(error) });
        }
        if let Some(listener) = &self.rules.listener {
            listener(&Retry { error: &error, wait });
        }
        tokio::time::sleep(wait).await;
        Ok(())
    }
}

/// A time within the range, another for each caller: clients that failed together must not come back together.
fn jittered(range: &RangeInclusive<Duration>) -> Duration {
    let spread = range.end().saturating_sub(*range.start());
    *range.start() + spread.mul_f64(fastrand::f64())
}
