//! Doctor: checks every stored batch, and repairs versions. PostgreSQL checks its own structures.

use std::pin::pin;

use batchscan_model::UtcInstant;
use deadpool_postgres::Transaction;
use futures_util::TryStreamExt;
use tokio_postgres::types::Type;

use super::changes::set_version;
use super::rows::params;
use super::schema;
use super::store::PostgresStore;
use crate::audit::Change;
use crate::doctor::{
    BATCHES_PER_STEP, DELETE_WITHOUT_ORG, DoctorReport, MARK_BATCHES, MARK_MOVED, ORG_VERSIONS, OrgVersions,
    RECORD_VERSION, UNUSED_VERSION, WITHOUT_ORG, deleted_without_org,
};
use crate::errors::AdminError;
use crate::page::DataVersion;
use crate::rows::{count, org_versions};
use crate::types::Progress;

impl PostgresStore {
    pub(crate) async fn doctor(&self, progress: Progress) -> Result<DoctorReport, AdminError> {
        // One snapshot, so that a concurrent write does not cause a false finding.
        self.read_slowly(async |snapshot| {
            let schema = schema::version(snapshot.client()).await?;
            let mut report = DoctorReport { schema, ..DoctorReport::default() };
            check_all(snapshot, &mut report, &progress).await?;
            Ok(report)
        })
        .await
    }

    /// Returns what was repaired.
    pub(crate) async fn repair(&self, now: UtcInstant) -> Result<Vec<Change>, AdminError> {
        self.change_audited(now, async |transaction| {
            let repairs = repair(transaction, now).await?;
            Ok((repairs.clone(), repairs))
        })
        .await
    }
}

async fn repair(transaction: &Transaction<'_>, now: UtcInstant) -> Result<Vec<Change>, AdminError> {
    // As for every change of their batches.
    transaction.batch_execute("SELECT FROM organisation ORDER BY id FOR UPDATE").await?;
    let without_org = count(&transaction.query_typed_one(WITHOUT_ORG, &[]).await?, 0)?;
    for delete in DELETE_WITHOUT_ORG {
        transaction.execute_typed(delete, &[]).await?;
    }
    let mut repairs = Vec::from_iter(deleted_without_org(without_org));
    for row in transaction.query_typed(ORG_VERSIONS, &[]).await? {
        let org = org_versions(&row)?;
        if !org.is_consistent() {
            repairs.push(repair_org(transaction, &org, now).await?);
        }
    }
    Ok(repairs)
}

async fn repair_org(
    transaction: &Transaction<'_>,
    org: &OrgVersions,
    now: UtcInstant,
) -> Result<Change, AdminError> {
    let OrgVersions { id, version: DataVersion { number, mark }, .. } = org;
    let unused = transaction.query_typed_one(UNUSED_VERSION, &params![INT8: id.0]).await?;
    let version: i64 = unused.try_get(0)?;
    let current = params![INT8: id.0, INT8: number, INT8: mark, INT8: now.micros()];
    transaction.execute_typed(RECORD_VERSION, &current).await?;
    let newer = params![INT8: version, INT8: id.0, INT8: number];
    let marked = transaction.execute_typed(MARK_BATCHES, &newer).await?;
    transaction.execute_typed(MARK_MOVED, &newer).await?;
    set_version(transaction, *id, version, true, now).await?;
    Ok(org.repaired(0, marked))
}

async fn check_all(
    snapshot: &Transaction<'_>,
    report: &mut DoctorReport,
    progress: &Progress,
) -> Result<(), AdminError> {
    let total = count(&snapshot.query_typed_one("SELECT count(*) FROM batch", &[]).await?, 0)?;
    report.add_without_org(count(&snapshot.query_typed_one(WITHOUT_ORG, &[]).await?, 0)?);
    for row in snapshot.query_typed(ORG_VERSIONS, &[]).await? {
        report.orgs += 1;
        report.check_versions(&org_versions(&row)?);
    }
    progress(0, total);
    let all = "SELECT coalesce(o.name, 'organisation ' || b.org_id), b.created_at, b.batch_id, b.json
               FROM batch b LEFT JOIN organisation o ON o.id = b.org_id";
    let nothing: [(&str, Type); 0] = [];
    let mut rows = pin!(snapshot.query_typed_raw(all, nothing).await?);
    while let Some(row) = rows.try_next().await? {
        if !report.check_batch(row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?) {
            break;
        }
        if report.batches.is_multiple_of(BATCHES_PER_STEP) {
            progress(report.batches, total);
        }
    }
    Ok(())
}
