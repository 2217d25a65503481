//! Blocks: runs of batches compressed at import (decision 049). Creates, replaces and checks them; `pages` reads them.
//!
//! A block covers the range of the batch order from `after` (exclusive) to `last` (inclusive): no other batch lies in it.
//! Blocks follow each other without a gap, so every batch up to the last block is in one. A missing block costs time, never
//! correctness.

use std::collections::VecDeque;

use batchscan_model::OrgId;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::errors::{AdminError, StoreError};
use crate::gzip::{Deflated, Piece};
use crate::page::Key;
use crate::sql::{Columns, Kind, Sql, Table, Value, Values, values};

/// Batches per block. A page of a thousand has twenty blocks, and compresses fifty batches at its edges on average. With
/// twice as many, pages would be 4 % smaller and take half as long again.
pub(crate) const BLOCK_BATCHES: usize = 50;
/// The text of most blocks is shorter.
const USUAL_TEXT_BYTES: usize = 40 * 1024;
/// A block ends when its text reaches this size.
const BLOCK_TEXT_BYTES: usize = 256 * 1024;
/// Batches that are read by one statement and compressed by one thread.
const PART_BATCHES: i64 = 2_000;
/// Parts that are compressed at once: enough to keep up with the database, few enough to bound memory.
const PARTS_AT_ONCE: usize = 4;
/// Blocks that are checked at once.
const BLOCKS_AT_ONCE: i64 = 100;

const TABLE: Table = Table {
    name: "block",
    columns: &[
        ("org_id", Kind::Integer),
        ("after_created_at", Kind::Integer),
        ("after_id", Kind::Text),
        ("last_created_at", Kind::Integer),
        ("last_id", Kind::Text),
        ("batches", Kind::Integer),
        ("text_bytes", Kind::Integer),
        ("text_crc", Kind::Integer),
        ("deflated", Kind::Bytes),
    ],
};

/// Deletes the block at a key: for a batch that is removed or moved.
pub(crate) const DELETE_AT: &str = "
    DELETE FROM block WHERE org_id = $1 AND (after_created_at, after_id) < ($2, $3)
    AND (last_created_at, last_id) =
        (SELECT last_created_at, last_id FROM block
         WHERE org_id = $1 AND (last_created_at, last_id) >= ($2, $3)
         ORDER BY last_created_at, last_id LIMIT 1)";
/// Deletes the blocks between two keys with batches of a version.
const DELETE_CHANGED: &str = "
    DELETE FROM block
    WHERE org_id = $1 AND (last_created_at, last_id) >= ($3, $4) AND (after_created_at, after_id) < ($5, $6)
      AND EXISTS (SELECT 1 FROM batch b
                  WHERE b.org_id = $1 AND b.version = $2
                    AND (b.created_at, b.batch_id) > (after_created_at, after_id)
                    AND (b.created_at, b.batch_id) <= (last_created_at, last_id)
                  -- One probe of an index for each block. Without an offset, PostgreSQL joins instead.
                  LIMIT 1 OFFSET 0)";
/// The blocks that end after a key, up to a key.
const RANGES: &str = "
    SELECT after_created_at, after_id, last_created_at, last_id FROM block
    WHERE org_id = $1 AND (last_created_at, last_id) > ($2, $3) AND (last_created_at, last_id) <= ($4, $5)
    ORDER BY last_created_at, last_id";
const BATCHES: &str = "
    SELECT created_at, batch_id, json FROM batch
    WHERE org_id = $1 AND (created_at, batch_id) > ($2, $3) AND (created_at, batch_id) <= ($4, $5)
    ORDER BY created_at, batch_id LIMIT $6";

/// The batches of a version have changed: replaces their blocks, and fills gaps around them. Batches moved away or were
/// removed between the creation times of `moved`: their blocks were deleted already.
pub(crate) async fn update(
    sql: &mut dyn Sql,
    org: OrgId,
    version: i64,
    moved: Option<(i64, i64)>,
) -> Result<(), AdminError> {
    let moved = moved.map(|(low, high)| [Key::new(low, ""), Key::new(high.saturating_add(1), "")]);
    let ends = [end(sql, org, version, "").await?, end(sql, org, version, "DESC").await?];
    let keys = || ends.iter().flatten().chain(moved.iter().flatten());
    let (Some(low), Some(high)) = (keys().min().cloned(), keys().max().cloned()) else { return Ok(()) };
    let range = values![org, version, low.created, &low.id, high.created, &high.id];
    sql.execute(DELETE_CHANGED, range).await?;
    for (after, next) in gaps(sql, org, &low, &high).await? {
        compress(sql, org, after, next).await?;
    }
    Ok(())
}

/// The first or last batch of a version.
async fn end(sql: &mut dyn Sql, org: OrgId, version: i64, order: &str) -> Result<Option<Key>, AdminError> {
    let query = format!(
        "SELECT created_at, batch_id FROM batch WHERE org_id = $1 AND version = $2
         ORDER BY created_at {order}, batch_id {order} LIMIT 1"
    );
    sql.first(&query, values![org, version], |row| key(row, 0)).await
}

/// Replaces all blocks of an organisation.
pub(crate) async fn replace_all(sql: &mut dyn Sql, org: OrgId) -> Result<(), AdminError> {
    sql.execute("DELETE FROM block WHERE org_id = $1", values![org]).await?;
    compress(sql, org, Key::START, None).await
}

/// The ranges without blocks around two keys: each starts after a key and ends at a block or at the end of the order.
async fn gaps(
    sql: &mut dyn Sql,
    org: OrgId,
    low: &Key,
    high: &Key,
) -> Result<Vec<(Key, Option<Range>)>, AdminError> {
    let before = "SELECT last_created_at, last_id FROM block
                  WHERE org_id = $1 AND (last_created_at, last_id) < ($2, $3)
                  ORDER BY last_created_at DESC, last_id DESC LIMIT 1";
    let before = sql.first(before, values![org, low.created, &low.id], |row| key(row, 0)).await?;
    let end = "SELECT last_created_at, last_id FROM block
               WHERE org_id = $1 AND (last_created_at, last_id) >= ($2, $3)
               ORDER BY last_created_at, last_id LIMIT 1";
    let end = sql.first(end, values![org, high.created, &high.id], |row| key(row, 0)).await?;
    let (start, is_end) = (before.unwrap_or(Key::START), end.is_none());
    let end = end.unwrap_or(Key::END);
    let (mut gaps, mut after) = (Vec::new(), start.clone());
    let mut each = |row: &dyn Columns| {
        let block = range(row, 0)?;
        let after = std::mem::replace(&mut after, block.last.clone());
        if block.after != after {
            gaps.push((after, Some(block)));
        }
        Ok(())
    };
    let blocks = values![org, start.created, &start.id, end.created, &end.id];
    sql.query(RANGES, blocks, &mut each).await?;
    gaps.extend(is_end.then_some((after, None)));
    Ok(gaps)
}

/// Compresses the batches between a key and the next block. Without a next block, the batches that do not fill a block stay
/// uncompressed until the next import.
async fn compress(sql: &mut dyn Sql, org: OrgId, after: Key, next: Option<Range>) -> Result<(), AdminError> {
    sql.run(sql.dialect().read_in_order).await?;
    let end = next.as_ref().map_or(Key::END, |next| next.after.clone());
    let (mut runs, mut compressor) = (vec![Run::new(after)], Compressor::new(org));
    loop {
        let after = runs.last().map_or(Key::START, |run| run.last.clone());
        let mut batches = 0;
        let mut each = |row: &dyn Columns| {
            batches += 1;
            add_batch(&mut runs, row)
        };
        let range = values![org, after.created, &after.id, end.created, &end.id, PART_BATCHES];
        sql.query(BATCHES, range, &mut each).await?;
        if batches < PART_BATCHES {
            break;
        }
        // The last one may still get the remaining batches.
        let last = runs.split_off(runs.len() - 1);
        compressor.add(sql, std::mem::replace(&mut runs, last)).await?;
    }
    finish_runs(&mut runs, next.is_none());
    let end = runs.last().map(|run| run.last.clone());
    compressor.add(sql, runs).await?;
    compressor.finish(sql).await?;
    // The next block also covers the empty range before it.
    match (next, end) {
        (Some(Range { after, last }), Some(end)) if end != after => {
            let extend = "UPDATE block SET after_created_at = $4, after_id = $5
                          WHERE org_id = $1 AND last_created_at = $2 AND last_id = $3";
            let values = values![org, last.created, &last.id, end.created, &end.id];
            sql.execute(extend, values).await.map(drop)
        }
        _ => Ok(()),
    }
}

/// Compresses blocks on threads for blocking work, while the database works on, and inserts them in their order.
struct Compressor {
    org: OrgId,
    running: VecDeque<JoinHandle<Vec<Values>>>,
}

impl Compressor {
    fn new(org: OrgId) -> Self {
        Self { org, running: VecDeque::new() }
    }

    async fn add(&mut self, sql: &mut dyn Sql, runs: Vec<Run>) -> Result<(), AdminError> {
        while self.running.len() >= PARTS_AT_ONCE {
            self.insert_first(sql).await?;
        }
        let org = self.org;
        let compress =
            move || runs.iter().filter(|run| run.batches > 0).map(|run| run.compress(org)).collect();
        self.running.push_back(spawn_blocking(compress));
        Ok(())
    }

    async fn finish(&mut self, sql: &mut dyn Sql) -> Result<(), AdminError> {
        while !self.running.is_empty() {
            self.insert_first(sql).await?;
        }
        Ok(())
    }

    async fn insert_first(&mut self, sql: &mut dyn Sql) -> Result<(), AdminError> {
        let Some(first) = self.running.pop_front() else { return Ok(()) };
        let blocks = first.await.map_err(|panicked| StoreError::Broken(panicked.to_string()))?;
        sql.insert(&TABLE, &blocks).await
    }
}

fn add_batch(runs: &mut Vec<Run>, row: &dyn Columns) -> Result<(), StoreError> {
    if let Some(full) = runs.last().filter(|run| run.is_full()) {
        runs.push(Run::new(full.last.clone()));
    }
    runs.last_mut().map_or(Ok(()), |run| run.push(row))
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

/// A block that differs from its batches.
pub(crate) struct WrongBlock {
    pub(crate) org: OrgId,
    pub(crate) org_name: String,
    range: Range,
}

impl WrongBlock {
    /// Gives its batches a new version: clients may have read them from the block. Returns their number.
    pub(crate) async fn mark_batches(&self, sql: &mut dyn Sql, version: i64) -> Result<u64, AdminError> {
        let mark = "UPDATE batch SET version = $1 WHERE org_id = $2
                    AND (created_at, batch_id) > ($3, $4) AND (created_at, batch_id) <= ($5, $6)";
        let Range { after, last } = &self.range;
        let range = values![version, self.org, after.created, &after.id, last.created, &last.id];
        sql.execute(mark, range).await
    }
}

/// Compares every block with its batches. Returns the first wrong ones.
pub(crate) async fn find_wrong(sql: &mut dyn Sql, limit: usize) -> Result<Vec<WrongBlock>, AdminError> {
    let mut wrong = Vec::new();
    let (mut org, mut after) = (OrgId(i64::MIN), Key::START);
    while wrong.len() < limit {
        let stored = sql.all(STORED, values![org, after.created, &after.id, BLOCKS_AT_ONCE], stored).await?;
        let Some(last) = stored.last() else { break };
        (org, after) = (last.org, last.range.last.clone());
        for block in stored {
            if !block.is_correct(sql).await? {
                wrong.push(WrongBlock { org: block.org, org_name: block.org_name, range: block.range });
            }
        }
    }
    wrong.truncate(limit);
    Ok(wrong)
}

const STORED: &str = "
    SELECT b.org_id, b.after_created_at, b.after_id, b.last_created_at, b.last_id, b.batches, b.text_bytes,
           b.text_crc, b.deflated, coalesce(o.name, 'organisation ' || b.org_id)
    FROM block b LEFT JOIN organisation o ON o.id = b.org_id
    WHERE (b.org_id, b.last_created_at, b.last_id) > ($1, $2, $3)
    ORDER BY b.org_id, b.last_created_at, b.last_id LIMIT $4";

/// A stored block.
struct Stored {
    org: OrgId,
    org_name: String,
    range: Range,
    batches: u64,
    /// `None` if the length or the checksum is wrong.
    text: Option<Vec<u8>>,
}

fn stored(row: &dyn Columns) -> Result<Stored, StoreError> {
    let text = piece(row.number(6)?, row.number(7)?, row.bytes(8)?.unwrap_or_default()).text();
    let (batches, org_name) = (row.count(5)?, row.string(9)?);
    Ok(Stored { org: row.org(0)?, org_name, range: range(row, 1)?, batches, text: text.ok() })
}

impl Stored {
    async fn is_correct(&self, sql: &mut dyn Sql) -> Result<bool, AdminError> {
        let Range { after, last } = &self.range;
        let mut run = Run::new(after.clone());
        let range = values![self.org, after.created, &after.id, last.created, &last.id, i64::MAX];
        sql.query(BATCHES, range, &mut |row| run.push(row)).await?;
        let is_text = self.text.as_ref().is_some_and(|text| *text == run.text);
        Ok(is_text && run.last == *last && run.batches as u64 == self.batches)
    }
}

/// The stored text of a block: length, checksum, deflate blocks.
pub(crate) fn piece(text_bytes: i64, crc: i64, bytes: &[u8]) -> Piece<'_> {
    let text_bytes = usize::try_from(text_bytes).unwrap_or(0);
    Piece { text_bytes, crc: u32::try_from(crc).unwrap_or(0), bytes }
}

/// The range that a block covers.
#[derive(Clone)]
struct Range {
    after: Key,
    last: Key,
}

fn range(row: &dyn Columns, column: usize) -> Result<Range, StoreError> {
    Ok(Range { after: key(row, column)?, last: key(row, column + 2)? })
}

/// A key from two columns.
pub(crate) fn key(row: &dyn Columns, column: usize) -> Result<Key, StoreError> {
    Ok(Key { created: row.number(column)?, id: row.string(column + 1)? })
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
        Self { last: after.clone(), after, batches: 0, text: Vec::with_capacity(USUAL_TEXT_BYTES) }
    }

    fn is_full(&self) -> bool {
        self.batches >= BLOCK_BATCHES || self.text.len() >= BLOCK_TEXT_BYTES
    }

    /// Appends a row of created_at, batch_id, json.
    fn push(&mut self, row: &dyn Columns) -> Result<(), StoreError> {
        if self.batches > 0 {
            self.text.push(b',');
        }
        self.text.extend_from_slice(row.text(2)?.unwrap_or_default().as_bytes());
        self.batches += 1;
        self.last.set(row.number(0)?, row.text(1)?.unwrap_or_default());
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

    /// The row of the block.
    fn compress(&self, org: OrgId) -> Values {
        let deflated = Deflated::new(&self.text);
        let Piece { bytes, crc, text_bytes } = deflated.as_piece();
        vec![
            Value::from(org),
            Value::from(self.after.created),
            Value::from(self.after.id.clone()),
            Value::from(self.last.created),
            Value::from(self.last.id.clone()),
            Value::from(self.batches as u64),
            Value::from(text_bytes as u64),
            Value::from(i64::from(crc)),
            Value::from(bytes.to_vec()),
        ]
    }
}
