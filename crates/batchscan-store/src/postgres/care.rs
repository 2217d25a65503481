//! Examination: that every stored batch is what it should be. PostgreSQL looks after its own structures.

use std::pin::pin;

use deadpool_postgres::Transaction;
use futures_util::TryStreamExt;
use tokio_postgres::types::Type;

use super::organisations::count;
use super::{PostgresStore, schema};
use crate::examine::{BATCHES_PER_STEP, StoredBatch};
use crate::{AdminError, Examination, Progress};

impl PostgresStore {
    pub(crate) async fn examine(&self, progress: Progress) -> Result<Examination, AdminError> {
        // One snapshot for all that follows, so that a writer beside us makes no false alarm.
        self.look(async |snapshot| {
            let schema = schema::version(snapshot.client()).await?;
            let mut report = Examination { schema, ..Examination::default() };
            examine_all(snapshot, &mut report, &progress).await?;
            Ok(report)
        })
        .await
    }
}

async fn examine_all(
    snapshot: &Transaction<'_>,
    report: &mut Examination,
    progress: &Progress,
) -> Result<(), AdminError> {
    let counts = "SELECT (SELECT count(*) FROM batch), (SELECT count(*) FROM organisation),
        (SELECT count(*) FROM batch b WHERE NOT EXISTS (SELECT 1 FROM organisation o WHERE o.id = b.org_id)),
        (SELECT count(*) FROM batch b JOIN organisation o ON o.id = b.org_id WHERE b.version > o.version)";
    let counts = snapshot.query_typed_one(counts, &[]).await?;
    let total = count(&counts, 0)?;
    report.orgs = count(&counts, 1)?;
    report.note_strays(counts.try_get(2)?, counts.try_get(3)?);
    progress(0, total);
    let all = "SELECT coalesce(o.name, 'organisation ' || b.org_id), b.created_at, b.batch_id, b.json
               FROM batch b LEFT JOIN organisation o ON o.id = b.org_id";
    let nothing: [(&str, Type); 0] = [];
    let mut rows = pin!(snapshot.query_typed_raw(all, nothing).await?);
    while let Some(row) = rows.try_next().await? {
        let (org, id, json) = (row.try_get(0)?, row.try_get(2)?, row.try_get(3)?);
        if !report.look_at(&StoredBatch { org, created_at: row.try_get(1)?, id, json }) {
            break;
        }
        if report.batches.is_multiple_of(BATCHES_PER_STEP) {
            progress(report.batches, total);
        }
    }
    Ok(())
}
