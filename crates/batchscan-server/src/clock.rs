//! The time. Passed in, so that tests can set it.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use batchscan_model::UtcInstant;

/// A source of the current time.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> UtcInstant + Send + Sync>);

impl Clock {
    /// The system clock.
    pub fn system() -> Self {
        Self::from_fn(|| {
            let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let micros = i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX);
            UtcInstant::from_micros(micros).unwrap_or(UtcInstant::EPOCH)
        })
    }

    /// A clock that calls `now`.
    pub fn from_fn(now: impl Fn() -> UtcInstant + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The current time.
    pub fn now(&self) -> UtcInstant {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").field(&self.now()).finish()
    }
}
