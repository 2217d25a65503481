//! Organisations, for the operator.

use batchscan_model::{OrgId, UtcInstant};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{SqliteStore, packs};
use crate::{AdminError, DataVersion, OrgName, Organisation, StoreError};

const ORGANISATION: &str = "
    SELECT id, name, created_at, version, version_mark,
           (SELECT count(*) FROM batch b WHERE b.org_id = o.id),
           (SELECT count(*) FROM credential c WHERE c.org_id = o.id AND c.revoked_at IS NULL)
    FROM organisation o";

impl SqliteStore {
    pub(crate) async fn add_org(&self, name: &OrgName, now: UtcInstant) -> Result<Organisation, AdminError> {
        let name = name.as_str().to_owned();
        self.write(move |connection| {
            let insert = "INSERT INTO organisation (name, created_at) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
            if connection.execute(insert, params![name, now.micros()])? == 0 {
                return Err(AdminError::OrgExists(name));
            }
            find(connection, &name)
        })
        .await
    }

    pub(crate) async fn has_orgs(&self) -> Result<bool, StoreError> {
        self.read(|connection| {
            connection.query_row("SELECT EXISTS (SELECT 1 FROM organisation)", [], |row| row.get(0))
        })
        .await
    }

    pub(crate) async fn orgs(&self) -> Result<Vec<Organisation>, AdminError> {
        self.read_at_leisure(|connection| {
            let mut all = connection.prepare(&format!("{ORGANISATION} ORDER BY name"))?;
            let rows = all.query_map([], organisation)?;
            Ok(rows.collect::<rusqlite::Result<Vec<_>>>()?)
        })
        .await
    }

    pub(crate) async fn org(&self, name: &str) -> Result<Organisation, AdminError> {
        let name = name.to_owned();
        self.read_at_leisure(move |connection| find(connection, &name)).await
    }

    pub(crate) async fn rename_org(&self, name: &str, to: &OrgName) -> Result<(), AdminError> {
        let (name, to) = (name.to_owned(), to.as_str().to_owned());
        self.write(move |connection| {
            let rename = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            let org = org_id(&rename, &name)?;
            if org_id(&rename, &to).is_ok_and(|other| other != org) {
                return Err(AdminError::OrgExists(to));
            }
            rename.execute("UPDATE organisation SET name = ?2 WHERE id = ?1", params![org.0, to])?;
            Ok(rename.commit()?)
        })
        .await
    }

    pub(crate) async fn remove_org(&self, name: &str) -> Result<(), AdminError> {
        let name = name.to_owned();
        self.write(move |connection| {
            let removal = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            let org = org_id(&removal, &name)?;
            removal.execute("DELETE FROM batch WHERE org_id = ?1", [org.0])?;
            removal.execute("DELETE FROM moved_batch WHERE org_id = ?1", [org.0])?;
            packs::drop_all(&removal, org)?;
            removal.execute("DELETE FROM organisation WHERE id = ?1", [org.0])?;
            Ok(removal.commit()?)
        })
        .await
    }
}

/// The number of the organisation of that name.
pub(super) fn org_id(connection: &Connection, name: &str) -> Result<OrgId, AdminError> {
    let find = "SELECT id FROM organisation WHERE name = ?1";
    let id = connection.query_row(find, [name], |row| row.get(0).map(OrgId)).optional()?;
    id.ok_or_else(|| AdminError::NoSuchOrg(name.to_owned()))
}

fn find(connection: &Connection, name: &str) -> Result<Organisation, AdminError> {
    let one = format!("{ORGANISATION} WHERE name = ?1");
    let org = connection.query_row(&one, [name], organisation).optional()?;
    org.ok_or_else(|| AdminError::NoSuchOrg(name.to_owned()))
}

fn organisation(row: &Row<'_>) -> rusqlite::Result<Organisation> {
    Ok(Organisation {
        id: OrgId(row.get(0)?),
        name: row.get(1)?,
        created_at: instant(row, 2)?,
        version: DataVersion { number: row.get(3)?, mark: row.get(4)? },
        batches: count(row, 5)?,
        credentials: count(row, 6)?,
    })
}

/// A column that holds an instant.
pub(super) fn instant(row: &Row<'_>, column: usize) -> rusqlite::Result<UtcInstant> {
    let micros: i64 = row.get(column)?;
    UtcInstant::from_micros(micros).ok_or(rusqlite::Error::IntegralValueOutOfRange(column, micros))
}

/// A column that holds an instant or nothing.
pub(super) fn maybe_instant(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<UtcInstant>> {
    row.get::<_, Option<i64>>(column)?.map(|_| instant(row, column)).transpose()
}

fn count(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let count: i64 = row.get(column)?;
    u64::try_from(count).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, count))
}
