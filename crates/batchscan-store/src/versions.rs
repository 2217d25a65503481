//! The versions of an organisation's batches: every change creates one, in the same transaction.

use batchscan_model::{BatchId, OrgId, UtcInstant};

use crate::blocks;
use crate::change::Change;
use crate::errors::{AdminError, StoreError};
use crate::keys::random_mark;
use crate::organisations::lock_org;
use crate::sql::{Sql, values};
use crate::store::Store;

/// How many versions of an organisation's batches are kept, so that their clients can continue: two years with a change
/// every minute, in at most 100 MB.
const VERSIONS_MAX: i64 = 1_000_000;

const RECORD_VERSION: &str =
    "INSERT INTO data_version (org_id, version, mark, created_at) VALUES ($1, $2, $3, $4)";
const INCONSISTENT: &str = "the organisation's version was used before: run `batchscan doctor --repair`";
pub(crate) const RECORD_TOMBSTONE: &str = "
    INSERT INTO batch_tombstone (org_id, batch_id, version) VALUES ($1, $2, $3)
    ON CONFLICT (org_id, batch_id) DO UPDATE SET version = excluded.version";
/// The last version before a time that has removals. Versions that were deleted are older than the others.
const OLD_REMOVALS: &str = "
    SELECT max(version) FROM batch_tombstone m
    WHERE org_id = $1
      AND version <= coalesce((SELECT max(version) FROM data_version WHERE org_id = $1 AND created_at < $2),
                              (SELECT min(version) - 1 FROM data_version WHERE org_id = $1))
      AND NOT EXISTS (SELECT 1 FROM batch b WHERE b.org_id = m.org_id AND b.batch_id = m.batch_id)";
/// Deletes the removals up to a version.
const PRUNE_REMOVALS: &str = "
    DELETE FROM batch_tombstone WHERE org_id = $1 AND version <= $2
    AND NOT EXISTS (SELECT 1 FROM batch b
                    WHERE b.org_id = batch_tombstone.org_id AND b.batch_id = batch_tombstone.batch_id)";

impl Store {
    /// Removes batches: all of them, or none if one does not exist. Forgets removals before a time: clients that have
    /// not seen those have to read everything again.
    pub async fn remove_batches(
        &self,
        org: &str,
        ids: Vec<BatchId>,
        prune_before: UtcInstant,
        now: UtcInstant,
    ) -> Result<(), AdminError> {
        let name = org.to_owned();
        self.change(now, async move |sql| {
            let org = lock_org(sql, &name).await?;
            remove(sql, org, &ids, now).await?;
            prune(sql, org, prune_before).await?;
            let removed =
                |id: &BatchId| Change { org: Some(name.clone()), ..Change::new("batch remove", id.as_str()) };
            Ok(((), ids.iter().map(removed).collect()))
        })
        .await
    }
}

/// Removes batches. They count as moved, so that paging does not return them twice if they are imported again.
async fn remove(sql: &mut dyn Sql, org: OrgId, ids: &[BatchId], now: UtcInstant) -> Result<(), AdminError> {
    let version = next_version(sql, org).await?;
    let (mut low, mut high) = (i64::MAX, i64::MIN);
    let delete = "DELETE FROM batch WHERE org_id = $1 AND batch_id = $2 RETURNING created_at";
    for id in ids {
        let created = sql.integer(delete, values![org, id]).await?;
        let created = created.ok_or_else(|| AdminError::BatchNotFound(id.as_str().to_owned()))?;
        (low, high) = (low.min(created), high.max(created));
        sql.execute(blocks::DELETE_AT, values![org, created, id]).await?;
        sql.execute(RECORD_TOMBSTONE, values![org, id, version]).await?;
    }
    set_version(sql, org, version, Some((low, high)), now).await
}

/// Deletes removals of versions before a time, and the versions whose clients would miss them.
async fn prune(sql: &mut dyn Sql, org: OrgId, before: UtcInstant) -> Result<(), AdminError> {
    let Some(version) = sql.integer(OLD_REMOVALS, values![org, before]).await? else { return Ok(()) };
    sql.execute(PRUNE_REMOVALS, values![org, version]).await?;
    let set_pruned = "UPDATE organisation SET pruned_version = $1 WHERE id = $2";
    sql.execute(set_pruned, values![version, org]).await?;
    prune_versions(sql, org, version - 1).await
}

/// The version that the next change of the batches creates.
pub(crate) async fn next_version(sql: &mut dyn Sql, org: OrgId) -> Result<i64, AdminError> {
    let next = sql.integer("SELECT version + 1 FROM organisation WHERE id = $1", values![org]).await?;
    next.ok_or(AdminError::Aborted)
}

/// Stores a new version of the organisation's batches, after all its changes, and compresses those. `moved` are
/// the lowest and the highest creation time from which a batch moved or was removed.
pub(crate) async fn set_version(
    sql: &mut dyn Sql,
    org: OrgId,
    version: i64,
    moved: Option<(i64, i64)>,
    now: UtcInstant,
) -> Result<(), AdminError> {
    let mark = random_mark()?;
    let update = "UPDATE organisation SET version = $2, version_mark = $3 WHERE id = $1";
    sql.execute(update, values![org, version, mark]).await?;
    if moved.is_some() {
        let update = "UPDATE organisation SET moved_version = version WHERE id = $1";
        sql.execute(update, values![org]).await?;
    }
    match sql.execute(RECORD_VERSION, values![org, version, mark, now]).await {
        Err(AdminError::Duplicate(_)) => return Err(StoreError::Broken(INCONSISTENT.into()).into()),
        recorded => recorded?,
    };
    prune_versions(sql, org, version - VERSIONS_MAX).await?;
    blocks::update(sql, org, version, moved).await
}

/// Adds a version that clients can continue from, unless it is there.
pub(crate) async fn record_version(
    sql: &mut dyn Sql,
    org: OrgId,
    version: i64,
    mark: i64,
    now: UtcInstant,
) -> Result<(), AdminError> {
    let record = format!("{RECORD_VERSION} ON CONFLICT DO NOTHING");
    sql.execute(&record, values![org, version, mark, now]).await.map(drop)
}

async fn prune_versions(sql: &mut dyn Sql, org: OrgId, last: i64) -> Result<(), AdminError> {
    let delete = "DELETE FROM data_version WHERE org_id = $1 AND version <= $2";
    sql.execute(delete, values![org, last]).await.map(drop)
}
