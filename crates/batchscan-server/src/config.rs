//! The settings of a service. Arguments and environment variables are parsed elsewhere.

use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use batchscan_model::UtcInstant;
pub use batchscan_store::Rate;

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
    /// JSON text of the batches of an XLSX or Parquet export, in bytes. Its temporary files have at most about twice that.
    pub spool_bytes_max: u64,
    /// Size of a file that the operator API imports, in bytes.
    pub import_bytes_max: u64,
    /// Where the temporary files of exports and imports are.
    pub temp_dir: PathBuf,
    /// Space that they leave free. By default a tenth of the disk, at most 1 GiB.
    pub temp_reserve_bytes: Option<u64>,
    /// Origins allowed by CORS (decision 030). `*` allows every origin.
    pub cors_origins: Vec<String>,
    /// Rate limit per credential (decision 033).
    pub rate_limit: Option<Rate>,
    /// When v1 ends (decision 038).
    pub v1_sunset: Option<UtcInstant>,
    /// Share of batch requests that fail with 503, from 0 to 1: for testing clients.
    pub fail_rate: f64,
    /// Whether `/metrics` is served on the public address too.
    pub metrics_in_public: bool,
    /// Proxies whose `X-Forwarded-For` is used.
    pub trusted_proxies: Vec<Network>,
    /// Whether there are pages for the analysis links of demo data.
    pub has_demo_reports: bool,
    /// Whether clients use HTTPS, here or at a proxy.
    pub is_https: bool,
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
            // 1.5 million batches.
            spool_bytes_max: 1024 * 1024 * 1024,
            // The same as JSON.
            import_bytes_max: 1024 * 1024 * 1024,
            temp_dir: std::env::temp_dir(),
            temp_reserve_bytes: None,
            cors_origins: Vec::new(),
            rate_limit: None,
            v1_sunset: None,
            fail_rate: 0.0,
            metrics_in_public: true,
            trusted_proxies: Vec::new(),
            has_demo_reports: false,
            is_https: false,
            public_url: None,
        }
    }
}

/// The addresses with the same first bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u32,
}

impl Network {
    /// Whether an address is in the network.
    pub fn contains(self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(a), IpAddr::V4(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros() >= self.bits,
            (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros() >= self.bits,
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = String;

    /// Parses `10.0.0.5` or `10.0.0.0/8`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (address, bits) = text.split_once('/').unwrap_or((text, ""));
        let address: IpAddr =
            address.parse().map_err(|_| "expected an address such as 10.0.0.5 or 10.0.0.0/8")?;
        let all = if address.is_ipv4() { 32 } else { 128 };
        let bits = if text.contains('/') { bits.parse().ok().filter(|bits| *bits <= all) } else { Some(all) };
        let bits = bits.ok_or_else(|| format!("expected at most {all} bits after the slash"))?;
        Ok(Self { address, bits })
    }
}

/// The files of a TLS listener.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// Certificate chain in PEM format.
    pub cert: PathBuf,
    /// Private key in PEM format.
    pub key: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_contains_the_addresses_with_its_first_bits() {
        for (network, address, is_inside) in [
            ("10.0.0.5", "10.0.0.5", true),
            ("10.0.0.5", "10.0.0.6", false),
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("10.0.0.0/8", "::ffff:10.1.1.1", true),
            ("0.0.0.0/0", "1.2.3.4", true),
            ("fd00::/8", "fd12::1", true),
            ("fd00::/8", "10.0.0.1", false),
        ] {
            let network: Network = network.parse().unwrap();
            assert_eq!(network.contains(address.parse().unwrap()), is_inside, "{network:?} {address}");
        }
        for wrong in ["", "proxy", "10.0.0.0/33", "10.0.0.0/x", "10.0.0.0/"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }
}
