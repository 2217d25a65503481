//! Merges the batches of an import, as they arrive, into those of an organisation.

use batchscan_model::{Field, OrgId};
use rusqlite::{Connection, OptionalExtension, Statement, params};

use crate::blocks;
use crate::errors::{AdminError, StoreError};
use crate::sql::{MICROS_PER_DAY, Merged, for_sqlite, ids_of_emptied, read_ids};
use crate::types::{ImportCounts, ImportEnd, ImportRow, ImportRows, ImportStep};
use crate::versions::RECORD_TOMBSTONE;

const INSERT: &str =
    "INSERT INTO batch (org_id, created_at, batch_id, json, version) VALUES (?1, ?2, ?3, ?4, ?5)
                      ON CONFLICT DO NOTHING";

pub(super) fn merge(
    connection: &Connection,
    org: OrgId,
    rows: &mut ImportRows,
) -> Result<(ImportEnd, Merged), AdminError> {
    // The batches of the file that existed before, the corrected ones as they were. A temporary table, so that it does not use
    // memory.
    connection.execute_batch(
        "CREATE TEMP TABLE IF NOT EXISTS before_import
             (batch_id TEXT PRIMARY KEY, created_at INTEGER, json TEXT) WITHOUT ROWID;
         DELETE FROM before_import;",
    )?;
    let version = "SELECT version + 1 FROM organisation WHERE id = ?1";
    let mut merge = Merge {
        connection,
        insert: connection.prepare(INSERT)?,
        org,
        version: connection.query_row(version, [org.0], |row| row.get(0))?,
        counts: ImportCounts::default(),
        repeated: None,
        moved: None,
    };
    let end = loop {
        match rows.blocking_recv() {
            Some(ImportStep::Rows(rows)) => rows.iter().try_for_each(|row| merge.add(row))?,
            Some(ImportStep::End(end)) => break end,
            None => return Err(AdminError::Aborted),
        }
    };
    let replaced = merge.find_replaced()?;
    let Merge { counts, repeated, moved, .. } = merge;
    Ok((end, Merged { counts, repeated, replaced, emptied: Vec::new(), moved }))
}

/// For each of these fields, an id of a batch that the import has corrected and that lost its value.
pub(super) fn find_emptied(
    connection: &Connection,
    org: OrgId,
    missing: &[Field],
) -> Result<Vec<(Field, String)>, AdminError> {
    const CORRECTED: &str = "
        SELECT b.batch_id, before.json AS old, b.json AS new
        FROM before_import AS before JOIN batch AS b ON b.org_id = ?1 AND b.batch_id = before.batch_id
        WHERE before.json IS NOT NULL";
    let found =
        connection.query_row(&ids_of_emptied(missing, CORRECTED), [org.0], |row| Ok(read_ids(row)))?;
    Ok(found?)
}

/// Merges imported batches into those of one organisation.
struct Merge<'t> {
    connection: &'t Connection,
    /// Finding it in the cache of statements for each row would take 2 % of the time.
    insert: Statement<'t>,
    org: OrgId,
    version: i64,
    counts: ImportCounts,
    /// The smallest id that several batches have, as PostgreSQL reports it.
    repeated: Option<String>,
    moved: Option<(i64, i64)>,
}

/// A batch in the table.
struct Stored {
    created_at: i64,
    json: String,
    version: i64,
}

impl Stored {
    fn equals(&self, row: &ImportRow) -> bool {
        self.created_at == row.position.created.micros() && self.json == row.json
    }
}

impl Merge<'_> {
    fn add(&mut self, row: &ImportRow) -> Result<(), AdminError> {
        // Most batches are new, and need only this statement.
        if self.insert(row)? {
            self.counts.new += 1;
            return Ok(());
        }
        let stored = self.stored(row)?;
        let is_same = stored.equals(row);
        if stored.version == self.version {
            self.count_duplicate(row);
            self.recount(row, &stored)?;
        } else {
            let is_first = self.remember(row, (!is_same).then_some(&stored))?;
            if !is_first {
                // Counted as unchanged before.
                self.count_duplicate(row);
                self.counts.unchanged -= 1;
            }
            *if is_same { &mut self.counts.unchanged } else { &mut self.counts.corrected } += 1;
        }
        if is_same { Ok(()) } else { self.replace(row, &stored) }
    }

    fn insert(&mut self, row: &ImportRow) -> Result<bool, AdminError> {
        let (created, id) = (row.position.created.micros(), row.position.id.as_str());
        Ok(self.insert.execute(params![self.org.0, created, id, row.json, self.version])? == 1)
    }

    fn stored(&self, row: &ImportRow) -> Result<Stored, AdminError> {
        let mut find = self.connection.prepare_cached(
            "SELECT created_at, json, version FROM batch WHERE org_id = ?1 AND batch_id = ?2",
        )?;
        let stored = find.query_row(params![self.org.0, row.position.id.as_str()], |found| {
            Ok(Stored { created_at: found.get(0)?, json: found.get(1)?, version: found.get(2)? })
        });
        let missing = || StoreError::Broken("a batch is in one index but not in the other".into());
        Ok(stored.optional()?.ok_or_else(missing)?)
    }

    fn replace(&mut self, row: &ImportRow, stored: &Stored) -> Result<(), AdminError> {
        let (created, id) = (row.position.created.micros(), row.position.id.as_str());
        if stored.created_at == created {
            let mut update = self.connection.prepare_cached(
                "UPDATE batch SET json = ?4, version = ?5 WHERE org_id = ?1 AND created_at = ?2 AND batch_id = ?3",
            )?;
            update.execute(params![self.org.0, created, id, row.json, self.version])?;
            return Ok(());
        }
        let mut delete = self
            .connection
            .prepare_cached("DELETE FROM batch WHERE org_id = ?1 AND created_at = ?2 AND batch_id = ?3")?;
        delete.execute(params![self.org.0, stored.created_at, id])?;
        let mut block = self.connection.prepare_cached(&for_sqlite(blocks::DELETE_AT))?;
        block.execute(params![self.org.0, stored.created_at, id])?;
        self.insert(row)?;
        let (low, high) = self.moved.unwrap_or((stored.created_at, stored.created_at));
        self.moved = Some((low.min(stored.created_at), high.max(stored.created_at)));
        let mut tombstone = self.connection.prepare_cached(&for_sqlite(RECORD_TOMBSTONE))?;
        tombstone.execute(params![self.org.0, id, self.version])?;
        Ok(())
    }

    fn count_duplicate(&mut self, row: &ImportRow) {
        self.counts.duplicates += 1;
        let id = row.position.id.as_str();
        if self.repeated.as_deref().is_none_or(|known| id < known) {
            self.repeated = Some(id.to_owned());
        }
    }

    /// The smallest id whose batch had another name and creation time before the import, or a time at least a day away.
    fn find_replaced(&self) -> Result<Option<String>, AdminError> {
        if self.moved.is_none() {
            return Ok(None);
        }
        let mut find = self.connection.prepare(
            "SELECT b.batch_id, old.json, b.json, abs(b.created_at - old.created_at)
             FROM before_import AS old JOIN batch AS b ON b.org_id = ?1 AND b.batch_id = old.batch_id
             WHERE old.json IS NOT NULL AND b.created_at <> old.created_at
             ORDER BY old.batch_id",
        )?;
        let mut rows = find.query([self.org.0])?;
        while let Some(row) = rows.next()? {
            let (before, after): (String, String) = (row.get(1)?, row.get(2)?);
            if name(&before) != name(&after) || row.get::<_, i64>(3)? >= MICROS_PER_DAY {
                return Ok(Some(row.get(0)?));
            }
        }
        Ok(None)
    }

    /// Whether the file has not had this batch before. `stored` is kept if the batch changes.
    fn remember(&self, row: &ImportRow, stored: Option<&Stored>) -> Result<bool, AdminError> {
        let id = row.position.id.as_str();
        let mut insert =
            self.connection.prepare_cached("INSERT OR IGNORE INTO before_import (batch_id) VALUES (?1)")?;
        let is_first = insert.execute([id])? == 1;
        if let Some(stored) = stored {
            let update = "UPDATE before_import SET created_at = ?2, json = ?3 WHERE batch_id = ?1";
            let mut update = self.connection.prepare_cached(update)?;
            update.execute(params![id, stored.created_at, stored.json])?;
        }
        Ok(is_first)
    }

    /// A later row can restore a batch to its state before the import, or change it again.
    fn recount(&mut self, row: &ImportRow, stored: &Stored) -> Result<(), AdminError> {
        let mut find = self
            .connection
            .prepare_cached("SELECT created_at, json FROM before_import WHERE batch_id = ?1")?;
        let before = find.query_row([row.position.id.as_str()], |found| {
            Ok(Stored { created_at: found.get(0)?, json: found.get(1)?, version: 0 })
        });
        let Some(before) = before.optional()? else { return Ok(()) };
        let was_restored = before.created_at == stored.created_at && before.json == stored.json;
        let (was, is) = (u64::from(was_restored), u64::from(before.equals(row)));
        self.counts.corrected = self.counts.corrected + was - is;
        self.counts.unchanged = self.counts.unchanged + is - was;
        Ok(())
    }
}

/// The text between the key of the name and the next key, which is enough to compare. PostgreSQL does it in the same way.
fn name(json: &str) -> Option<&str> {
    let (_, rest) = json.split_once("\"batch_name\":")?;
    rest.split_once(",\"batch_creation_date\":").map(|(name, _)| name)
}
