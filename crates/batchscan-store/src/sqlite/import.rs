//! An import: one transaction on the writer's connection, fed through a channel while the file is still being read.

use batchscan_model::OrgId;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::SqliteStore;
use super::organisations::org_id;
use super::packs::Upkeep;
use crate::{AdminError, ImportCounts, ImportRow, ImportRows, ImportStep, StoreError};

impl SqliteStore {
    pub(crate) async fn import(&self, org: &str, mut rows: ImportRows) -> Result<ImportCounts, AdminError> {
        let org = org.to_owned();
        self.write(move |connection| import(connection, &org, &mut rows)).await
    }
}

fn import(connection: &mut Connection, org: &str, rows: &mut ImportRows) -> Result<ImportCounts, AdminError> {
    // What was corrected in this import, as it was before: temporary, so it spills to disk and never to memory.
    connection.execute_batch(
        "CREATE TEMP TABLE IF NOT EXISTS before_import
             (batch_id TEXT PRIMARY KEY, created_at INTEGER NOT NULL, json TEXT NOT NULL) WITHOUT ROWID;
         DELETE FROM before_import;",
    )?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let org = org_id(&transaction, org)?;
    let version: i64 =
        transaction
            .query_row("SELECT version + 1 FROM organisation WHERE id = ?1", [org.0], |row| row.get(0))?;
    let mut merge = Merge {
        transaction: &transaction,
        org,
        version,
        counts: ImportCounts::default(),
        moved: false,
        packs: Upkeep::new(&transaction, org)?,
    };
    let keep = loop {
        match rows.blocking_recv() {
            Some(ImportStep::Rows(rows)) => rows.iter().try_for_each(|row| merge.row(row))?,
            Some(ImportStep::Commit) => break true,
            Some(ImportStep::DryRun) => break false,
            None => return Err(AdminError::Abandoned),
        }
    };
    let Merge { counts, moved, packs, .. } = merge;
    // An import that changed nothing leaves no trace: pollers go on getting 304.
    if keep && counts.new + counts.corrected > 0 {
        let raise = "UPDATE organisation SET version = ?2, version_mark = random(),
                         moved_version = iif(?3, ?2, moved_version) WHERE id = ?1";
        transaction.execute(raise, params![org.0, version, moved])?;
        packs.finish(&transaction)?;
        transaction.commit()?;
    } else {
        transaction.rollback()?;
    }
    Ok(counts)
}

/// Merges batches into those of one organisation.
struct Merge<'t> {
    transaction: &'t Transaction<'t>,
    org: OrgId,
    version: i64,
    counts: ImportCounts,
    moved: bool,
    packs: Upkeep,
}

/// A batch as it stands in the table.
struct Stored {
    created_at: i64,
    json: String,
    version: i64,
}

impl Merge<'_> {
    fn row(&mut self, row: &ImportRow) -> Result<(), AdminError> {
        // Most batches are new; for those this one statement is all.
        if self.insert(row)? {
            self.counts.new += 1;
            return Ok(());
        }
        let stored = self.stored(row)?;
        let new = Stored {
            created_at: row.position.created.micros(),
            json: row.json.clone(),
            version: self.version,
        };
        let same = stored.created_at == new.created_at && stored.json == new.json;
        if stored.version == self.version {
            self.counts.repeated += 1;
            self.recount(row, &stored, &new)?;
        } else if same {
            self.counts.unchanged += 1;
        } else {
            self.counts.corrected += 1;
            self.remember(row, &stored)?;
        }
        if same { Ok(()) } else { self.replace(row, &stored) }
    }

    fn insert(&mut self, row: &ImportRow) -> Result<bool, AdminError> {
        let mut insert = self.transaction.prepare_cached(
            "INSERT INTO batch (org_id, created_at, batch_id, json, version) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT DO NOTHING",
        )?;
        let (created, id) = (row.position.created.micros(), row.position.id.as_str());
        let is_new = insert.execute(params![self.org.0, created, id, row.json, self.version])? == 1;
        if is_new {
            self.packs.changed(self.transaction, created, id)?;
        }
        Ok(is_new)
    }

    fn stored(&self, row: &ImportRow) -> Result<Stored, AdminError> {
        let mut find = self.transaction.prepare_cached(
            "SELECT created_at, json, version FROM batch WHERE org_id = ?1 AND batch_id = ?2",
        )?;
        let stored = find.query_row(params![self.org.0, row.position.id.as_str()], |found| {
            Ok(Stored { created_at: found.get(0)?, json: found.get(1)?, version: found.get(2)? })
        });
        stored
            .optional()?
            .ok_or_else(|| StoreError::Broken("a batch is in one index and not in the other".into()).into())
    }

    fn replace(&mut self, row: &ImportRow, stored: &Stored) -> Result<(), AdminError> {
        let (created, id) = (row.position.created.micros(), row.position.id.as_str());
        self.packs.changed(self.transaction, stored.created_at, id)?;
        if stored.created_at == created {
            let mut update = self.transaction.prepare_cached(
                "UPDATE batch SET json = ?4, version = ?5 WHERE org_id = ?1 AND created_at = ?2 AND batch_id = ?3",
            )?;
            update.execute(params![self.org.0, created, id, row.json, self.version])?;
            return Ok(());
        }
        let mut delete = self
            .transaction
            .prepare_cached("DELETE FROM batch WHERE org_id = ?1 AND created_at = ?2 AND batch_id = ?3")?;
        delete.execute(params![self.org.0, stored.created_at, id])?;
        self.insert(row)?;
        self.moved = true;
        let mut note = self.transaction.prepare_cached(
            "INSERT OR REPLACE INTO moved_batch (org_id, batch_id, version) VALUES (?1, ?2, ?3)",
        )?;
        note.execute(params![self.org.0, id, self.version])?;
        Ok(())
    }

    fn remember(&self, row: &ImportRow, stored: &Stored) -> Result<(), AdminError> {
        let mut remember = self
            .transaction
            .prepare_cached("INSERT INTO before_import (batch_id, created_at, json) VALUES (?1, ?2, ?3)")?;
        remember.execute(params![row.position.id.as_str(), stored.created_at, stored.json])?;
        Ok(())
    }

    /// A later line may bring a batch back to what it was before the import, or away from it again.
    fn recount(&mut self, row: &ImportRow, stored: &Stored, new: &Stored) -> Result<(), AdminError> {
        let mut find = self
            .transaction
            .prepare_cached("SELECT created_at, json FROM before_import WHERE batch_id = ?1")?;
        let before = find.query_row([row.position.id.as_str()], |found| Ok((found.get(0)?, found.get(1)?)));
        let Some((created_at, json)) = before.optional()? else { return Ok(()) };
        let before = Stored { created_at, json, version: 0 };
        let equals = |other: &Stored| before.created_at == other.created_at && before.json == other.json;
        let (was, is) = (u64::from(equals(stored)), u64::from(equals(new)));
        self.counts.corrected = self.counts.corrected + was - is;
        self.counts.unchanged = self.counts.unchanged + is - was;
        Ok(())
    }
}
