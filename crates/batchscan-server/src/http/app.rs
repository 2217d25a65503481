//! What all handlers share.

use std::collections::HashMap;
use std::net::IpAddr;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use batchscan_model::{ClientId, UtcInstant};
use batchscan_store::{ChangesPosition, KeyPurpose, RateLimit, ServiceKey, Store, StoreError, WrongSecrets};
use tokio::time::Instant;

use super::cache::PageCache;
use super::error::ApiError;
use super::organisations::Organisations;
use super::static_files::StaticFile;
use super::waiting::Waiting;
use crate::auth::{KeyRing, NoKeys, in_use_first};
use crate::budget::Budget;
use crate::cipher::Cipher;
use crate::clock::Clock;
use crate::config::Config;
use crate::cursor::Cursor;
use crate::metrics::Metrics;
use crate::slots::{ImportQueue, Slots};
use crate::spool::Spool;

/// Between two reads of the keys: forged tokens cause reads, too.
const KEYS_READ_INTERVAL: Duration = Duration::from_millis(100);

/// Exports to a temporary file at the same time. Bounds the memory and the CPU time of writers.
const EXPORTS_MAX: usize = 4;

/// The parts of the service. Clones share them.
#[derive(Clone, Debug)]
pub struct App(Arc<AppParts>);

impl Deref for App {
    type Target = AppParts;

    fn deref(&self) -> &AppParts {
        &self.0
    }
}

/// The parts of the service.
#[derive(Debug)]
pub struct AppParts {
    pub(crate) store: Store,
    pub(crate) config: Config,
    pub(crate) clock: Clock,
    pub(crate) metrics: Arc<Metrics>,
    /// Changes when an operator rotates keys.
    keys: RwLock<Arc<Keys>>,
    keys_refreshed: tokio::sync::Mutex<Option<(Instant, Result<(), StoreError>)>>,
    /// Pages of v2.
    pub(super) cache: Arc<PageCache>,
    /// Limits each credential, if the operator configured it.
    rate_limit: Option<RateLimit<ClientId>>,
    wrong_secrets: WrongSecrets,
    /// For the log and the metrics.
    pub(super) organisations: Organisations,
    /// Limits the memory of responses.
    pub(crate) budget: Budget,
    /// Limits exports that need a temporary file.
    pub(super) exports: Slots,
    /// Limits imports by the operator API.
    pub(crate) imports: ImportQueue,
    /// The temporary files of both.
    pub(crate) spool: Spool,
    /// The OpenAPI document, built on the first request.
    pub(super) openapi: OnceLock<StaticFile>,
    /// Last uses of credentials that are not in the store yet.
    uses: Mutex<HashMap<ClientId, UtcInstant>>,
    /// Last tries of credentials that had ended, not in the store yet.
    rejections: Mutex<HashMap<ClientId, UtcInstant>>,
    /// Requests that wait for changes.
    pub(super) waiting: Waiting,
    draining: AtomicBool,
    failure_draws: AtomicU64,
}

/// The service's keys.
#[derive(Debug)]
pub(crate) struct Keys {
    /// Sign and verify tokens, hash secrets.
    pub(crate) ring: KeyRing,
    /// Encrypts and decrypts cursors.
    pub(super) cursors: Cipher<Cursor>,
    /// Encrypts and decrypts positions in the changes, with the key that is never rotated: a position stays valid.
    pub(super) changes: Cipher<ChangesPosition>,
}

/// Why the service cannot start.
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
    /// Loads the keys, which are generated on the first start.
    pub async fn new(store: Store, config: Config, clock: Clock) -> Result<Self, StartError> {
        let keys = Keys::new(&store.keys(clock.now()).await?, clock.now())?;
        Ok(Self(Arc::new(AppParts {
            keys: RwLock::new(Arc::new(keys)),
            keys_refreshed: tokio::sync::Mutex::default(),
            cache: Arc::new(PageCache::new(config.cache_bytes)),
            metrics: Arc::default(),
            rate_limit: config.rate_limit.map(RateLimit::new),
            wrong_secrets: WrongSecrets::default(),
            organisations: Organisations::default(),
            budget: Budget::new(config.response_bytes_max),
            exports: Slots::new(EXPORTS_MAX),
            imports: ImportQueue::default(),
            spool: Spool::new(config.temp_dir.clone(), config.temp_reserve_bytes),
            openapi: OnceLock::new(),
            uses: Mutex::default(),
            rejections: Mutex::default(),
            waiting: Waiting::default(),
            draining: AtomicBool::new(false),
            failure_draws: AtomicU64::new(0),
            store,
            config,
            clock,
        })))
    }
}

impl AppParts {
    /// The current keys.
    pub(crate) fn keys(&self) -> Arc<Keys> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the keys from the store: an operator may have rotated them. On errors the old keys stay in use. One read is
    /// for all who waited for it.
    pub(crate) async fn refresh_keys(&self) -> Result<(), StoreError> {
        let called_at = Instant::now();
        let mut last = self.keys_refreshed.lock().await;
        if let Some((read_at, result)) = &*last {
            if *read_at >= called_at {
                return result.clone();
            }
            tokio::time::sleep_until(*read_at + KEYS_READ_INTERVAL).await;
        }
        let read_at = Instant::now();
        let result = self.read_keys().await;
        *last = Some((read_at, result.clone()));
        result
    }

    async fn read_keys(&self) -> Result<(), StoreError> {
        let now = self.clock.now();
        let keys = self.store.latest_keys(now).await?;
        let keys = Keys::new(&keys, now).map_err(|error| StoreError::Broken(error.to_string()))?;
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(keys);
        Ok(())
    }

    /// Reads the names of the organisations, for the log.
    pub(crate) async fn refresh_organisations(&self) -> Result<(), StoreError> {
        self.organisations.refresh(&self.store).await
    }

    /// Wakes requests that wait for changes, if there are some.
    pub(crate) async fn check_waiting(&self) -> Result<(), StoreError> {
        self.waiting.check(&self.store).await
    }

    /// Makes `/readyz` fail, so that load balancers send no new requests, and ends all waiting for changes.
    pub(crate) fn start_draining(&self) {
        self.draining.store(true, Ordering::Relaxed);
        self.waiting.stop();
    }

    pub(super) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Applies the rate limit of a credential.
    pub(super) fn check_rate(&self, client: &ClientId) -> Result<(), ApiError> {
        let checked = self.rate_limit.as_ref().map_or(Ok(()), |limit| limit.check(client));
        checked.map_err(ApiError::TooManyRequests)
    }

    /// Counts a wrong secret, and slows down whoever guesses.
    pub(crate) async fn count_wrong_secret(
        &self,
        client: Option<&ClientId>,
        address: Option<IpAddr>,
    ) -> Result<(), ApiError> {
        self.wrong_secrets.count(client, address).await.map_err(ApiError::TooManyRequests)
    }

    /// Notes the use of a credential for the next [`AppParts::flush_uses`].
    pub(crate) fn note_use(&self, client: ClientId, now: UtcInstant) {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner).insert(client, now);
    }

    /// The same for the try of a credential that has ended.
    pub(crate) fn note_rejection(&self, client: ClientId, now: UtcInstant) {
        self.rejections.lock().unwrap_or_else(PoisonError::into_inner).insert(client, now);
    }

    /// Writes the last uses of credentials to the store. No response depends on it.
    pub(crate) async fn flush_uses(&self) {
        let tries = std::mem::take(&mut *self.rejections.lock().unwrap_or_else(PoisonError::into_inner));
        if let Err(error) = self.store.record_rejections(tries.into_iter().collect()).await {
            tracing::warn!(%error, "cannot record which credentials were rejected");
        }
        let uses = std::mem::take(&mut *self.uses.lock().unwrap_or_else(PoisonError::into_inner));
        if uses.is_empty() {
            return;
        }
        if let Err(error) = self.store.record_uses(uses.clone().into_iter().collect()).await {
            tracing::warn!(%error, "cannot record when credentials were last used");
            // For the next try. Uses noted in the meantime are later and stay.
            let mut noted = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
            for (client, at) in uses {
                noted.entry(client).or_insert(at);
            }
        }
    }

    /// Whether to fail this request on purpose ([`Config::fail_rate`]).
    pub(super) fn draw_failure(&self) -> bool {
        let rate = self.config.fail_rate;
        if rate <= 0.0 {
            return false;
        }
        // Multiples of the golden ratio are spread evenly over the unit interval.
        let draw = self.failure_draws.fetch_add(1, Ordering::Relaxed);
        let point = draw.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 11;
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
        let point = point as f64 / (1u64 << 53) as f64;
        point < rate
    }
}

impl Keys {
    fn new(keys: &[ServiceKey], now: UtcInstant) -> Result<Self, NoKeys> {
        let ring = KeyRing::new(keys, now)?;
        let unrotated = in_use_first(keys, KeyPurpose::Secret, now);
        Ok(Self { cursors: Cipher::new(&ring.cursor), changes: Cipher::new(&unrotated), ring })
    }
}
