//! Imports batches: COPY into a temporary table while the file is being read, then a merge.

use std::pin::pin;

use batchscan_model::{Field, OrgId};
use tokio_postgres::Client;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::Type;

use crate::errors::AdminError;
use crate::sql::{Columns, MICROS_PER_DAY, Merged, Sql, ids_of_emptied, read_ids, values};
use crate::types::{ImportCounts, ImportEnd, ImportRows, ImportStep};

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
const DROP_DUPLICATES: &str = "
    WITH dropped AS (
        DELETE FROM stage s
        USING (SELECT batch_id, max(line) AS line FROM stage GROUP BY batch_id HAVING count(*) > 1) AS last
        WHERE s.batch_id = last.batch_id AND s.line < last.line
        RETURNING s.batch_id)
    SELECT count(*), min(batch_id) FROM dropped";
const DROP_UNCHANGED: &str = "
    DELETE FROM stage s USING batch b
    WHERE b.org_id = $1 AND b.batch_id = s.batch_id AND b.created_at = s.created_at AND b.json = s.json";
const RECORD_MOVED: &str = "
    INSERT INTO batch_tombstone (org_id, batch_id, version)
    SELECT $1, b.batch_id, $2 FROM stage s JOIN batch b ON b.org_id = $1 AND b.batch_id = s.batch_id
    WHERE b.created_at <> s.created_at
    ON CONFLICT (org_id, batch_id) DO UPDATE SET version = excluded.version";
/// The creation times that these batches had, and an id of which the name or the day changes, too.
const MOVED_RANGE: &str = "
    SELECT min(b.created_at), max(b.created_at), min(b.batch_id) FILTER (WHERE
        split_part(split_part(b.json, '\"batch_name\":', 2), ',\"batch_creation_date\":', 1)
        <> split_part(split_part(s.json, '\"batch_name\":', 2), ',\"batch_creation_date\":', 1)
        OR abs(b.created_at - s.created_at) >= $2)
    FROM stage s JOIN batch b ON b.org_id = $1 AND b.batch_id = s.batch_id
    WHERE b.created_at <> s.created_at";
/// The batches that are corrected, as they were and as they become.
const CORRECTED: &str = "
    SELECT b.batch_id, b.json AS old, s.json AS new FROM stage s JOIN batch b ON b.org_id = $1 AND b.batch_id = s.batch_id";
/// The blocks that batches move out of.
const DELETE_BLOCKS: &str = "
    DELETE FROM block k
    USING stage s
    JOIN batch b ON b.org_id = $1 AND b.batch_id = s.batch_id AND b.created_at <> s.created_at
    CROSS JOIN LATERAL (
        SELECT last_created_at, last_id FROM block
        WHERE org_id = $1 AND (last_created_at, last_id) >= (b.created_at, b.batch_id)
        ORDER BY last_created_at, last_id LIMIT 1) AS next
    WHERE k.org_id = $1 AND (k.last_created_at, k.last_id) = (next.last_created_at, next.last_id)
      AND (k.after_created_at, k.after_id) < (b.created_at, b.batch_id)";
const CORRECT: &str = "
    UPDATE batch b SET created_at = s.created_at, json = s.json, version = $2
    FROM stage s WHERE b.org_id = $1 AND b.batch_id = s.batch_id";
const DROP_CORRECTED: &str =
    "DELETE FROM stage s USING batch b WHERE b.org_id = $1 AND b.batch_id = s.batch_id";
/// Faster by a fifth than with `ON CONFLICT DO NOTHING`.
const ADD: &str = "
    INSERT INTO batch (org_id, created_at, batch_id, json, version)
    SELECT $1, created_at, batch_id, json, $2 FROM stage";
/// So that the batches of a page are adjacent on disk.
const IN_ORDER: &str = " ORDER BY created_at, batch_id";

/// Copies the rows into the temporary table. Returns also whether they came in their order.
pub(super) async fn stage(client: &Client, rows: &mut ImportRows) -> Result<(ImportEnd, bool), AdminError> {
    client.batch_execute(DETECT_DISCONNECT).await?;
    client.batch_execute(STAGE).await?;
    let sink = client.copy_in("COPY stage (line, created_at, batch_id, json) FROM STDIN (FORMAT binary)");
    let mut copy = pin!(BinaryCopyInWriter::new(sink.await?, &STAGE_TYPES));
    let (mut line, mut last, mut is_sorted) = (0i64, None, true);
    let end = loop {
        match rows.recv().await {
            Some(ImportStep::Rows(rows)) => {
                for row in rows {
                    line += 1;
                    let (created, id) = (row.position.created.micros(), row.position.id.as_str());
                    copy.as_mut().write(&[&line, &created, &id, &row.json]).await?;
                    is_sorted = is_sorted && last.is_none_or(|last| last < row.position);
                    last = Some(row.position);
                }
            }
            Some(ImportStep::End(end)) => break end,
            None => return Err(AdminError::Aborted),
        }
    };
    copy.as_mut().finish().await?;
    Ok((end, is_sorted))
}

/// Merges the temporary table into the batches.
pub(super) async fn merge(
    sql: &mut dyn Sql,
    org: OrgId,
    version: i64,
    is_sorted: bool,
    missing: &[Field],
) -> Result<Merged, AdminError> {
    // The number of rows is enough to plan with, and reading a hundred times as many costs a twentieth of the import.
    sql.execute("SET LOCAL default_statistics_target = 1", &[]).await?;
    sql.execute("ANALYZE stage (batch_id)", &[]).await?;
    let dropped = |row: &dyn Columns| Ok((row.count(0)?, row.optional_string(1)?));
    let (duplicates, repeated) = sql.first(DROP_DUPLICATES, &[], dropped).await?.unwrap_or_default();
    let unchanged = sql.execute(DROP_UNCHANGED, values![org]).await?;
    let moved = sql.execute(RECORD_MOVED, values![org, version]).await?;
    let (moved, replaced) = match moved {
        0 => (None, None),
        _ => {
            sql.execute(DELETE_BLOCKS, values![org]).await?;
            let range =
                |row: &dyn Columns| Ok((Some((row.number(0)?, row.number(1)?)), row.optional_string(2)?));
            sql.first(MOVED_RANGE, values![org, MICROS_PER_DAY], range).await?.unwrap_or_default()
        }
    };
    let emptied = match missing {
        [] => Vec::new(),
        _ => {
            sql.first(&ids_of_emptied(missing, CORRECTED), values![org], read_ids).await?.unwrap_or_default()
        }
    };
    let corrected = sql.execute(CORRECT, values![org, version]).await?;
    if corrected > 0 {
        sql.execute(DROP_CORRECTED, values![org]).await?;
    }
    let order = if is_sorted { "" } else { IN_ORDER };
    let new = sql.execute(&format!("{ADD}{order}"), values![org, version]).await?;
    let counts = ImportCounts { new, corrected, unchanged, duplicates };
    Ok(Merged { counts, repeated, replaced, emptied, moved })
}
