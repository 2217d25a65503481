//! A page in the making: rows are copied into one buffer until it is full, and one more is looked at. Runs of rows that are
//! compressed already are copied as they are.

use batchscan_model::{Batch, Position};

use crate::deflate::{Deflated, Piece};
use crate::{DataVersion, Page, PageLimit, PageText};

/// The first allocation of a page: small windows fit, and so does what is needed to guess the size of larger ones.
const BUFFER_BYTES_FIRST: usize = 16 * 1024;

/// Room is made for so many compressed runs at most before there is any: a page of 1000 batches has ten.
const PIECES_EXPECTED_MAX: usize = 16;

/// A stored text that is no batch.
#[derive(Debug, thiserror::Error)]
#[error("a stored batch is not a batch")]
pub(super) struct NotABatch;

/// A page that is being filled.
pub(super) struct PageBuilder {
    limit: PageLimit,
    /// What came before the text, if that is compressed.
    deflated: Option<Deflated>,
    text: Vec<u8>,
    rows: usize,
    /// The batch that filled the page.
    last: Option<Position>,
    next: Option<Position>,
}

impl PageBuilder {
    pub(super) fn new(opening: &str, limit: PageLimit) -> Self {
        let mut text = Vec::with_capacity(BUFFER_BYTES_FIRST);
        text.extend_from_slice(opening.as_bytes());
        Self { limit, deflated: None, text, rows: 0, last: None, next: None }
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
        if self.is_full() {
            self.last = Some(position(json)?);
        }
        Ok(())
    }

    /// Whether so many more batches are not too many.
    pub(super) fn has_room_for(&self, rows: usize) -> bool {
        !self.is_done() && self.last.is_none() && rows <= self.limit.rows.saturating_sub(self.rows)
    }

    /// Takes a run of batches that is compressed already, for which there is room. `last` gives its last one's place.
    pub(super) fn take_piece(
        &mut self,
        rows: usize,
        piece: Piece<'_>,
        last: impl FnOnce() -> Option<Position>,
    ) -> Result<(), NotABatch> {
        if self.rows > 0 {
            self.text.push(b',');
        }
        if self.deflated.is_none() {
            let pieces = (self.limit.rows / rows.max(1)).min(PIECES_EXPECTED_MAX) + 1;
            self.deflated.get_or_insert_default().reserve(pieces * piece.bytes.len());
        }
        self.deflate_text().push_piece(piece);
        self.rows += rows;
        if self.is_full() {
            self.last = Some(last().ok_or(NotABatch)?);
        }
        Ok(())
    }

    /// The page, read at that version.
    pub(super) fn finish(mut self, version: DataVersion) -> Page {
        if self.deflated.is_some() {
            self.deflate_text();
        }
        let text = self.deflated.map_or(PageText::Plain(self.text), PageText::Deflated);
        Page { version, text, rows: self.rows, next: self.next }
    }

    fn is_full(&self) -> bool {
        let before = self.deflated.as_ref().map_or(0, Deflated::text_bytes);
        let bytes = self.text.len().saturating_add(usize::try_from(before).unwrap_or(usize::MAX));
        self.rows >= self.limit.rows || bytes >= self.limit.bytes
    }

    /// Compresses the text that is not compressed yet.
    fn deflate_text(&mut self) -> &mut Deflated {
        let deflated = self.deflated.get_or_insert_default();
        if !self.text.is_empty() {
            deflated.push_text(&self.text);
            self.text.clear();
        }
        deflated
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
