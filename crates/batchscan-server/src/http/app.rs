//! What all handlers share.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use batchscan_model::{ClientId, UtcInstant};

use super::budget::Budget;
use super::cache::PageCache;
use super::published::Published;
use super::rate_limit::RateLimit;
use crate::auth::{KeyRing, NoKeys};
use crate::clock::Clock;
use crate::config::Config;
use crate::cursor::Sealer;
use crate::metrics::Metrics;
use batchscan_store::{ServiceKey, Store, StoreError};

/// The service's parts, shared by all requests.
#[derive(Debug)]
pub struct App {
    /// Where the batches are.
    pub(super) store: Store,
    /// Changes when an operator rotates keys.
    keys: RwLock<Arc<Keys>>,
    /// Pages that were sent before.
    pub(super) cache: Arc<PageCache>,
    /// What the operator set.
    pub(super) config: Config,
    /// What the operator sees.
    pub(crate) metrics: Arc<Metrics>,
    /// The time.
    pub(super) clock: Clock,
    /// Limits each credential, if the operator wants that.
    pub(super) rate_limit: Option<RateLimit>,
    /// What pages on their way to clients may hold.
    pub(super) budget: Budget,
    /// The OpenAPI document, once somebody has asked for it.
    pub(super) document: OnceLock<Published>,
    uses: Mutex<HashMap<ClientId, UtcInstant>>,
    draining: AtomicBool,
    failures_drawn: AtomicU64,
}

/// The service's keys, ready to use.
#[derive(Debug)]
pub(super) struct Keys {
    /// Sign and verify tokens, hash secrets.
    pub(super) ring: KeyRing,
    /// Seals and opens cursors.
    pub(super) sealer: Sealer,
}

/// Why the service could not be put together.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store has no keys.
    #[error(transparent)]
    Keys(#[from] NoKeys),
}

impl App {
    /// Puts the parts together; makes the service's keys at the first start.
    pub async fn new(store: Store, config: Config, clock: Clock) -> Result<Arc<Self>, StartError> {
        let keys = ready(&store.keys(clock.now()).await?, clock.now())?;
        Ok(Arc::new(Self {
            keys: RwLock::new(Arc::new(keys)),
            cache: Arc::new(PageCache::new(config.cache_bytes)),
            metrics: Arc::new(Metrics::new()),
            rate_limit: config.rate_limit.map(RateLimit::new),
            budget: Budget::default(),
            document: OnceLock::new(),
            uses: Mutex::default(),
            draining: AtomicBool::new(false),
            failures_drawn: AtomicU64::new(0),
            store,
            config,
            clock,
        }))
    }

    /// The keys as they are now.
    pub(super) fn keys(&self) -> Arc<Keys> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the keys again: an operator may have rotated them. What cannot be read leaves the old ones in use.
    pub async fn refresh_keys(&self) {
        let now = self.clock.now();
        let read = self.store.latest_keys(now).await.map_err(StartError::from);
        match read.and_then(|keys| Ok(ready(&keys, now)?)) {
            Ok(keys) => *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(keys),
            // Without a primary nobody can rotate them either.
            Err(error) => tracing::debug!(%error, "could not read the service's keys again"),
        }
    }

    /// Says from now on that it is not ready, so that a load balancer sends nothing new.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Notes that a credential got a token. It reaches the store with the next [`App::flush_uses`].
    pub(super) fn note_use(&self, client: ClientId, now: UtcInstant) {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner).insert(client, now);
    }

    /// Writes down which credentials were used. At best effort: no answer hangs on it.
    pub async fn flush_uses(&self) {
        let uses = std::mem::take(&mut *self.uses.lock().unwrap_or_else(PoisonError::into_inner));
        if uses.is_empty() {
            return;
        }
        if let Err(error) = self.store.record_uses(uses.clone().into_iter().collect()).await {
            tracing::warn!(%error, "could not record when credentials were last used");
            // The next flush tries again; what was noted meanwhile is later and stays.
            let mut noted = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
            for (client, at) in uses {
                noted.entry(client).or_insert(at);
            }
        }
    }

    /// Whether this request is to be failed on purpose: the share the operator asked for, spread evenly.
    pub(super) fn draws_failure(&self) -> bool {
        let rate = self.config.fail_rate;
        if rate <= 0.0 {
            return false;
        }
        // Multiples of the golden ratio visit the unit interval evenly and in no visible rhythm.
        let turn = self.failures_drawn.fetch_add(1, Ordering::Relaxed);
        let place = turn.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 11;
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
        let place = place as f64 / (1u64 << 53) as f64;
        place < rate
    }
}

fn ready(keys: &[ServiceKey], now: UtcInstant) -> Result<Keys, NoKeys> {
    let ring = KeyRing::new(keys, now)?;
    Ok(Keys { sealer: Sealer::new(&ring.cursor), ring })
}
