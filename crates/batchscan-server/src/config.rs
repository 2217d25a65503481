//! What an operator can set, ready to use. Arguments and variables are read elsewhere.

use std::path::PathBuf;
use std::time::Duration;

use batchscan_model::UtcInstant;

/// How the service answers.
#[derive(Clone, Debug)]
pub struct Config {
    /// How long a token lives, in seconds (decision 008).
    pub token_ttl_secs: i64,
    /// Batches on a page of v2 (decision 019).
    pub page_rows: usize,
    /// What the page cache may hold, in bytes.
    pub cache_bytes: u64,
    /// Origins whose pages may read answers (decision 030). `*` names them all.
    pub cors_origins: Vec<String>,
    /// Requests a credential may make (decision 033).
    pub rate_limit: Option<Rate>,
    /// When v1 ends, if it does (decision 038).
    pub v1_sunset: Option<UtcInstant>,
    /// The share of batch requests answered with 503, for trying out clients: from 0 to 1.
    pub fail_rate: f64,
    /// Whether `/metrics` is served beside the interface. Not where operators have an address of their own.
    pub metrics_in_public: bool,
    /// The address clients use, without a slash at its end, if the operator named one (decision 046).
    pub public_url: Option<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            token_ttl_secs: 3_600,
            page_rows: 1_000,
            cache_bytes: 64 * 1024 * 1024,
            cors_origins: Vec::new(),
            rate_limit: None,
            v1_sunset: None,
            fail_rate: 0.0,
            metrics_in_public: true,
            public_url: None,
        }
    }
}

/// So many requests in so long a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// How many.
    pub requests: u32,
    /// In what time.
    pub per: Duration,
}

/// The certificate and key of a TLS listener.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The certificate chain, PEM.
    pub cert: PathBuf,
    /// The private key, PEM.
    pub key: PathBuf,
}
