//! Organisations, for the operator.

use batchscan_model::{OrgId, UtcInstant};
use deadpool_postgres::Transaction;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Error, Row};

use super::{PostgresStore, commit};
use crate::store::{AdminError, DataVersion, Freshness, OrgName, Organisation, StoreError};

const ORGANISATION: &str = "
    SELECT id, name, created_at, version, version_mark,
           (SELECT count(*) FROM batch b WHERE b.org_id = o.id),
           (SELECT count(*) FROM credential c WHERE c.org_id = o.id AND c.revoked_at IS NULL)
    FROM organisation o";

impl PostgresStore {
    pub(in crate::store) async fn add_org(
        &self,
        name: &OrgName,
        now: UtcInstant,
    ) -> Result<Organisation, AdminError> {
        let mut lease = self.primary().await?;
        let add = lease.begin().await?;
        let insert = "INSERT INTO organisation (name, created_at) VALUES ($1, $2) ON CONFLICT DO NOTHING";
        let params: [(&(dyn ToSql + Sync), Type); 2] =
            [(&name.as_str(), Type::TEXT), (&now.micros(), Type::INT8)];
        if add.execute_typed(insert, &params).await? == 0 {
            return Err(AdminError::OrgExists(name.as_str().into()));
        }
        let added = find(&add, name.as_str()).await?;
        commit(add).await?;
        lease.end();
        Ok(added)
    }

    pub(in crate::store) async fn has_orgs(&self) -> Result<bool, StoreError> {
        let mut route = self.hosts.route(Freshness::Any);
        loop {
            let lease = route.next().await?;
            let any = "SELECT EXISTS (SELECT 1 FROM organisation)";
            let asked = async { Ok(lease.query_typed_one(any, &[]).await?.try_get(0)?) };
            let outcome = lease.during(asked).await;
            if let Some(any) = route.settle(lease, outcome)? {
                return Ok(any);
            }
        }
    }

    pub(in crate::store) async fn orgs(&self) -> Result<Vec<Organisation>, AdminError> {
        let mut lease = self.primary().await?;
        let read = lease.begin().await?;
        let rows = read.query_typed(&format!("{ORGANISATION} ORDER BY name"), &[]).await?;
        let orgs = rows.iter().map(organisation).collect::<Result<_, _>>()?;
        read.rollback().await?;
        lease.end();
        Ok(orgs)
    }

    pub(in crate::store) async fn org(&self, name: &str) -> Result<Organisation, AdminError> {
        let mut lease = self.primary().await?;
        let read = lease.begin().await?;
        let org = find(&read, name).await?;
        read.rollback().await?;
        lease.end();
        Ok(org)
    }

    pub(in crate::store) async fn rename_org(&self, name: &str, to: &OrgName) -> Result<(), AdminError> {
        let mut lease = self.primary().await?;
        let rename = lease.begin().await?;
        let org = lock_org(&rename, name).await?;
        let change = "UPDATE organisation SET name = $2 WHERE id = $1";
        let renamed = rename.execute_typed(change, &[(&org.0, Type::INT8), (&to.as_str(), Type::TEXT)]).await;
        renamed.map_err(|error| match error.code() {
            Some(code) if *code == SqlState::UNIQUE_VIOLATION => AdminError::OrgExists(to.as_str().into()),
            _ => error.into(),
        })?;
        commit(rename).await?;
        lease.end();
        Ok(())
    }

    pub(in crate::store) async fn remove_org(&self, name: &str) -> Result<(), AdminError> {
        let mut lease = self.primary().await?;
        let removal = lease.begin().await?;
        let org = lock_org(&removal, name).await?;
        for part in [
            "DELETE FROM batch WHERE org_id = $1",
            "DELETE FROM moved_batch WHERE org_id = $1",
            "DELETE FROM organisation WHERE id = $1",
        ] {
            removal.execute_typed(part, &[(&org.0, Type::INT8)]).await?;
        }
        commit(removal).await?;
        lease.end();
        Ok(())
    }
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
