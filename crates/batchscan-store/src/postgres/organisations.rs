//! Organisations, for the operator.

use batchscan_model::{OrgId, UtcInstant};
use deadpool_postgres::{ClientWrapper, Transaction};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Error, Row};

use super::PostgresStore;
use crate::{AdminError, DataVersion, Freshness, OrgName, Organisation, StoreError};

const ORGANISATION: &str = "
    SELECT id, name, created_at, version, version_mark,
           (SELECT count(*) FROM batch b WHERE b.org_id = o.id),
           (SELECT count(*) FROM credential c WHERE c.org_id = o.id AND c.revoked_at IS NULL)
    FROM organisation o";

impl PostgresStore {
    pub(crate) async fn add_org(&self, name: &OrgName, now: UtcInstant) -> Result<Organisation, AdminError> {
        self.change(async |add| {
            let insert = "INSERT INTO organisation (name, created_at) VALUES ($1, $2) ON CONFLICT DO NOTHING";
            let params: [(&(dyn ToSql + Sync), Type); 2] =
                [(&name.as_str(), Type::TEXT), (&now.micros(), Type::INT8)];
            if add.execute_typed(insert, &params).await? == 0 {
                return Err(AdminError::OrgExists(name.as_str().into()));
            }
            find(add, name.as_str()).await
        })
        .await
    }

    pub(crate) async fn has_orgs(&self) -> Result<bool, StoreError> {
        self.read(Freshness::Any, async |client: &ClientWrapper| {
            let any = client.query_typed_one("SELECT EXISTS (SELECT 1 FROM organisation)", &[]).await?;
            Ok(any.try_get(0)?)
        })
        .await
    }

    pub(crate) async fn orgs(&self) -> Result<Vec<Organisation>, AdminError> {
        self.look(async |read| {
            let rows = read.query_typed(&format!("{ORGANISATION} ORDER BY name"), &[]).await?;
            rows.iter().map(organisation).collect()
        })
        .await
    }

    pub(crate) async fn org(&self, name: &str) -> Result<Organisation, AdminError> {
        self.look(async |read| find(read, name).await).await
    }

    pub(crate) async fn rename_org(&self, name: &str, to: &OrgName) -> Result<(), AdminError> {
        self.change(async |rename| {
            let org = lock_org(rename, name).await?;
            let change = "UPDATE organisation SET name = $2 WHERE id = $1";
            let renamed =
                rename.execute_typed(change, &[(&org.0, Type::INT8), (&to.as_str(), Type::TEXT)]).await;
            renamed.map_err(|error| match error.code() {
                Some(code) if *code == SqlState::UNIQUE_VIOLATION => {
                    AdminError::OrgExists(to.as_str().into())
                }
                _ => error.into(),
            })?;
            Ok(())
        })
        .await
    }

    pub(crate) async fn remove_org(&self, name: &str) -> Result<(), AdminError> {
        self.change(async |removal| {
            let org = lock_org(removal, name).await?;
            remove(removal, org).await
        })
        .await
    }
}

/// Removes an organisation with all that is its own.
pub(super) async fn remove(removal: &Transaction<'_>, org: OrgId) -> Result<(), AdminError> {
    for part in [
        "DELETE FROM batch WHERE org_id = $1",
        "DELETE FROM moved_batch WHERE org_id = $1",
        "DELETE FROM organisation WHERE id = $1",
    ] {
        removal.execute_typed(part, &[(&org.0, Type::INT8)]).await?;
    }
    Ok(())
}

/// The number of the organisation of that name. Whoever else wants to change it waits until this transaction ends.
pub(super) async fn lock_org(change: &Transaction<'_>, name: &str) -> Result<OrgId, AdminError> {
    let find = "SELECT id FROM organisation WHERE name = $1 FOR UPDATE";
    let row = change.query_typed_opt(find, &[(&name, Type::TEXT)]).await?;
    let row = row.ok_or_else(|| AdminError::NoSuchOrg(name.to_owned()))?;
    Ok(OrgId(row.try_get(0)?))
}

/// The number of the organisation of that name.
pub(super) async fn org_id(read: &Transaction<'_>, name: &str) -> Result<OrgId, AdminError> {
    let find = "SELECT id FROM organisation WHERE name = $1";
    let row = read.query_typed_opt(find, &[(&name, Type::TEXT)]).await?;
    let row = row.ok_or_else(|| AdminError::NoSuchOrg(name.to_owned()))?;
    Ok(OrgId(row.try_get(0)?))
}

async fn find(read: &Transaction<'_>, name: &str) -> Result<Organisation, AdminError> {
    let one = format!("{ORGANISATION} WHERE name = $1");
    match read.query_typed_opt(&one, &[(&name, Type::TEXT)]).await? {
        Some(row) => organisation(&row),
        None => Err(AdminError::NoSuchOrg(name.to_owned())),
    }
}

fn organisation(row: &Row) -> Result<Organisation, AdminError> {
    Ok(Organisation {
        id: OrgId(row.try_get(0)?),
        name: row.try_get(1)?,
        created_at: instant(row, 2)?,
        version: DataVersion { number: row.try_get(3)?, mark: row.try_get(4)? },
        batches: count(row, 5)?,
        credentials: count(row, 6)?,
    })
}

/// A column that holds an instant.
pub(super) fn instant(row: &Row, column: usize) -> Result<UtcInstant, StoreError> {
    maybe_instant(row, column)?.ok_or_else(|| unsound("an instant is missing"))
}

/// A column that holds an instant or nothing.
pub(super) fn maybe_instant(row: &Row, column: usize) -> Result<Option<UtcInstant>, StoreError> {
    let micros: Option<i64> = row.try_get(column).map_err(|error: Error| unsound(&error.to_string()))?;
    let instant =
        |micros| UtcInstant::from_micros(micros).ok_or_else(|| unsound("an instant is out of range"));
    micros.map(instant).transpose()
}

/// A column that holds a count.
pub(super) fn count(row: &Row, column: usize) -> Result<u64, AdminError> {
    let count: i64 = row.try_get(column)?;
    Ok(u64::try_from(count).map_err(|_| unsound("a count is negative"))?)
}

fn unsound(what: &str) -> StoreError {
    StoreError::Broken(what.into())
}
