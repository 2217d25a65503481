//! The configuration of a PostgreSQL server.

use std::fmt;

const DEFAULTS: &[(&str, &str)] = &[
    // Processes are killed here, not machines: what a process has written is safe without fsync.
    ("fsync", "off"),
    ("full_page_writes", "off"),
    ("max_connections", "200"),
    ("listen_addresses", "127.0.0.1"),
    // Every server can become a primary or a standby.
    ("wal_level", "replica"),
    ("hot_standby", "on"),
    ("wal_log_hints", "on"),
    ("wal_keep_size", "512MB"),
    // How often a standby tries to reach its primary; the default is 5 s.
    ("wal_retrieve_retry_interval", "100ms"),
    // In the data folder; in /dev/shm it would stay after a SIGKILL.
    ("dynamic_shared_memory_type", "mmap"),
    ("log_line_prefix", "%m [%p] %d %a "),
];

/// Settings of a server. The last value of a setting counts. `ALTER SYSTEM` can change them later.
#[derive(Debug, Clone)]
pub struct Settings(Vec<(String, String)>);

impl Settings {
    /// Adds a setting: `with("max_connections", "20")`.
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
    fn later_settings_come_last_and_values_are_quoted() {
        let text = Settings::default().with("fsync", "on").with("cluster_name", "it's").to_string();
        assert!(text.starts_with("fsync = 'off'\n"), "{text}");
        assert!(text.ends_with("fsync = 'on'\ncluster_name = 'it''s'\n"), "{text}");
    }
}
