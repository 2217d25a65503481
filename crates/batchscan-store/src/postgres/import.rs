//! An import: COPY into a stage while the file is still being read, then one merge, all in one transaction.

use std::pin::pin;

use deadpool_postgres::Transaction;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};

use super::organisations::{lock_org, org_id};
use super::{PostgresStore, commit};
use crate::keys::new_mark;
use crate::{AdminError, ImportCounts, ImportRows, ImportStep, StoreError};

/// A merge may take a minute, and the server would finish it for a process that was killed, and keep the next import
/// waiting. Servers before 14 and those on Windows cannot look whether somebody is still there.
const NOTICE_OUR_DEATH: &str = "
    DO $$ BEGIN PERFORM set_config('client_connection_check_interval', '500ms', true);
    EXCEPTION WHEN OTHERS THEN NULL; END $$";

const STAGE: &str = "
    CREATE TEMPORARY TABLE stage
        (line BIGINT, created_at BIGINT, batch_id TEXT COLLATE \"C\", json TEXT COLLATE \"C\") ON COMMIT DROP";
const STAGE_TYPES: [Type; 4] = [Type::INT8, Type::INT8, Type::TEXT, Type::TEXT];

/// Of batches with one id, the last stays (decision 040).
const DROP_REPEATED: &str = "
    DELETE FROM stage s
    USING (SELECT batch_id, max(line) AS line FROM stage GROUP BY batch_id HAVING count(*) > 1) AS last
    WHERE s.batch_id = last.batch_id AND s.line < last.line";
const DROP_UNCHANGED: &str = "
    DELETE FROM stage s USING batch b
    WHERE b.org_id = $1 AND b.batch_id = s.batch_id AND b.created_at = s.created_at AND b.json = s.json";
const NOTE_MOVED: &str = "
    INSERT INTO moved_batch (org_id, batch_id, version)
    SELECT $1, b.batch_id, $2 FROM stage s JOIN batch b ON b.org_id = $1 AND b.batch_id = s.batch_id
    WHERE b.created_at <> s.created_at
    ON CONFLICT (org_id, batch_id) DO UPDATE SET version = excluded.version";
const CORRECT: &str = "
    UPDATE batch b SET created_at = s.created_at, json = s.json, version = $2
    FROM stage s WHERE b.org_id = $1 AND b.batch_id = s.batch_id";
/// What was corrected is there already. In order, so that neighbours on a page are neighbours on the disk.
const ADD: &str = "
    INSERT INTO batch (org_id, created_at, batch_id, json, version)
    SELECT $1, created_at, batch_id, json, $2 FROM stage ORDER BY created_at, batch_id
    ON CONFLICT (org_id, batch_id) DO NOTHING";

impl PostgresStore {
    pub(crate) async fn import(&self, org: &str, mut rows: ImportRows) -> Result<ImportCounts, AdminError> {
        self.on_primary(async |lease| {
            let import = lease.begin().await?;
            import.batch_execute(NOTICE_OUR_DEATH).await?;
            // An unknown organisation is refused before a long file is read.
            let id = org_id(&import, org).await?;
            import.batch_execute(STAGE).await?;
            let keep = stage(&import, &mut rows).await?;
            // The name may have gone to another organisation meanwhile.
            if lock_org(&import, org).await? != id {
                return Err(AdminError::NoSuchOrg(org.to_owned()));
            }
            let counts = merge(&import, id.0).await?;
            // An import that changed nothing leaves no trace: pollers go on getting 304.
            if keep && counts.new + counts.corrected > 0 {
                commit(import).await?;
            } else {
                import.rollback().await?;
            }
            Ok(counts)
        })
        .await
        .map_err(|error| match error {
            AdminError::Store(StoreError::Unreachable(why)) => {
                StoreError::Unreachable(format!("{why}; nothing was imported: run it again")).into()
            }
            other => other,
        })
    }
}

/// Sends the rows as they come. Gives whether they are to be kept.
async fn stage(import: &Transaction<'_>, rows: &mut ImportRows) -> Result<bool, AdminError> {
    let sink = import.copy_in("COPY stage (line, created_at, batch_id, json) FROM STDIN (FORMAT binary)");
    let mut copy = pin!(BinaryCopyInWriter::new(sink.await?, &STAGE_TYPES));
    let mut line = 0i64;
    let keep = loop {
        match rows.recv().await {
            Some(ImportStep::Rows(rows)) => {
                for row in rows {
                    line += 1;
                    let (created, id) = (row.position.created.micros(), row.position.id.as_str());
                    copy.as_mut().write(&[&line, &created, &id, &row.json]).await?;
                }
            }
            Some(ImportStep::Commit) => break true,
            Some(ImportStep::DryRun) => break false,
            None => return Err(AdminError::Abandoned),
        }
    };
    copy.as_mut().finish().await?;
    Ok(keep)
}

/// Merges the stage into the batches of one organisation, and raises its version.
async fn merge(import: &Transaction<'_>, org: i64) -> Result<ImportCounts, AdminError> {
    import.batch_execute("ANALYZE stage").await?;
    let repeated = import.execute_typed(DROP_REPEATED, &[]).await?;
    let next = "SELECT version + 1 FROM organisation WHERE id = $1";
    let version: i64 = import.query_typed_one(next, &[(&org, Type::INT8)]).await?.try_get(0)?;
    let of_org: [(&(dyn ToSql + Sync), Type); 2] = [(&org, Type::INT8), (&version, Type::INT8)];
    let unchanged = import.execute_typed(DROP_UNCHANGED, &of_org[..1]).await?;
    let moved = import.execute_typed(NOTE_MOVED, &of_org).await?;
    let corrected = import.execute_typed(CORRECT, &of_org).await?;
    let new = import.execute_typed(ADD, &of_org).await?;
    let mark = new_mark()?;
    let raise = "UPDATE organisation SET version = $2, version_mark = $3,
                     moved_version = CASE WHEN $4 THEN $2 ELSE moved_version END WHERE id = $1";
    let params: [(&(dyn ToSql + Sync), Type); 4] =
        [(&org, Type::INT8), (&version, Type::INT8), (&mark, Type::INT8), (&(moved > 0), Type::BOOL)];
    import.execute_typed(raise, &params).await?;
    Ok(ImportCounts { new, corrected, unchanged, repeated })
}
