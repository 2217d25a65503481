//! The numbered migrations of both databases. The stores apply them; here is what to apply.

use crate::errors::OpenError;

/// One step of the schema.
#[derive(Debug)]
pub(crate) struct Migration {
    version: i32,
    name: &'static str,
    sql: &'static str,
}

/// The migrations of a database, which have the same numbers and names in both.
macro_rules! migrations {
    ($database:literal, $($version:literal $name:literal),+) => {
        &[$(Migration {
            version: $version,
            name: $name,
            sql: include_str!(concat!("../migrations/", $database, "/V", $version, "__", $name, ".sql")),
        }),+]
    };
    ($database:literal) => {
        migrations!($database, 1 "schema", 2 "sessions", 3 "imported_at", 4 "changes", 5 "audit", 6 "imports")
    };
}

pub(crate) const SQLITE: &[Migration] = migrations!("sqlite");
pub(crate) const POSTGRES: &[Migration] = migrations!("postgres");

/// The version of an existing history table.
pub(crate) const CURRENT_VERSION: &str = "SELECT coalesce(max(version), 0) FROM schema_history";

/// The SQL from schema `found` to the newest, with the history rows; `None` if the schema is current. The whole text
/// must run in one transaction.
pub(crate) fn script(migrations: &[Migration], found: i32) -> Result<Option<String>, OpenError> {
    let known = migrations.last().map_or(0, |last| last.version);
    if found > known {
        return Err(OpenError::NewerSchema { found, known });
    }
    if found == known {
        return Ok(None);
    }
    let mut script = String::from(
        "CREATE TABLE IF NOT EXISTS schema_history
             (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL);\n",
    );
    for Migration { version, name, sql } in migrations.iter().filter(|migration| migration.version > found) {
        script += sql;
        script += &format!("\nINSERT INTO schema_history VALUES ({version}, '{name}', CURRENT_TIMESTAMP);\n");
    }
    Ok(Some(script))
}
