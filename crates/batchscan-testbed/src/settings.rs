//! What stands in a PostgreSQL server's configuration. Knows the names of no more settings than the defaults.

use std::fmt;

/// We kill processes, not machines: what a process has written is safe without fsync.
const DEFAULTS: &[(&str, &str)] = &[
    ("fsync", "off"),
    ("full_page_writes", "off"),
    ("max_connections", "200"),
    ("listen_addresses", "127.0.0.1"),
    // Every server can become a primary, a standby, or the base of one.
    ("wal_level", "replica"),
    ("hot_standby", "on"),
    ("wal_log_hints", "on"),
    ("wal_keep_size", "512MB"),
    // A standby looks for its primary this often; the default of 5 s is for machines far apart.
    ("wal_retrieve_retry_interval", "100ms"),
    // In the data folder, which goes with the server; in /dev/shm it would stay after a SIGKILL.
    ("dynamic_shared_memory_type", "mmap"),
    ("log_line_prefix", "%m [%p] %d %a "),
];

/// The settings of a server; those given last win. `ALTER SYSTEM` can still change them while it runs.
#[derive(Debug, Clone)]
pub struct Settings(Vec<(String, String)>);

impl Settings {
    /// The same with one more, as in `with("max_connections", "20")`.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.0.push((name.to_owned(), value.to_owned()));
        self
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self(DEFAULTS.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }
}

/// The text of the configuration file.
impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(name, value)| writeln!(f, "{name} = '{}'", value.replace('\'', "''")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_last_stands_last_and_is_quoted() {
        let text = Settings::default().with("fsync", "on").with("cluster_name", "it's").to_string();
        assert!(text.starts_with("fsync = 'off'\n"), "{text}");
        assert!(text.ends_with("fsync = 'on'\ncluster_name = 'it''s'\n"), "{text}");
    }
}
