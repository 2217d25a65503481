//! Prometheus metrics. Knows nothing about HTTP.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};

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
type HostLabel = [(&'static str, String); 1];

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
        let latency = Family::new_with_constructor(histogram);
        let refused = "Connections rejected because too many were open";
        let all = &mut Registry::with_prefix("batchscan");
        all.register("request_seconds", "Time to the last byte of the response, by route", latency.clone());
        let metrics = Self {
            database: DatabaseMetrics::new(all),
            requests: add(all, "requests", "Handled requests, by route and status"),
            latency,
            sent_bytes: add(all, "sent_bytes", "Bytes of response bodies, by route"),
            cache_hits: add(all, "page_cache_hits", "Pages found in the cache"),
            cache_misses: add(all, "page_cache_misses", "Pages read from the store"),
            store_errors: add(all, "store_errors", "Requests that failed because of the database"),
            connections: add(all, "open_connections", "Open connections"),
            connections_refused: add(all, "refused_connections", refused),
            registry: std::mem::take(all),
        };
        // Present from the start, so that the first failure increases a series instead of adding one.
        for kind in ["unreachable", "broken"] {
            drop(metrics.store_errors.get_or_create(&ErrorLabel { kind }));
        }
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
}

/// Registers a metric under its name.
fn add<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

/// Metrics of the hosts of PostgreSQL. None with SQLite.
#[derive(Debug)]
struct DatabaseMetrics {
    up: Family<HostLabel, Gauge>,
    is_primary: Family<HostLabel, Gauge>,
    lag_secs: Family<HostLabel, Gauge<f64, AtomicU64>>,
    connections: Family<HostLabel, Gauge>,
    retries: Counter,
}

impl DatabaseMetrics {
    fn new(all: &mut Registry) -> Self {
        let retries = "Reads retried on another host or connection";
        Self {
            up: add(all, "database_up", "Whether the host is reachable"),
            is_primary: add(all, "database_is_primary", "Whether the host is the primary"),
            lag_secs: add(all, "database_lag_seconds", "Replication lag of a standby"),
            connections: add(all, "database_connections", "Connections to the host in use"),
            retries: add(all, "database_retries", retries),
        }
    }

    fn update(&self, hosts: &[HostHealth], retries: u64) {
        for health in hosts {
            let label = [("host", health.host.clone())];
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
