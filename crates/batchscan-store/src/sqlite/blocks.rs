//! Blocks: runs of batches compressed at import (decision 049). Creates, replaces and checks them; `pages` reads them.
//!
//! A block covers the range of the batch order from `after` (exclusive) to `last` (inclusive): no other batch lies in it.
//! Blocks follow each other without a gap, so every batch up to the last block is in one. A missing block costs time, never
//! correctness.

use std::num::NonZero;

use batchscan_model::OrgId;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::errors::StoreError;
use crate::gzip::{Deflated, Piece};
use crate::page::Key;

/// Batches per block. A page of a thousand has twenty blocks, and compresses fifty batches at its edges on average. With
/// twice as many, pages would be 4 % smaller and take half as long again.
const BLOCK_BATCHES: usize = 50;
/// A block ends when its text reaches this size.
const BLOCK_TEXT_BYTES: usize = 256 * 1024;
/// Text that is compressed at once, on all cores. Large enough to pay for starting threads, small enough to bound memory.
const TEXT_BYTES_AT_ONCE: usize = 1024 * 1024;
/// Blocks are derived from batches: without an organisation they are of no use.
pub(super) const DELETE_WITHOUT_ORG: &str =
    "DELETE FROM block WHERE NOT EXISTS (SELECT 1 FROM organisation o WHERE o.id = org_id)";

/// Updates the blocks of one organisation while its batches change.
#[derive(Debug)]
pub(super) struct BlockUpdate {
    org: OrgId,
    /// A range without blocks: from a key (exclusive) to a key (inclusive) or to the end.
    gap: Option<(Key, Option<Key>)>,
    /// The lowest and the highest changed key.
    changed: Option<(Key, Key)>,
}

impl BlockUpdate {
    pub(super) fn new(org: OrgId) -> Self {
        Self { org, gap: None, changed: None }
    }

    /// Must be called for the key of every batch that is added, changed or removed. Deletes the block that covers it.
    pub(super) fn change(&mut self, connection: &Connection, created: i64, id: &str) -> rusqlite::Result<()> {
        let is_after = |key: &Key| (key.created, key.id.as_str()) < (created, id);
        match &mut self.changed {
            None => self.changed = Some((Key::new(created, id), Key::new(created, id))),
            Some((_, high)) if is_after(high) => high.set(created, id),
            Some((low, _)) if !is_after(low) => *low = Key::new(created, id),
            Some(_) => {}
        }
        let covers = |(after, last): &(Key, Option<Key>)| {
            is_after(after) && last.as_ref().is_none_or(|last| !is_after(last))
        };
        if self.gap.as_ref().is_some_and(covers) {
            return Ok(());
        }
        let key = Key::new(created, id);
        self.gap = Some(match block_from(connection, self.org, &key)? {
            Some(block) if block.after < key => {
                connection.prepare_cached("DELETE FROM block WHERE id = ?1")?.execute([block.id])?;
                (block.after, Some(block.last))
            }
            next => (last_before(connection, self.org, &key)?, next.map(|block| block.after)),
        });
        Ok(())
    }

    /// Compresses the batches in all gaps around the changes.
    pub(super) fn finish(self, connection: &Connection) -> rusqlite::Result<()> {
        let Some((low, high)) = self.changed else { return Ok(()) };
        for (after, next) in gaps(connection, self.org, &low, &high)? {
            compress(connection, self.org, after, next.as_ref())?;
        }
        Ok(())
    }
}

/// The ranges without blocks around two keys: each starts after a key and ends at a block or at the end of the order.
fn gaps(
    connection: &Connection,
    org: OrgId,
    low: &Key,
    high: &Key,
) -> rusqlite::Result<Vec<(Key, Option<Block>)>> {
    let mut after = last_before(connection, org, low)?;
    let mut blocks = connection.prepare_cached(
        "SELECT id, after_created_at, after_id, last_created_at, last_id FROM block
         WHERE org_id = ?1 AND (last_created_at, last_id) > (?2, ?3) ORDER BY last_created_at, last_id",
    )?;
    let mut rows = blocks.query(params![org.0, after.created, after.id])?;
    let mut gaps = Vec::new();
    while let Some(row) = rows.next()? {
        let block = block(row)?;
        let last = block.last.clone();
        if block.after != after {
            gaps.push((after, Some(block)));
        }
        if last >= *high {
            return Ok(gaps);
        }
        after = last;
    }
    gaps.push((after, None));
    Ok(gaps)
}

/// Compresses all batches of an organisation that has no blocks.
pub(super) fn compress_all(connection: &Connection, org: OrgId) -> rusqlite::Result<()> {
    compress(connection, org, Key::START, None)
}

pub(super) fn delete_all(connection: &Connection, org: OrgId) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM block WHERE org_id = ?1", [org.0]).map(|_| ())
}

/// A block that differs from its batches.
pub(super) struct WrongBlock {
    pub(super) org: OrgId,
    pub(super) org_name: String,
    range: Block,
}

impl WrongBlock {
    /// Gives its batches a new version: clients may have read them from the block. Returns their number.
    pub(super) fn mark_batches(&self, connection: &Connection, version: i64) -> rusqlite::Result<usize> {
        let Block { after, last, .. } = &self.range;
        connection.execute(
            "UPDATE batch SET version = ?1 WHERE org_id = ?2
             AND (created_at, batch_id) > (?3, ?4) AND (created_at, batch_id) <= (?5, ?6)",
            params![version, self.org.0, after.created, after.id, last.created, last.id],
        )
    }
}

/// Compares every block with its batches. Returns the first wrong ones.
pub(super) fn find_wrong(snapshot: &Connection, limit: usize) -> Result<Vec<WrongBlock>, StoreError> {
    let mut all = snapshot.prepare(
        "SELECT b.id, b.after_created_at, b.after_id, b.last_created_at, b.last_id, b.text_bytes, b.text_crc,
                b.deflated, b.batches, b.org_id, coalesce(o.name, 'organisation ' || b.org_id)
         FROM block b LEFT JOIN organisation o ON o.id = b.org_id ORDER BY b.id",
    )?;
    let mut rows = all.query([])?;
    let mut wrong = Vec::new();
    while let Some(row) = rows.next()? {
        if !is_correct(snapshot, row)? {
            wrong.push(WrongBlock { org: OrgId(row.get(9)?), org_name: row.get(10)?, range: block(row)? });
        }
        if wrong.len() == limit {
            break;
        }
    }
    Ok(wrong)
}

fn is_correct(snapshot: &Connection, row: &Row<'_>) -> Result<bool, StoreError> {
    let block = block(row)?;
    let mut batches = snapshot.prepare_cached(
        "SELECT created_at, batch_id, json FROM batch WHERE org_id = ?1
         AND (created_at, batch_id) > (?2, ?3) AND (created_at, batch_id) <= (?4, ?5) ORDER BY created_at, batch_id",
    )?;
    let Block { after, last, .. } = &block;
    let keys = params![row.get::<_, i64>(9)?, after.created, after.id, last.created, last.id];
    let mut rows = batches.query(keys)?;
    let mut run = Run::new(after.clone());
    while let Some(row) = rows.next()? {
        run.push(row)?;
    }
    let is_text = piece(row, 5)?.text().is_ok_and(|text| text == run.text);
    Ok(is_text && run.last == block.last && row.get::<_, u32>(8)? as usize == run.batches)
}

/// The stored text of a block, from three columns: length, checksum, deflate blocks.
pub(super) fn piece<'a>(row: &'a Row<'_>, column: usize) -> Result<Piece<'a>, StoreError> {
    let text_bytes = row.get::<_, u32>(column)? as usize;
    let bytes = row.get_ref(column + 2)?.as_blob().map_err(rusqlite::Error::from)?;
    Ok(Piece { text_bytes, crc: row.get(column + 1)?, bytes })
}

/// The range that a block covers.
struct Block {
    id: i64,
    after: Key,
    last: Key,
}

fn block(row: &Row<'_>) -> rusqlite::Result<Block> {
    Ok(Block { id: row.get(0)?, after: key(row, 1)?, last: key(row, 3)? })
}

/// A key from two columns.
pub(super) fn key(row: &Row<'_>, column: usize) -> rusqlite::Result<Key> {
    Ok(Key { created: row.get(column)?, id: row.get(column + 1)? })
}

/// The first block that ends at or after a key.
fn block_from(connection: &Connection, org: OrgId, key: &Key) -> rusqlite::Result<Option<Block>> {
    let mut find = connection.prepare_cached(
        "SELECT id, after_created_at, after_id, last_created_at, last_id FROM block
         WHERE org_id = ?1 AND (last_created_at, last_id) >= (?2, ?3)
         ORDER BY last_created_at, last_id LIMIT 1",
    )?;
    find.query_row(params![org.0, key.created, key.id], block).optional()
}

/// The end of the last block before a key.
fn last_before(connection: &Connection, org: OrgId, before: &Key) -> rusqlite::Result<Key> {
    let mut find = connection.prepare_cached(
        "SELECT last_created_at, last_id FROM block WHERE org_id = ?1 AND (last_created_at, last_id) < (?2, ?3)
         ORDER BY last_created_at DESC, last_id DESC LIMIT 1",
    )?;
    let found = find.query_row(params![org.0, before.created, before.id], |row| key(row, 0));
    Ok(found.optional()?.unwrap_or(Key::START))
}

/// Compresses the batches between a key and the next block. Without a next block, the batches that do not fill a block stay
/// uncompressed until the next import.
fn compress(connection: &Connection, org: OrgId, after: Key, next: Option<&Block>) -> rusqlite::Result<()> {
    let mut batches = connection.prepare_cached(
        "SELECT created_at, batch_id, json FROM batch
         WHERE org_id = ?1 AND (created_at, batch_id) > (?2, ?3) ORDER BY created_at, batch_id",
    )?;
    let mut rows = batches.query(params![org.0, after.created, after.id])?;
    let mut runs = vec![Run::new(after)];
    while let Some(row) = rows.next()? {
        let key = (row.get(0)?, row.get_ref(1)?.as_str()?);
        if next.is_some_and(|next| (next.after.created, next.after.id.as_str()) < key) {
            break;
        }
        if let Some(full) = runs.last().filter(|run| run.is_full()) {
            let run = Run::new(full.last.clone());
            if runs.iter().map(|run| run.text.len()).sum::<usize>() >= TEXT_BYTES_AT_ONCE {
                // The last one may still get the remaining batches.
                let last = runs.split_off(runs.len() - 1);
                insert_blocks(connection, org, &std::mem::replace(&mut runs, last))?;
            }
            runs.push(run);
        }
        if let Some(run) = runs.last_mut() {
            run.push(row)?;
        }
    }
    finish_runs(&mut runs, next.is_none());
    insert_blocks(connection, org, &runs)?;
    // The next block also covers the empty range before it.
    match (next, runs.last()) {
        (Some(next), Some(run)) if run.last != next.after => {
            let extend = "UPDATE block SET after_created_at = ?2, after_id = ?3 WHERE id = ?1";
            connection.execute(extend, params![next.id, run.last.created, run.last.id]).map(|_| ())
        }
        _ => Ok(()),
    }
}

/// Decides about the last batches, if they do not fill a block.
fn finish_runs(runs: &mut Vec<Run>, is_end: bool) {
    let Some(rest) = runs.pop_if(|run| !run.is_full()) else { return };
    match runs.last_mut() {
        _ if is_end => {}
        // Few batches join the previous block, so that late imports do not leave many small ones.
        Some(previous) if rest.batches <= BLOCK_BATCHES / 2 => previous.append(rest),
        _ => runs.push(rest),
    }
}

/// Batches that become a block.
struct Run {
    after: Key,
    /// The last batch; `after` if there is none.
    last: Key,
    batches: usize,
    text: Vec<u8>,
}

impl Run {
    fn new(after: Key) -> Self {
        Self { last: after.clone(), after, batches: 0, text: Vec::new() }
    }

    fn is_full(&self) -> bool {
        self.batches >= BLOCK_BATCHES || self.text.len() >= BLOCK_TEXT_BYTES
    }

    /// Appends a row of created_at, batch_id, json.
    fn push(&mut self, row: &Row<'_>) -> rusqlite::Result<()> {
        if self.batches > 0 {
            self.text.push(b',');
        }
        self.text.extend_from_slice(row.get_ref(2)?.as_bytes()?);
        self.batches += 1;
        self.last.set(row.get(0)?, row.get_ref(1)?.as_str()?);
        Ok(())
    }

    fn append(&mut self, other: Run) {
        if other.batches > 0 {
            self.text.push(b',');
            self.text.extend_from_slice(&other.text);
            self.batches += other.batches;
            self.last = other.last;
        }
    }
}

fn insert_blocks(connection: &Connection, org: OrgId, runs: &[Run]) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO block (org_id, after_created_at, after_id, last_created_at, last_id,
                            batches, text_bytes, text_crc, deflated)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?;
    for (Run { after, last, batches, .. }, deflated) in runs.iter().zip(deflate(runs)) {
        let Piece { bytes, crc, text_bytes } = deflated.as_piece();
        if *batches > 0 {
            let text_bytes = u32::try_from(text_bytes).unwrap_or(u32::MAX);
            let batches = u32::try_from(*batches).unwrap_or(u32::MAX);
            insert.execute(params![
                org.0,
                after.created,
                after.id,
                last.created,
                last.id,
                batches,
                text_bytes,
                crc,
                bytes
            ])?;
        }
    }
    Ok(())
}

/// Compresses runs on all cores.
fn deflate(runs: &[Run]) -> Vec<Deflated> {
    let deflate = |runs: &[Run]| runs.iter().map(|run| Deflated::new(&run.text)).collect::<Vec<_>>();
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let mut shares = runs.chunks(runs.len().div_ceil(cores).max(1));
    let own = shares.next().unwrap_or_default();
    std::thread::scope(|scope| {
        let start =
            |share| (share, std::thread::Builder::new().spawn_scoped(scope, move || deflate(share)).ok());
        let others: Vec<_> = shares.map(start).collect();
        let mut deflated = deflate(own);
        for (share, thread) in others {
            // If a thread cannot be started, this one does its work.
            let done = thread.and_then(|thread| thread.join().ok());
            deflated.extend(done.unwrap_or_else(|| deflate(share)));
        }
        deflated
    })
}
