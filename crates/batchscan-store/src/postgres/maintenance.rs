//! Doctor: checks every stored batch. PostgreSQL checks its own structures.

use std::pin::pin;

use deadpool_postgres::Transaction;
use futures_util::TryStreamExt;
use tokio_postgres::types::Type;

use super::schema;
use super::store::PostgresStore;
use crate::doctor::{BATCHES_PER_STEP, DoctorReport};
use crate::errors::AdminError;
use crate::rows::count;
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
}

async fn check_all(
    snapshot: &Transaction<'_>,
    report: &mut DoctorReport,
    progress: &Progress,
) -> Result<(), AdminError> {
    let counts = "SELECT (SELECT count(*) FROM batch), (SELECT count(*) FROM organisation),
        (SELECT count(*) FROM batch b WHERE NOT EXISTS (SELECT 1 FROM organisation o WHERE o.id = b.org_id)),
        (SELECT count(*) FROM batch b JOIN organisation o ON o.id = b.org_id WHERE b.version > o.version)";
    let counts = snapshot.query_typed_one(counts, &[]).await?;
    let total = count(&counts, 0)?;
    report.orgs = count(&counts, 1)?;
    report.add_counts(counts.try_get(2)?, counts.try_get(3)?);
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
