//! Prometheus metrics. Knows nothing about HTTP.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use batchscan_store::HostHealth;

/// Upper bounds of the latency buckets in seconds: from a cached page to a long stream.
const LATENCY_BUCKETS: [f64; 13] =
    [0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 5.0, 30.0, 120.0];

/// Labels of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RequestLabels {
    /// The route's pattern, or `other`.
    pub route: Arc<str>,
    /// The status of the response.
    pub status: u16,
}

/// Label of a route.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RouteLabel {
    /// The route's pattern, or `other`.
    pub route: Arc<str>,
}

/// Label of a store error.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ErrorLabel {
    /// `unreachable` or `broken`.
    pub kind: &'static str,
}

/// Label of a database host.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct HostLabel {
    /// Name and port.
    pub host: String,
}

/// The metrics of the service.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    /// Handled requests.
    pub requests: Family<RequestLabels, Counter>,
    /// Time to the last byte of the response.
    pub latency: Family<RouteLabel, Histogram, fn() -> Histogram>,
    /// Bytes of response bodies.
    pub sent_bytes: Family<RouteLabel, Counter>,
    /// Pages found in the cache.
    pub cache_hits: Counter,
    /// Pages read from the store.
    pub cache_misses: Counter,
    /// Requests that failed because of the store.
    pub store_errors: Family<ErrorLabel, Counter>,
    /// Updated when the metrics are requested.
    database: DatabaseMetrics,
    /// Open connections.
    pub connections: Gauge,
    /// Connections rejected because too many were open.
    pub connections_refused: Counter<u64, AtomicU64>,
}

impl Metrics {
    /// All metrics at zero.
    pub fn new() -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(LATENCY_BUCKETS);
        let mut metrics = Self {
            registry: Registry::with_prefix("batchscan"),
            requests: Family::default(),
            latency: Family::new_with_constructor(histogram),
            sent_bytes: Family::default(),
            cache_hits: Counter::default(),
            cache_misses: Counter::default(),
            store_errors: Family::default(),
            database: DatabaseMetrics::default(),
            connections: Gauge::default(),
            connections_refused: Counter::default(),
        };
        // Present from the start, so that the first failure increases a series instead of adding one.
        for kind in ["unreachable", "broken"] {
            drop(metrics.store_errors.get_or_create(&ErrorLabel { kind }));
        }
        metrics.register();
        metrics
    }

    /// The OpenMetrics text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }

    /// Updates the metrics of the database hosts.
    pub fn update_database(&self, hosts: &[HostHealth], retries: u64) {
        self.database.update(hosts, retries);
    }

    fn register(&mut self) {
        let registry = &mut self.registry;
        self.database.register(registry);
        registry.register("requests", "Handled requests, by route and status", self.requests.clone());
        registry.register(
            "request_seconds",
            "Time to the last byte of the response, by route",
            self.latency.clone(),
        );
        registry.register("sent_bytes", "Bytes of response bodies, by route", self.sent_bytes.clone());
        registry.register("page_cache_hits", "Pages found in the cache", self.cache_hits.clone());
        registry.register("page_cache_misses", "Pages read from the store", self.cache_misses.clone());
        registry.register(
            "store_errors",
            "Requests that failed because of the database",
            self.store_errors.clone(),
        );
        registry.register("open_connections", "Open connections", self.connections.clone());
        registry.register(
            "refused_connections",
            "Connections rejected because too many were open",
            self.connections_refused.clone(),
        );
    }
}

/// Metrics of the hosts of PostgreSQL. None with SQLite.
#[derive(Debug, Default)]
struct DatabaseMetrics {
    up: Family<HostLabel, Gauge>,
    is_primary: Family<HostLabel, Gauge>,
    lag_secs: Family<HostLabel, Gauge<f64, AtomicU64>>,
    connections: Family<HostLabel, Gauge>,
    retries: Counter,
}

impl DatabaseMetrics {
    fn register(&self, registry: &mut Registry) {
        registry.register("database_up", "Whether the host is reachable", self.up.clone());
        registry.register("database_is_primary", "Whether the host is the primary", self.is_primary.clone());
        registry.register("database_lag_seconds", "Replication lag of a standby", self.lag_secs.clone());
        registry.register("database_connections", "Connections to the host in use", self.connections.clone());
        registry.register(
            "database_retries",
            "Reads retried on another host or connection",
            self.retries.clone(),
        );
    }

    fn update(&self, hosts: &[HostHealth], retries: u64) {
        for health in hosts {
            let label = HostLabel { host: health.host.clone() };
            self.up.get_or_create(&label).set(i64::from(health.is_up));
            self.is_primary.get_or_create(&label).set(i64::from(health.takes_writes));
            match health.lag_secs {
                Some(lag_secs) => drop(self.lag_secs.get_or_create(&label).set(lag_secs)),
                None => drop(self.lag_secs.remove(&label)),
            }
            let connections = i64::try_from(health.connections).unwrap_or(i64::MAX);
            self.connections.get_or_create(&label).set(connections);
        }
        self.retries.inc_by(retries.saturating_sub(self.retries.get()));
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}
