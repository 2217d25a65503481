//! A page in the making: rows are copied into one buffer until it is full, and one more is looked at.

use batchscan_model::{Batch, Position};

use super::{DataVersion, Page, PageLimit};

/// The first allocation of a page: small windows fit, and so does what is needed to guess the size of larger ones.
const BUFFER_BYTES_FIRST: usize = 16 * 1024;

/// A stored text that is no batch.
#[derive(Debug, thiserror::Error)]
#[error("a stored batch is not a batch")]
pub(super) struct NotABatch;

/// A page that is being filled.
pub(super) struct Filling {
    limit: PageLimit,
    text: Vec<u8>,
    rows: usize,
    /// The batch that filled the page.
    last: Option<Position>,
    next: Option<Position>,
}

impl Filling {
    pub(super) fn new(opening: &str, limit: PageLimit) -> Self {
        let mut text = Vec::with_capacity(BUFFER_BYTES_FIRST);
        text.extend_from_slice(opening.as_bytes());
        Self { limit, text, rows: 0, last: None, next: None }
    }

    /// Whether nothing more is to be read.
    pub(super) fn is_done(&self) -> bool {
        self.next.is_some() || self.limit.rows == 0
    }

    /// Takes the next batch in order. Past the last one that fits, it only notes that there are more.
    pub(super) fn take(&mut self, json: &[u8]) -> Result<(), NotABatch> {
        if self.last.is_some() {
            self.next = self.last.take();
            return Ok(());
        }
        let Self { limit, text, rows, .. } = self;
        if text.len() + json.len() + 1 > text.capacity() {
            text.reserve(expected_rest(text.len(), *rows, *limit).max(json.len() + 1));
        }
        if *rows > 0 {
            text.push(b',');
        }
        text.extend_from_slice(json);
        *rows += 1;
        if *rows >= limit.rows || text.len() >= limit.bytes {
            self.last = Some(position(json)?);
        }
        Ok(())
    }

    /// The page, read at that version.
    pub(super) fn finish(self, version: DataVersion) -> Page {
        Page { version, text: self.text, rows: self.rows, next: self.next }
    }
}

/// How much is still to come if the batches go on as they began. Growing once, to the right size, spares copying the
/// page once more on its way.
fn expected_rest(bytes: usize, rows: usize, limit: PageLimit) -> usize {
    let row_bytes = bytes / rows.max(1) + 1;
    let by_rows = row_bytes.saturating_mul(limit.rows.saturating_sub(rows));
    let rest = by_rows.min(limit.bytes.saturating_sub(bytes));
    // A sixteenth more than expected: batches differ. What is left over is given back before the page is kept.
    rest + rest / 16 + row_bytes
}

/// Where a batch stands, by its own text: reading the key beside it would cost every row a tenth of its price.
fn position(json: &[u8]) -> Result<Position, NotABatch> {
    let text = std::str::from_utf8(json).map_err(|_| NotABatch)?;
    Batch::from_json(text).map(|batch| batch.position()).map_err(|_| NotABatch)
}
