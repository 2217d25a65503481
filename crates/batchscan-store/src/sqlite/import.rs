//! Imports batches: one transaction on the writer thread, fed through a channel while the file is being read.

use batchscan_model::{OrgId, UtcInstant};
use rusqlite::{Connection, OptionalExtension, Statement, Transaction, TransactionBehavior, params};

use super::audit;
use super::blocks::BlockUpdate;
use super::changes::{next_version, set_version};
use super::organisations::org_id;
use super::rows::query_all;
use super::store::SqliteStore;
use crate::audit::{Actor, imported};
use crate::errors::{AdminError, StoreError};
use crate::imports::{ImportEntry, ImportResult, ImportSource, columns};
use crate::rows::{IMPORT_BY_KEY, IMPORTS, RECORD_IMPORT, RECORD_MOVED, SET_IMPORTED, import_entry};
use crate::types::{ImportCounts, ImportRow, ImportRows, ImportStep};

const INSERT: &str =
    "INSERT INTO batch (org_id, created_at, batch_id, json, version) VALUES (?1, ?2, ?3, ?4, ?5)
                      ON CONFLICT DO NOTHING";

impl SqliteStore {
    pub(crate) async fn import(
        &self,
        org: &str,
        source: ImportSource,
        mut rows: ImportRows,
        now: UtcInstant,
    ) -> Result<ImportResult, AdminError> {
        let org = org.to_owned();
        let actor = self.actor();
        self.write(move |connection| import(connection, &org, &actor, &source, &mut rows, now)).await
    }

    pub(crate) async fn imports(
        &self,
        org: &str,
        after: i64,
        limit: i64,
    ) -> Result<Vec<ImportEntry>, AdminError> {
        let org = org.to_owned();
        self.read_slowly(move |connection| {
            let org = org_id(connection, &org)?;
            let params = params![org.0, after, limit];
            Ok(query_all(&mut connection.prepare(IMPORTS)?, params, |row| import_entry(row))?)
        })
        .await
    }
}

fn import(
    connection: &mut Connection,
    name: &str,
    actor: &Actor,
    source: &ImportSource,
    rows: &mut ImportRows,
    now: UtcInstant,
) -> Result<ImportResult, AdminError> {
    // The corrected batches as they were before the import. A temporary table, so that it does not use memory.
    connection.execute_batch(
        "CREATE TEMP TABLE IF NOT EXISTS before_import
             (batch_id TEXT PRIMARY KEY, created_at INTEGER NOT NULL, json TEXT NOT NULL) WITHOUT ROWID;
         DELETE FROM before_import;",
    )?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let org = org_id(&transaction, name)?;
    source.require_org(org, name)?;
    if let Some(first) = find_by_key(&transaction, org, source)? {
        return first.repeat(source);
    }
    let version = next_version(&transaction, org)?;
    let mut merge = Merge {
        transaction: &transaction,
        insert: transaction.prepare(INSERT)?,
        org,
        version,
        counts: ImportCounts::default(),
        has_moved: false,
        blocks: BlockUpdate::new(org),
    };
    let (commit, warnings) = loop {
        match rows.blocking_recv() {
            Some(ImportStep::Rows(rows)) => rows.iter().try_for_each(|row| merge.add(row))?,
            Some(ImportStep::Commit { warnings }) => break (true, warnings),
            Some(ImportStep::DryRun { warnings }) => break (false, warnings),
            None => return Err(AdminError::Aborted),
        }
    };
    let (counts, has_moved, blocks) = merge.finish();
    let mut result = ImportResult { id: None, counts, warnings, is_repeated: false };
    if commit && counts.new + counts.corrected > 0 {
        set_version(&transaction, org, version, has_moved, now)?;
        transaction.execute(SET_IMPORTED, params![org.0, version])?;
        blocks.finish(&transaction)?;
        result.id = Some(record(&transaction, org, actor, source, &result, now)?);
        audit::insert(&transaction, actor, now, &[imported(name, source, &counts)])?;
        transaction.commit()?;
        return Ok(result);
    }
    // An import without changes is rolled back, so that clients continue to get 304.
    transaction.rollback()?;
    if commit {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let org = org_id(&transaction, name)?;
        source.require_org(org, name)?;
        if let Some(first) = find_by_key(&transaction, org, source)? {
            return first.repeat(source);
        }
        result.id = Some(record(&transaction, org, actor, source, &result, now)?);
        transaction.commit()?;
    }
    Ok(result)
}

/// The earlier import with the same key.
fn find_by_key(
    transaction: &Transaction<'_>,
    org: OrgId,
    source: &ImportSource,
) -> Result<Option<ImportEntry>, AdminError> {
    let Some(key) = &source.key else { return Ok(None) };
    let mut find = transaction.prepare_cached(IMPORT_BY_KEY)?;
    Ok(query_all(&mut find, params![org.0, key], |row| import_entry(row))?.pop())
}

/// Records an import. Returns its number.
fn record(
    transaction: &Transaction<'_>,
    org: OrgId,
    Actor { name, source: host }: &Actor,
    ImportSource { file, key, hash, .. }: &ImportSource,
    result: &ImportResult,
    now: UtcInstant,
) -> rusqlite::Result<i64> {
    let [new, corrected, unchanged, repeated, warnings] = columns(result.counts, result.warnings);
    let params = params![
        org.0,
        now.micros(),
        name,
        host,
        file,
        key,
        hash,
        new,
        corrected,
        unchanged,
        repeated,
        warnings
    ];
    transaction.prepare_cached(RECORD_IMPORT)?.query_one(params, |row| row.get(0))
}

/// Merges imported batches into those of one organisation.
struct Merge<'t> {
    transaction: &'t Transaction<'t>,
    /// Finding it in the cache of statements for each row would take 2 % of the time.
    insert: Statement<'t>,
    org: OrgId,
    version: i64,
    counts: ImportCounts,
    has_moved: bool,
    blocks: BlockUpdate,
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
            self.counts.repeated += 1;
            self.recount(row, &stored)?;
        } else if is_same {
            self.counts.unchanged += 1;
        } else {
            self.counts.corrected += 1;
            self.remember(row, &stored)?;
        }
        if is_same { Ok(()) } else { self.replace(row, &stored) }
    }

    fn finish(self) -> (ImportCounts, bool, BlockUpdate) {
        (self.counts, self.has_moved, self.blocks)
    }

    fn insert(&mut self, row: &ImportRow) -> Result<bool, AdminError> {
        let (created, id) = (row.position.created.micros(), row.position.id.as_str());
        let is_new = self.insert.execute(params![self.org.0, created, id, row.json, self.version])? == 1;
        if is_new {
            self.blocks.change(self.transaction, created, id)?;
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
        let missing = || StoreError::Broken("a batch is in one index but not in the other".into());
        Ok(stored.optional()?.ok_or_else(missing)?)
    }

    fn replace(&mut self, row: &ImportRow, stored: &Stored) -> Result<(), AdminError> {
        let (created, id) = (row.position.created.micros(), row.position.id.as_str());
        self.blocks.change(self.transaction, stored.created_at, id)?;
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
        self.has_moved = true;
        let mut moved = self.transaction.prepare_cached(RECORD_MOVED)?;
        moved.execute(params![self.org.0, id, self.version])?;
        Ok(())
    }

    fn remember(&self, row: &ImportRow, stored: &Stored) -> Result<(), AdminError> {
        let mut remember = self
            .transaction
            .prepare_cached("INSERT INTO before_import (batch_id, created_at, json) VALUES (?1, ?2, ?3)")?;
        remember.execute(params![row.position.id.as_str(), stored.created_at, stored.json])?;
        Ok(())
    }

    /// A later row can restore a batch to its state before the import, or change it again.
    fn recount(&mut self, row: &ImportRow, stored: &Stored) -> Result<(), AdminError> {
        let mut find = self
            .transaction
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
