//! The `--database` option.

use batchscan_store::DatabaseUrl;
use clap::Args;

/// The `--database` option of the commands that open a database.
#[derive(Debug, Args)]
pub(crate) struct DatabaseArg {
    /// Database: sqlite:PATH or postgres://USER@HOST:PORT,HOST:PORT/DATABASE
    #[arg(
        long,
        global = true,
        env = "BATCHSCAN_DATABASE",
        hide_env_values = true,
        value_name = "URL",
        default_value = "sqlite:batchscan.db"
    )]
    pub(crate) database: DatabaseText,
}

/// A database URL that is not parsed yet. clap would repeat an invalid value in its message, password included.
#[derive(Clone)]
pub(crate) struct DatabaseText(String);

impl DatabaseText {
    /// Parses the URL of an option. The error does not contain the value.
    pub(crate) fn parse(&self, option: &str) -> Result<DatabaseUrl, String> {
        self.0.parse().map_err(|error| format!("invalid value for '{option} <URL>': {error}"))
    }
}

impl From<&str> for DatabaseText {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl std::fmt::Debug for DatabaseText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DatabaseText")
    }
}
