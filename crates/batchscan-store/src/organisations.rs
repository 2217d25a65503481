//! Organisations.

use std::sync::Arc;

use batchscan_model::printable::is_invisible;
use batchscan_model::{BatchId, OrgId, UtcInstant};

use crate::change::Change;
use crate::errors::{AdminError, StoreError};
use crate::page::{DataVersion, OrgState};
use crate::sql::{Columns, Sql, values};
use crate::store::Store;
use crate::types::Freshness;

/// An organisation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Organisation {
    /// Its number.
    pub id: OrgId,
    /// Its name.
    pub name: String,
    /// When it was added.
    pub created_at: UtcInstant,
    /// The state of its batches.
    pub version: DataVersion,
    /// How many batches it has.
    pub batches: u64,
    /// How many credentials it has that are not revoked.
    pub credentials: u64,
    /// The zone of times without one in its files.
    pub timezone: Option<String>,
    /// Whether a mapping says how its files are read.
    pub has_mapping: bool,
}

/// An organisation without the numbers that have to be counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrgOverview {
    /// Its number.
    pub id: OrgId,
    /// Its name.
    pub name: Arc<str>,
    /// The state of its batches.
    pub version: DataVersion,
    /// When an import last changed its batches.
    pub imported_at: Option<UtcInstant>,
}

/// The maximum length of an organisation's name, so that it fits a table.
const ORG_NAME_CHARS_MAX: usize = 100;

/// An organisation's name: not empty, nothing invisible, no leading or trailing spaces, and one segment of a URL's path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrgName(String);

impl OrgName {
    /// Validates a name.
    pub fn new(text: &str) -> Option<Self> {
        let fits = !text.is_empty() && text.chars().count() <= ORG_NAME_CHARS_MAX && text.trim() == text;
        let is_allowed = !text.chars().any(|c| is_invisible(c) || c == '/') && !matches!(text, "." | "..");
        (fits && is_allowed).then(|| Self(text.to_owned()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

const ORGANISATIONS: &str = "
    SELECT id, name, created_at, version, version_mark,
           (SELECT count(*) FROM batch b WHERE b.org_id = o.id),
           (SELECT count(*) FROM credential c WHERE c.org_id = o.id AND c.role IS NULL AND c.revoked_at IS NULL),
           timezone, CAST(CASE WHEN mapping IS NULL THEN 0 ELSE 1 END AS bigint)
    FROM organisation o ";

/// The tables with rows of an organisation that are not deleted together with its row.
const DATA_TABLES: [&str; 4] = ["batch", "batch_tombstone", "data_version", "block"];

impl Store {
    /// `Ok` if the database responds.
    pub async fn ping(&self) -> Result<(), StoreError> {
        self.has_orgs().await.map(drop)
    }

    /// Whether there is an organisation.
    pub async fn has_orgs(&self) -> Result<bool, StoreError> {
        let found = self.read(Freshness::Any, "SELECT id FROM organisation LIMIT 1", &[], |_| Ok(())).await?;
        Ok(!found.is_empty())
    }

    /// Adds an organisation.
    pub async fn add_org(&self, name: &OrgName, now: UtcInstant) -> Result<Organisation, AdminError> {
        let name = name.as_str().to_owned();
        self.change(now, async move |sql| {
            let insert = "INSERT INTO organisation (name, created_at) VALUES ($1, $2) ON CONFLICT DO NOTHING";
            if sql.execute(insert, values![&name, now]).await? == 0 {
                return Err(AdminError::OrgExists(name));
            }
            Ok((find(sql, &name).await?, vec![Change::of_org("org add", &name)]))
        })
        .await
    }

    /// All organisations, by name.
    pub async fn orgs(&self) -> Result<Vec<Organisation>, AdminError> {
        self.snapshot(async |sql| all(sql).await).await
    }

    /// The organisation with this name.
    pub async fn org(&self, name: &str) -> Result<Organisation, AdminError> {
        let name = name.to_owned();
        self.snapshot(async move |sql| find(sql, &name).await).await
    }

    /// The id of an organisation.
    pub async fn org_id(&self, name: &str) -> Result<OrgId, AdminError> {
        let name = name.to_owned();
        self.snapshot(async move |sql| org_id(sql, &name).await).await
    }

    /// All organisations, without counting anything.
    pub async fn org_overviews(&self) -> Result<Vec<OrgOverview>, StoreError> {
        let overviews = "SELECT id, name, version, version_mark, imported_at FROM organisation";
        self.read(Freshness::Any, overviews, &[], org_overview).await
    }

    /// The states of several organisations, in any order, without those that do not exist. A standby may return an older
    /// one.
    pub async fn org_states(&self, orgs: Vec<OrgId>) -> Result<Vec<(OrgId, OrgState)>, StoreError> {
        let ids = orgs.iter().map(|org| org.0.to_string()).collect::<Vec<_>>().join(", ");
        let states = format!(
            "SELECT o.id, o.version, o.version_mark,
                    (SELECT count(*) FROM credential c WHERE c.org_id = o.id AND c.revoked_at IS NOT NULL)
             FROM organisation o WHERE o.id IN ({ids})"
        );
        self.read(Freshness::Any, &states, &[], org_state).await
    }

    /// How many batches an organisation has. Reads an index of all of them.
    pub async fn count_batches(&self, org: OrgId) -> Result<u64, StoreError> {
        let count = "SELECT count(*) FROM batch WHERE org_id = $1";
        let counted = self.read(Freshness::Any, count, values![org], |row| row.count(0)).await?;
        Ok(counted.into_iter().next().unwrap_or(0))
    }

    /// Batches of an organisation as JSON, for operators: no credential is needed.
    pub async fn batches_by_id(
        &self,
        org: OrgId,
        ids: Vec<BatchId>,
    ) -> Result<Vec<Option<String>>, AdminError> {
        let find = "SELECT json FROM batch WHERE org_id = $1 AND batch_id = $2";
        self.snapshot(async move |sql| {
            let mut found = Vec::with_capacity(ids.len());
            for id in &ids {
                found.push(sql.first(find, values![org, id], |row| row.string(0)).await?);
            }
            Ok(found)
        })
        .await
    }

    /// Renames an organisation.
    pub async fn rename_org(&self, name: &str, to: &OrgName, now: UtcInstant) -> Result<(), AdminError> {
        let (name, to) = (name.to_owned(), to.as_str().to_owned());
        self.change(now, async move |sql| {
            let org = lock_org(sql, &name).await?;
            let rename = "UPDATE organisation SET name = $2 WHERE id = $1";
            match sql.execute(rename, values![org, &to]).await {
                Err(AdminError::Duplicate(_)) => return Err(AdminError::OrgExists(to)),
                renamed => renamed?,
            };
            Ok(((), vec![Change::of_org("org rename", &name).detail(format!("to {to}"))]))
        })
        .await
    }

    /// Removes an organisation with its credentials and batches.
    pub async fn remove_org(&self, name: &str, now: UtcInstant) -> Result<(), AdminError> {
        let name = name.to_owned();
        self.change(now, async move |sql| {
            let org = lock_org(sql, &name).await?;
            delete_org(sql, org).await?;
            Ok(((), vec![Change::of_org("org remove", &name)]))
        })
        .await
    }
}

pub(crate) async fn all(sql: &mut dyn Sql) -> Result<Vec<Organisation>, AdminError> {
    sql.all(&format!("{ORGANISATIONS} ORDER BY name"), &[], organisation).await
}

/// Deletes an organisation with everything that belongs to it.
pub(crate) async fn delete_org(sql: &mut dyn Sql, org: OrgId) -> Result<(), AdminError> {
    for table in DATA_TABLES {
        sql.execute(&format!("DELETE FROM {table} WHERE org_id = $1"), values![org]).await?;
    }
    sql.execute("DELETE FROM organisation WHERE id = $1", values![org]).await.map(drop)
}

/// Deletes what is left of organisations that do not exist. Returns the number of batches.
pub(crate) async fn delete_without_org(sql: &mut dyn Sql) -> Result<u64, AdminError> {
    let mut batches = 0;
    for table in DATA_TABLES {
        let delete = format!(
            "DELETE FROM {table} WHERE NOT EXISTS (SELECT 1 FROM organisation o WHERE o.id = {table}.org_id)"
        );
        let deleted = sql.execute(&delete, &[]).await?;
        batches += if table == "batch" { deleted } else { 0 };
    }
    Ok(batches)
}

/// The number of the organisation with this name, locked until the end of the transaction.
pub(crate) async fn lock_org(sql: &mut dyn Sql, name: &str) -> Result<OrgId, AdminError> {
    let for_update = sql.dialect().for_update;
    find_id(sql, &format!("SELECT id FROM organisation WHERE name = $1 {for_update}"), name).await
}

/// The number of the organisation with this name, if one is given.
pub(crate) async fn find_org(sql: &mut dyn Sql, name: Option<&str>) -> Result<Option<OrgId>, AdminError> {
    match name {
        Some(name) => org_id(sql, name).await.map(Some),
        None => Ok(None),
    }
}

pub(crate) async fn org_id(sql: &mut dyn Sql, name: &str) -> Result<OrgId, AdminError> {
    find_id(sql, "SELECT id FROM organisation WHERE name = $1", name).await
}

async fn find_id(sql: &mut dyn Sql, query: &str, name: &str) -> Result<OrgId, AdminError> {
    let id = sql.integer(query, values![name]).await?;
    match id {
        Some(id) => Ok(OrgId(id)),
        None => Err(not_found(sql, name).await?),
    }
}

async fn find(sql: &mut dyn Sql, name: &str) -> Result<Organisation, AdminError> {
    let found = sql.first(&format!("{ORGANISATIONS} WHERE name = $1"), values![name], organisation).await?;
    match found {
        Some(found) => Ok(found),
        None => Err(not_found(sql, name).await?),
    }
}

/// The error for an unknown name, with the most similar one.
async fn not_found(sql: &mut dyn Sql, name: &str) -> Result<AdminError, AdminError> {
    const SIMILARITY_MIN: f64 = 0.8;
    let names = sql.all("SELECT name FROM organisation", &[], |row| row.string(0)).await?;
    let similarity = |other: &String| strsim::jaro_winkler(&name.to_lowercase(), &other.to_lowercase());
    let by_similarity = |a: &String, b: &String| similarity(a).total_cmp(&similarity(b));
    let similar = names.into_iter().max_by(by_similarity).filter(|found| similarity(found) >= SIMILARITY_MIN);
    Ok(AdminError::OrgNotFound { name: name.to_owned(), similar })
}

fn organisation(row: &dyn Columns) -> Result<Organisation, StoreError> {
    Ok(Organisation {
        id: row.org(0)?,
        name: row.string(1)?,
        created_at: row.instant(2)?,
        version: DataVersion { number: row.number(3)?, mark: row.number(4)? },
        batches: row.count(5)?,
        credentials: row.count(6)?,
        timezone: row.optional_string(7)?,
        has_mapping: row.count(8)? != 0,
    })
}

fn org_overview(row: &dyn Columns) -> Result<OrgOverview, StoreError> {
    Ok(OrgOverview {
        id: row.org(0)?,
        name: row.string(1)?.into(),
        version: DataVersion { number: row.number(2)?, mark: row.number(3)? },
        imported_at: row.optional_instant(4)?,
    })
}

fn org_state(row: &dyn Columns) -> Result<(OrgId, OrgState), StoreError> {
    let version = DataVersion { number: row.number(1)?, mark: row.number(2)? };
    Ok((row.org(0)?, OrgState { version, revoked: row.number(3)? }))
}
