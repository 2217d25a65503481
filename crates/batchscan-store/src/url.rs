//! The `--database` URL. Knows its forms, opens nothing.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::postgres::{BadPostgresUrl, PostgresUrl};

/// Which database to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatabaseUrl {
    /// `sqlite:PATH`.
    Sqlite(PathBuf),
    /// `postgres://…`.
    Postgres(Box<PostgresUrl>),
}

/// A text that is no database URL. Does not repeat it: it may hold a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadDatabaseUrl {
    /// Neither form.
    #[error(
        "not a database URL: write sqlite:PATH, such as sqlite:batchscan.db, or postgres://USER@HOST:PORT/DATABASE"
    )]
    Form,
    /// Nearly a PostgreSQL URL.
    #[error("not a PostgreSQL URL: {0}")]
    Postgres(#[from] BadPostgresUrl),
}

impl FromStr for DatabaseUrl {
    type Err = BadDatabaseUrl;

    fn from_str(text: &str) -> Result<Self, BadDatabaseUrl> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Self::Postgres(Box::new(text.parse()?)));
        }
        let path = text.strip_prefix("sqlite:").ok_or(BadDatabaseUrl::Form)?;
        // sqlite:///abs/path and sqlite://path are what other tools write for the same thing.
        let path = path.strip_prefix("//").unwrap_or(path);
        // SQLite has a URL form of its own, with parameters that would undo what is set here.
        if path.is_empty() || path.contains('\0') || path.starts_with("file:") || path.contains("://") {
            return Err(BadDatabaseUrl::Form);
        }
        Ok(Self::Sqlite(PathBuf::from(path)))
    }
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DatabaseUrl::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            DatabaseUrl::Postgres(url) => url.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::*;

    #[test]
    fn a_path_follows_the_scheme() {
        assert_eq!("sqlite:a.db".parse(), Ok(DatabaseUrl::Sqlite("a.db".into())));
        assert_eq!("sqlite:///var/a.db".parse(), Ok(DatabaseUrl::Sqlite("/var/a.db".into())));
        for bad in [
            "",
            "a.db",
            "sqlite:",
            "mysql://x/y",
            "sqlite:a\0b",
            "sqlite:file:a.db",
            "sqlite:postgres://a:pw@h/db",
        ] {
            assert_eq!(bad.parse::<DatabaseUrl>(), Err(BadDatabaseUrl::Form), "{bad}");
        }
    }
}
