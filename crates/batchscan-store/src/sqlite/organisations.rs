//! Organisations.

use batchscan_model::{OrgId, UtcInstant};
use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::blocks;
use super::rows::query_all;
use super::store::SqliteStore;
use crate::audit::Change;
use crate::errors::{AdminError, StoreError};
use crate::rows::{COUNT_BATCHES, ORG_OVERVIEWS, ORGANISATIONS, count, org_overview, organisation};
use crate::types::{OrgName, OrgOverview, Organisation};

impl SqliteStore {
    pub(crate) async fn add_org(&self, name: &OrgName, now: UtcInstant) -> Result<Organisation, AdminError> {
        let name = name.as_str().to_owned();
        self.change_audited(now, move |transaction| {
            let insert = "INSERT INTO organisation (name, created_at) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
            if transaction.execute(insert, params![name, now.micros()])? == 0 {
                return Err(AdminError::OrgExists(name));
            }
            Ok((find(transaction, &name)?, vec![Change::of_org("org add", &name)]))
        })
        .await
    }

    pub(crate) async fn has_orgs(&self) -> Result<bool, StoreError> {
        let query = "SELECT EXISTS (SELECT 1 FROM organisation)";
        self.read(|connection| Ok(connection.query_row(query, [], |row| row.get(0))?)).await
    }

    pub(crate) async fn org_id(&self, name: &str) -> Result<OrgId, AdminError> {
        let name = name.to_owned();
        self.read_slowly(move |connection| org_id(connection, &name)).await
    }

    pub(crate) async fn orgs(&self) -> Result<Vec<Organisation>, AdminError> {
        self.read_slowly(|connection| {
            let mut all = connection.prepare(&format!("{ORGANISATIONS} ORDER BY name"))?;
            Ok(query_all(&mut all, [], |row| organisation(row))?)
        })
        .await
    }

    pub(crate) async fn org_overviews(&self) -> Result<Vec<OrgOverview>, StoreError> {
        self.read(|connection| {
            let mut all = connection.prepare_cached(ORG_OVERVIEWS)?;
            query_all(&mut all, [], |row| org_overview(row))
        })
        .await
    }

    pub(crate) async fn count_batches(&self, org: OrgId) -> Result<u64, StoreError> {
        self.read_for(org, move |connection| {
            let mut counted = connection.prepare_cached(COUNT_BATCHES)?;
            counted.query_one([org.0], |row| Ok(count(row, 0)))?
        })
        .await
    }

    pub(crate) async fn org(&self, name: &str) -> Result<Organisation, AdminError> {
        let name = name.to_owned();
        self.read_slowly(move |connection| find(connection, &name)).await
    }

    pub(crate) async fn rename_org(
        &self,
        name: &str,
        to: &OrgName,
        now: UtcInstant,
    ) -> Result<(), AdminError> {
        let (name, to) = (name.to_owned(), to.as_str().to_owned());
        self.change_audited(now, move |transaction| {
            let org = org_id(transaction, &name)?;
            if org_id(transaction, &to).is_ok_and(|other| other != org) {
                return Err(AdminError::OrgExists(to));
            }
            transaction.execute("UPDATE organisation SET name = ?2 WHERE id = ?1", params![org.0, to])?;
            Ok(((), vec![Change::of_org("org rename", &name).detail(format!("to {to}"))]))
        })
        .await
    }

    pub(crate) async fn remove_org(&self, name: &str, now: UtcInstant) -> Result<(), AdminError> {
        let name = name.to_owned();
        self.change_audited(now, move |transaction| {
            let org = org_id(transaction, &name)?;
            delete_org(transaction, org)?;
            Ok(((), vec![Change::of_org("org remove", &name)]))
        })
        .await
    }
}

/// Deletes an organisation with everything that belongs to it.
pub(super) fn delete_org(transaction: &Transaction<'_>, org: OrgId) -> Result<(), AdminError> {
    transaction.execute("DELETE FROM batch WHERE org_id = ?1", [org.0])?;
    transaction.execute("DELETE FROM moved_batch WHERE org_id = ?1", [org.0])?;
    transaction.execute("DELETE FROM data_version WHERE org_id = ?1", [org.0])?;
    blocks::delete_all(transaction, org)?;
    transaction.execute("DELETE FROM organisation WHERE id = ?1", [org.0])?;
    Ok(())
}

pub(super) fn org_id(connection: &Connection, name: &str) -> Result<OrgId, AdminError> {
    let find = "SELECT id FROM organisation WHERE name = ?1";
    let id = connection.query_row(find, [name], |row| row.get(0).map(OrgId)).optional()?;
    id.ok_or_else(|| AdminError::OrgNotFound(name.to_owned()))
}

fn find(connection: &Connection, name: &str) -> Result<Organisation, AdminError> {
    let mut find = connection.prepare(&format!("{ORGANISATIONS} WHERE name = ?1"))?;
    let found = query_all(&mut find, [name], |row| organisation(row))?;
    found.into_iter().next().ok_or_else(|| AdminError::OrgNotFound(name.to_owned()))
}
