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
        migrations!($database, 1 "schema")
    };
}

pub(crate) const SQLITE: &[Migration] = migrations!("sqlite");
pub(crate) const POSTGRES: &[Migration] = migrations!("postgres");

/// The version of an existing history table.
pub(crate) const CURRENT_VERSION: &str =
    "SELECT CAST(coalesce(max(version), 0) AS BIGINT) FROM schema_history";

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upgrade_applies_what_is_missing_and_keeps_the_data() {
        let database = rusqlite::Connection::open_in_memory().unwrap();
        database.execute_batch(&script(SQLITE, 0).unwrap().unwrap()).unwrap();
        database.execute_batch("INSERT INTO organisation (name, created_at) VALUES ('a', 1)").unwrap();
        let first = Migration { version: 1, name: "schema", sql: "this is not applied again" };
        let second =
            Migration { version: 2, name: "next", sql: "ALTER TABLE organisation ADD COLUMN city TEXT;" };
        let next = [first, second];
        database.execute_batch(&script(&next, 1).unwrap().unwrap()).unwrap();
        let organisations = "SELECT count(*) FROM organisation WHERE name = 'a' AND city IS NULL";
        let count = |query: &str| database.query_row(query, [], |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!((count(organisations), count(CURRENT_VERSION)), (1, 2));
        assert!(script(&next, 2).unwrap().is_none());
        assert!(matches!(script(SQLITE, 2), Err(OpenError::NewerSchema { found: 2, known: 1 })));
    }
}
