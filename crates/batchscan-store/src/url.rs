//! Parses the `--database` URL. Opens nothing.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::platform::sqlite_path;
use crate::postgres::{PostgresUrl, PostgresUrlError};

/// Which database to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatabaseUrl {
    /// `sqlite:PATH`.
    Sqlite(PathBuf),
    /// `postgres://…`.
    Postgres(Box<PostgresUrl>),
}

/// An invalid database URL. Does not repeat the text, which may contain a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DatabaseUrlError {
    /// Neither of the two forms.
    #[error(
        "not a database URL: write sqlite:PATH, such as sqlite:batchscan.db, or postgres://USER@HOST:PORT/DATABASE"
    )]
    Form,
    /// An invalid PostgreSQL URL.
    #[error("not a PostgreSQL URL: {0}")]
    Postgres(#[from] PostgresUrlError),
}

impl FromStr for DatabaseUrl {
    type Err = DatabaseUrlError;

    fn from_str(text: &str) -> Result<Self, DatabaseUrlError> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Self::Postgres(Box::new(text.parse()?)));
        }
        let path = text.strip_prefix("sqlite:").ok_or(DatabaseUrlError::Form)?;
        // Other tools write sqlite:///abs/path and sqlite://path.
        let path = path.strip_prefix("//").map_or(path, sqlite_path);
        // SQLite's own URLs have parameters that could override our settings.
        if path.is_empty() || path.contains('\0') || path.starts_with("file:") || path.contains("://") {
            return Err(DatabaseUrlError::Form);
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
    fn a_sqlite_url_is_a_path_after_the_scheme() {
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
            assert_eq!(bad.parse::<DatabaseUrl>(), Err(DatabaseUrlError::Form), "{bad}");
        }
    }
}
