//! The settings of a service. Arguments and environment variables are parsed elsewhere.

use std::path::PathBuf;
use std::time::Duration;

use batchscan_model::UtcInstant;

/// How the service handles requests.
#[derive(Clone, Debug)]
pub struct Config {
    /// Lifetime of a token in seconds (decision 008).
    pub token_ttl_secs: i64,
    /// Batches on a page of v2 (decision 019).
    pub page_rows: usize,
    /// Size of the page cache in bytes.
    pub cache_bytes: u64,
    /// Memory for pages and v1 streams that are cached or being sent, in bytes. Requests beyond it get a 503.
    pub response_bytes_max: usize,
    /// Origins allowed by CORS (decision 030). `*` allows every origin.
    pub cors_origins: Vec<String>,
    /// Rate limit per credential (decision 033).
    pub rate_limit: Option<Rate>,
    /// When v1 ends (decision 038).
    pub v1_sunset: Option<UtcInstant>,
    /// Share of batch requests that fail with 503, from 0 to 1: for testing clients.
    pub fail_rate: f64,
    /// Whether `/metrics` is a public route. Not if there is a separate address for operators.
    pub metrics_in_public: bool,
    /// The URL that clients use, without a trailing slash (decision 046).
    pub public_url: Option<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            token_ttl_secs: 3_600,
            page_rows: 1_000,
            cache_bytes: 64 * 1024 * 1024,
            // Several hundred pages, or a thousand streams.
            response_bytes_max: 512 * 1024 * 1024,
            cors_origins: Vec::new(),
            rate_limit: None,
            v1_sunset: None,
            fail_rate: 0.0,
            metrics_in_public: true,
            public_url: None,
        }
    }
}

/// A rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Number of requests.
    pub requests: u32,
    /// In this time.
    pub per: Duration,
}

/// The files of a TLS listener.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// Certificate chain in PEM format.
    pub cert: PathBuf,
    /// Private key in PEM format.
    pub key: PathBuf,
}
