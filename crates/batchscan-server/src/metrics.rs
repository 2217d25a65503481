//! Prometheus metrics. Knows nothing about HTTP.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry};

use batchscan_model::UtcInstant;
use batchscan_store::HostHealth;

/// Upper bounds of the latency buckets in seconds: from a cached page to a long stream.
const LATENCY_BUCKETS: [f64; 13] =
    [0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 5.0, 30.0, 120.0];

/// Log lines dropped because standard error was blocked or closed. The log has no other connection to the service.
pub static LOG_LINES_DROPPED: LazyLock<Counter> = LazyLock::new(Counter::default);

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

/// Label of a database host or an organisation.
type NameLabel = [(&'static str, String); 1];

/// The numbers of an organisation.
#[derive(Clone, Debug)]
pub struct OrgNumbers {
    /// Its name.
    pub name: String,
    /// How many batches it has.
    pub batches: Option<u64>,
    /// When an import last changed its batches.
    pub imported_at: Option<UtcInstant>,
    /// When a client last read its batches from this process.
    pub read_at: Option<UtcInstant>,
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
    organisations: OrgMetrics,
    encoding: Mutex<()>,
    /// Open connections.
    pub connections: Gauge,
    /// Connections rejected because too many were open.
    pub connections_refused: Counter<u64, AtomicU64>,
}

/// All metrics at zero.
impl Default for Metrics {
    fn default() -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(LATENCY_BUCKETS);
        let latency = Family::new_with_constructor(histogram);
        let refused = "Connections rejected because too many were open";
        let all = &mut Registry::with_prefix("batchscan");
        let dropped = "Log lines dropped because standard error was blocked or closed";
        let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        all.register("build", "Version of the program", version);
        all.register("log_lines_dropped", dropped, LOG_LINES_DROPPED.clone());
        all.register("request_seconds", "Time to the last byte of the response, by route", latency.clone());
        let metrics = Self {
            database: DatabaseMetrics::new(all),
            organisations: OrgMetrics::new(all),
            encoding: Mutex::default(),
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
}

impl Metrics {
    /// The OpenMetrics text, with these numbers of the organisations; without them, with the last ones.
    pub fn text(&self, organisations: Option<&[OrgNumbers]>) -> String {
        // Another request must not see the metrics while they are replaced.
        let _alone = self.encoding.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(all) = organisations {
            self.organisations.replace(all);
        }
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

/// Converts OpenMetrics to the older text format of Prometheus. There, a metric has the name of its samples, and there
/// is no type `info`.
pub(crate) fn to_prometheus_text(openmetrics: &str) -> String {
    let (mut text, mut help) = (String::with_capacity(openmetrics.len()), "");
    for line in openmetrics.lines() {
        if let Some(name_and_help) = line.strip_prefix("# HELP ") {
            help = name_and_help.split_once(' ').map_or("", |(_, help)| help);
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|line| line.split_once(' '))
        {
            let (suffix, kind) = match kind {
                "counter" => ("_total", kind),
                "info" => ("_info", "gauge"),
                _ => ("", kind),
            };
            // Writing to a String cannot fail.
            let _ = write!(text, "# HELP {name}{suffix} {help}\n# TYPE {name}{suffix} {kind}\n");
        } else if line != "# EOF" {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
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
    up: Family<NameLabel, Gauge>,
    is_primary: Family<NameLabel, Gauge>,
    lag_secs: Family<NameLabel, Gauge<f64, AtomicU64>>,
    connections: Family<NameLabel, Gauge>,
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
        // Concurrent scrapes must not count a retry twice.
        self.retries.inner().fetch_max(retries, Ordering::Relaxed);
    }
}

/// Metrics of the organisations.
#[derive(Debug)]
struct OrgMetrics {
    batches: Family<NameLabel, Gauge>,
    imported_at: Family<NameLabel, Gauge>,
    read_at: Family<NameLabel, Gauge>,
}

impl OrgMetrics {
    fn new(all: &mut Registry) -> Self {
        let import = "When an import last changed the organisation's batches";
        let read = "When a client last read the organisation's batches from this node";
        Self {
            batches: add(all, "organisation_batches", "Batches of the organisation"),
            imported_at: add(all, "organisation_last_import_timestamp_seconds", import),
            read_at: add(all, "organisation_last_read_timestamp_seconds", read),
        }
    }

    /// Removed and renamed organisations disappear.
    fn replace(&self, all: &[OrgNumbers]) {
        for family in [&self.batches, &self.imported_at, &self.read_at] {
            family.clear();
        }
        for org in all {
            let label = [("organisation", org.name.clone())];
            let batches = org.batches.map(|batches| i64::try_from(batches).unwrap_or(i64::MAX));
            let secs = |at: Option<UtcInstant>| at.map(UtcInstant::secs);
            for (family, value) in [
                (&self.batches, batches),
                (&self.imported_at, secs(org.imported_at)),
                (&self.read_at, secs(org.read_at)),
            ] {
                if let Some(value) = value {
                    family.get_or_create(&label).set(value);
                }
            }
        }
    }
}
