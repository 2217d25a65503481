//! Organisations.

use batchscan_model::{OrgId, UtcInstant};
use deadpool_postgres::Transaction;
use tokio_postgres::error::SqlState;

use super::rows::params;
use super::store::{PostgresStore, on_any_host};
use crate::audit::Change;
use crate::errors::{AdminError, StoreError};
use crate::rows::{COUNT_BATCHES, ORG_OVERVIEWS, ORGANISATIONS, count, org_overview, organisation};
use crate::types::{Freshness, OrgName, OrgOverview, Organisation};

impl PostgresStore {
    pub(crate) async fn add_org(&self, name: &OrgName, now: UtcInstant) -> Result<Organisation, AdminError> {
        self.change_audited(now, async |transaction| {
            let insert = "INSERT INTO organisation (name, created_at) VALUES ($1, $2) ON CONFLICT DO NOTHING";
            if transaction.execute_typed(insert, &params![TEXT: name.as_str(), INT8: now.micros()]).await?
                == 0
            {
                return Err(AdminError::OrgExists(name.as_str().into()));
            }
            let added = find(transaction, name.as_str()).await?;
            Ok((added, vec![Change::of_org("org add", name.as_str())]))
        })
        .await
    }

    pub(crate) async fn org_id(&self, name: &str) -> Result<OrgId, AdminError> {
        self.read_slowly(async |snapshot| org_id(snapshot, name).await).await
    }

    pub(crate) async fn orgs(&self) -> Result<Vec<Organisation>, AdminError> {
        self.read_slowly(async |snapshot| {
            let rows = snapshot.query_typed(&format!("{ORGANISATIONS} ORDER BY name"), &[]).await?;
            Ok(rows.iter().map(organisation).collect::<Result<_, _>>()?)
        })
        .await
    }

    pub(crate) async fn org_overviews(&self) -> Result<Vec<OrgOverview>, StoreError> {
        let rows = on_any_host!(self, Freshness::Any, |client| async {
            Ok(client.query_typed(ORG_OVERVIEWS, &[]).await?)
        });
        rows.iter().map(org_overview).collect()
    }

    pub(crate) async fn count_batches(&self, org: OrgId) -> Result<u64, StoreError> {
        let row = on_any_host!(self, Freshness::Any, |client| async {
            Ok(client.query_typed_one(COUNT_BATCHES, &params![INT8: org.0]).await?)
        });
        count(&row, 0)
    }

    pub(crate) async fn org(&self, name: &str) -> Result<Organisation, AdminError> {
        self.read_slowly(async |snapshot| find(snapshot, name).await).await
    }

    pub(crate) async fn rename_org(
        &self,
        name: &str,
        to: &OrgName,
        now: UtcInstant,
    ) -> Result<(), AdminError> {
        self.change_audited(now, async |transaction| {
            let org = lock_org(transaction, name).await?;
            let rename = "UPDATE organisation SET name = $2 WHERE id = $1";
            match transaction.execute_typed(rename, &params![INT8: org.0, TEXT: to.as_str()]).await {
                Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => {
                    Err(AdminError::OrgExists(to.as_str().into()))
                }
                renamed => {
                    renamed?;
                    let detail = format!("to {}", to.as_str());
                    Ok(((), vec![Change::of_org("org rename", name).detail(detail)]))
                }
            }
        })
        .await
    }

    pub(crate) async fn remove_org(&self, name: &str, now: UtcInstant) -> Result<(), AdminError> {
        self.change_audited(now, async |transaction| {
            let org = lock_org(transaction, name).await?;
            delete_org(transaction, org).await?;
            Ok(((), vec![Change::of_org("org remove", name)]))
        })
        .await
    }
}

/// Deletes an organisation with everything that belongs to it.
pub(super) async fn delete_org(transaction: &Transaction<'_>, org: OrgId) -> Result<(), AdminError> {
    for delete in [
        "DELETE FROM batch WHERE org_id = $1",
        "DELETE FROM moved_batch WHERE org_id = $1",
        "DELETE FROM data_version WHERE org_id = $1",
        "DELETE FROM organisation WHERE id = $1",
    ] {
        transaction.execute_typed(delete, &params![INT8: org.0]).await?;
    }
    Ok(())
}

/// The number of the organisation with this name, locked until the end of the transaction.
pub(super) async fn lock_org(transaction: &Transaction<'_>, name: &str) -> Result<OrgId, AdminError> {
    find_id(transaction, "SELECT id FROM organisation WHERE name = $1 FOR UPDATE", name).await
}

pub(super) async fn org_id(transaction: &Transaction<'_>, name: &str) -> Result<OrgId, AdminError> {
    find_id(transaction, "SELECT id FROM organisation WHERE name = $1", name).await
}

async fn find_id(transaction: &Transaction<'_>, query: &str, name: &str) -> Result<OrgId, AdminError> {
    let row = transaction.query_typed_opt(query, &params![TEXT: name]).await?;
    let row = row.ok_or_else(|| AdminError::OrgNotFound(name.to_owned()))?;
    Ok(OrgId(row.try_get(0)?))
}

async fn find(transaction: &Transaction<'_>, name: &str) -> Result<Organisation, AdminError> {
    let query = format!("{ORGANISATIONS} WHERE name = $1");
    match transaction.query_typed_opt(&query, &params![TEXT: name]).await? {
        Some(row) => Ok(organisation(&row)?),
        None => Err(AdminError::OrgNotFound(name.to_owned())),
    }
}
