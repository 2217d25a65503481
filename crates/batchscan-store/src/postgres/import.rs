//! Imports batches: COPY into a temporary table while the file is being read, then a merge, all in one transaction.

use std::pin::pin;

use batchscan_model::{OrgId, UtcInstant};
use deadpool_postgres::Transaction;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::Type;

use super::audit;
use super::changes::set_version;
use super::organisations::{lock_org, org_id};
use super::rows::params;
use super::store::{PostgresStore, commit};
use crate::audit::{Actor, imported};
use crate::errors::{AdminError, StoreError};
use crate::imports::{ImportEntry, ImportResult, ImportSource, columns};
use crate::rows::{IMPORT_BY_KEY, IMPORTS, NEXT_VERSION, RECORD_IMPORT, SET_IMPORTED, import_entry};
use crate::types::{ImportCounts, ImportRows, ImportStep};

/// A merge may take a minute. Without this, the server would finish it for a killed process and block the next import.
/// Servers before 14 and on Windows do not support it.
const DETECT_DISCONNECT: &str = "
    DO $$ BEGIN PERFORM set_config('client_connection_check_interval', '500ms', true);
    EXCEPTION WHEN OTHERS THEN NULL; END $$";

const STAGE: &str = "
    CREATE TEMPORARY TABLE stage
        (line BIGINT, created_at BIGINT, batch_id TEXT COLLATE \"C\", json TEXT COLLATE \"C\") ON COMMIT DROP";
const STAGE_TYPES: [Type; 4] = [Type::INT8, Type::INT8, Type::TEXT, Type::TEXT];

/// Of batches with the same id, the last wins (decision 040).
const DROP_REPEATED: &str = "
    DELETE FROM stage s
    USING (SELECT batch_id, max(line) AS line FROM stage GROUP BY batch_id HAVING count(*) > 1) AS last
    WHERE s.batch_id = last.batch_id AND s.line < last.line";
const DROP_UNCHANGED: &str = "
    DELETE FROM stage s USING batch b
    WHERE b.org_id = $1 AND b.batch_id = s.batch_id AND b.created_at = s.created_at AND b.json = s.json";
const RECORD_MOVED: &str = "
    INSERT INTO moved_batch (org_id, batch_id, version)
    SELECT $1, b.batch_id, $2 FROM stage s JOIN batch b ON b.org_id = $1 AND b.batch_id = s.batch_id
    WHERE b.created_at <> s.created_at
    ON CONFLICT (org_id, batch_id) DO UPDATE SET version = excluded.version";
const CORRECT: &str = "
    UPDATE batch b SET created_at = s.created_at, json = s.json, version = $2
    FROM stage s WHERE b.org_id = $1 AND b.batch_id = s.batch_id";
/// Corrected batches exist already. Ordered, so that the batches of a page are adjacent on disk.
const ADD: &str = "
    INSERT INTO batch (org_id, created_at, batch_id, json, version)
    SELECT $1, created_at, batch_id, json, $2 FROM stage ORDER BY created_at, batch_id
    ON CONFLICT (org_id, batch_id) DO NOTHING";

impl PostgresStore {
    pub(crate) async fn import(
        &self,
        org: &str,
        source: ImportSource,
        mut rows: ImportRows,
        now: UtcInstant,
    ) -> Result<ImportResult, AdminError> {
        self.on_primary(async |lease| {
            let import = lease.begin().await?;
            import.batch_execute(DETECT_DISCONNECT).await?;
            // Fails for an unknown organisation before a long file is read.
            let id = org_id(&import, org).await?;
            source.require_org(id, org)?;
            if let Some(first) = find_by_key(&import, id, &source).await? {
                return first.repeat(&source);
            }
            import.batch_execute(STAGE).await?;
            let (should_commit, warnings) = stage(&import, &mut rows).await?;
            // Another organisation may have the name by now.
            if lock_org(&import, org).await? != id {
                return Err(AdminError::OrgNotFound(org.to_owned()));
            }
            // The same delivery may have been imported meanwhile.
            if let Some(first) = find_by_key(&import, id, &source).await? {
                return first.repeat(&source);
            }
            let counts = merge(&import, id, now).await?;
            let mut result = ImportResult { id: None, counts, warnings, is_repeated: false };
            if should_commit && counts.new + counts.corrected > 0 {
                result.id = Some(record(&import, id, &self.actor, &source, &result, now).await?);
                audit::insert(&import, &self.actor, now, &[imported(org, &source, &counts)]).await?;
                commit(import).await?;
                return Ok(result);
            }
            // An import without changes is rolled back, so that clients continue to get 304.
            import.rollback().await?;
            if should_commit {
                let recording = lease.begin().await?;
                let id = lock_org(&recording, org).await?;
                source.require_org(id, org)?;
                if let Some(first) = find_by_key(&recording, id, &source).await? {
                    return first.repeat(&source);
                }
                result.id = Some(record(&recording, id, &self.actor, &source, &result, now).await?);
                commit(recording).await?;
            }
            Ok(result)
        })
        .await
        .map_err(|error| match error {
            AdminError::Store(StoreError::Unreachable(why)) => {
                StoreError::Unreachable(format!("{why}; nothing was imported: run the same command again"))
                    .into()
            }
            other => other,
        })
    }

    pub(crate) async fn imports(
        &self,
        org: &str,
        after: i64,
        limit: i64,
    ) -> Result<Vec<ImportEntry>, AdminError> {
        self.read_slowly(async |snapshot| {
            let org = org_id(snapshot, org).await?;
            let params = params![INT8: org.0, INT8: after, INT8: limit];
            let rows = snapshot.query_typed(IMPORTS, &params).await?;
            Ok(rows.iter().map(import_entry).collect::<Result<_, _>>()?)
        })
        .await
    }
}

/// The earlier import with the same key.
async fn find_by_key(
    transaction: &Transaction<'_>,
    org: OrgId,
    source: &ImportSource,
) -> Result<Option<ImportEntry>, AdminError> {
    let Some(key) = &source.key else { return Ok(None) };
    let found = transaction.query_typed_opt(IMPORT_BY_KEY, &params![INT8: org.0, TEXT: key]).await?;
    Ok(found.as_ref().map(import_entry).transpose()?)
}

/// Records an import. Returns its number.
async fn record(
    transaction: &Transaction<'_>,
    org: OrgId,
    Actor { name, source: host }: &Actor,
    ImportSource { file, key, hash, .. }: &ImportSource,
    result: &ImportResult,
    now: UtcInstant,
) -> Result<i64, AdminError> {
    let [new, corrected, unchanged, repeated, warnings] = columns(result.counts, result.warnings);
    let hash = hash.as_ref().map(<[u8; 32]>::as_slice);
    let params = params![
        INT8: org.0, INT8: now.micros(), TEXT: name, TEXT: host, TEXT: file, TEXT: key, BYTEA: hash, INT8: new,
        INT8: corrected, INT8: unchanged, INT8: repeated, INT8: warnings,
    ];
    Ok(transaction.query_typed_one(RECORD_IMPORT, &params).await?.try_get(0)?)
}

/// Copies the rows into the temporary table. Returns whether to commit, and the number of warnings.
async fn stage(import: &Transaction<'_>, rows: &mut ImportRows) -> Result<(bool, u64), AdminError> {
    let sink = import.copy_in("COPY stage (line, created_at, batch_id, json) FROM STDIN (FORMAT binary)");
    let mut copy = pin!(BinaryCopyInWriter::new(sink.await?, &STAGE_TYPES));
    let mut line = 0i64;
    let end = loop {
        match rows.recv().await {
            Some(ImportStep::Rows(rows)) => {
                for row in rows {
                    line += 1;
                    let (created, id) = (row.position.created.micros(), row.position.id.as_str());
                    copy.as_mut().write(&[&line, &created, &id, &row.json]).await?;
                }
            }
            Some(ImportStep::Commit { warnings }) => break (true, warnings),
            Some(ImportStep::DryRun { warnings }) => break (false, warnings),
            None => return Err(AdminError::Aborted),
        }
    };
    copy.as_mut().finish().await?;
    Ok(end)
}

/// Merges the temporary table into the batches of one organisation, and increments its version.
async fn merge(import: &Transaction<'_>, org: OrgId, now: UtcInstant) -> Result<ImportCounts, AdminError> {
    import.batch_execute("ANALYZE stage").await?;
    let repeated = import.execute_typed(DROP_REPEATED, &[]).await?;
    let version: i64 = import.query_typed_one(NEXT_VERSION, &params![INT8: org.0]).await?.try_get(0)?;
    let of_org = params![INT8: org.0, INT8: version];
    let unchanged = import.execute_typed(DROP_UNCHANGED, &of_org[..1]).await?;
    let moved = import.execute_typed(RECORD_MOVED, &of_org).await?;
    let corrected = import.execute_typed(CORRECT, &of_org).await?;
    let new = import.execute_typed(ADD, &of_org).await?;
    set_version(import, org, version, moved > 0, now).await?;
    import.execute_typed(SET_IMPORTED, &of_org).await?;
    Ok(ImportCounts { new, corrected, unchanged, repeated })
}
