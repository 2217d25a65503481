//! Builds one page: appends batches and compressed blocks until the page is full, plus one to see whether more follow.

use batchscan_model::{Batch, Position};

use crate::errors::StoreError;
use crate::gzip::{Deflated, Piece, TEXT_BYTES_MIN};
use crate::page::{Body, DataVersion, Encoding, Page, PageLimit, PageRequest, Resume};

/// The first allocation of a page. Enough for small date ranges, and to estimate the size of larger pages.
const BUFFER_BYTES_FIRST: usize = 16 * 1024;
/// The maximum number of blocks to reserve memory for before reading them. A page of 1,000 batches has about twenty.
const BLOCKS_RESERVED_MAX: usize = 24;

/// A page that is being read.
pub(crate) struct PageBuilder {
    limit: PageLimit,
    encoding: Encoding,
    first_version: Option<i64>,
    /// The compressed start of the page, if it has blocks.
    deflated: Option<Deflated>,
    /// The text after that.
    text: Vec<u8>,
    rows: usize,
    /// The batch that filled the page.
    last: Option<Position>,
    /// The same, once another batch is known to follow.
    next: Option<Position>,
}

impl PageBuilder {
    pub(crate) fn new(request: &PageRequest, limit: PageLimit) -> Self {
        let mut text = Vec::with_capacity(BUFFER_BYTES_FIRST);
        text.extend_from_slice(request.body_prefix.as_bytes());
        Self {
            limit,
            encoding: request.encoding,
            first_version: request.resume.as_ref().map(|resume| resume.first_version),
            deflated: None,
            text,
            rows: 0,
            last: None,
            next: None,
        }
    }

    /// Whether nothing more has to be read.
    pub(crate) fn is_done(&self) -> bool {
        self.next.is_some() || self.limit.rows == 0
    }

    /// Appends the next batch. If the page is full, only records that more batches follow.
    pub(crate) fn append(&mut self, json: &[u8]) -> Result<(), StoreError> {
        if self.last.is_some() {
            self.note_more();
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

    /// Whether a block of this many batches fits.
    pub(crate) fn has_room_for(&self, rows: usize) -> bool {
        !self.is_done() && rows <= self.rows_left()
    }

    /// More batches follow, if the page is full.
    pub(crate) fn note_more(&mut self) {
        self.next = self.last.take().or(self.next.take());
    }

    /// How many batches fit.
    pub(crate) fn rows_left(&self) -> usize {
        if self.last.is_some() { 0 } else { self.limit.rows.saturating_sub(self.rows) }
    }

    /// Appends a compressed block that fits. `last` returns the position of its last batch.
    pub(crate) fn append_block(
        &mut self,
        rows: usize,
        piece: Piece<'_>,
        last: impl FnOnce() -> Option<Position>,
    ) -> Result<(), StoreError> {
        if self.rows > 0 {
            self.text.push(b',');
        }
        if self.deflated.is_none() {
            let blocks = (self.limit.rows / rows.max(1)).min(BLOCKS_RESERVED_MAX) + 1;
            self.deflated.get_or_insert_default().reserve(blocks * piece.bytes.len());
        }
        self.compress_text().push_piece(piece);
        self.rows += rows;
        if self.is_full() {
            self.last = Some(last().ok_or_else(invalid_row)?);
        }
        Ok(())
    }

    /// The finished page. Compresses what is not compressed yet, which can take milliseconds.
    pub(crate) fn finish(mut self, version: DataVersion) -> Page {
        let is_long = self.deflated.is_some() || self.text.len() >= TEXT_BYTES_MIN;
        if self.encoding == Encoding::Gzip && is_long {
            self.compress_text();
        }
        let next = self.next.map(|after| Resume {
            after,
            first_version: self.first_version.unwrap_or(version.number),
            last_version: version.number,
        });
        let body = self.deflated.map_or(Body::Identity(self.text), Body::Gzip);
        Page { version, rows: self.rows, next, body }
    }

    fn is_full(&self) -> bool {
        let bytes = self.text.len() + self.deflated.as_ref().map_or(0, Deflated::text_bytes);
        self.rows >= self.limit.rows || bytes >= self.limit.bytes
    }

    fn compress_text(&mut self) -> &mut Deflated {
        let deflated = self.deflated.get_or_insert_default();
        if !self.text.is_empty() {
            deflated.push_text(&self.text);
            self.text.clear();
        }
        deflated
    }
}

/// The expected bytes of the remaining batches. Growing the buffer once, to the right size, avoids copying the page.
fn expected_rest(bytes: usize, rows: usize, limit: PageLimit) -> usize {
    let row_bytes = bytes / rows.max(1) + 1;
    let by_rows = row_bytes.saturating_mul(limit.rows.saturating_sub(rows));
    let rest = by_rows.min(limit.bytes.saturating_sub(bytes));
    // A sixteenth more, because batches differ in size. The finished page gives back what is left.
    rest + rest / 16 + row_bytes
}

/// Reads the position from the batch itself. Selecting the key columns would make every row a tenth more expensive.
fn position(json: &[u8]) -> Result<Position, StoreError> {
    let batch = std::str::from_utf8(json).ok().and_then(|text| Batch::from_json(text).ok());
    batch.map(|batch| batch.position()).ok_or_else(invalid_row)
}

fn invalid_row() -> StoreError {
    StoreError::Broken("stored row is not a valid batch".into())
}
