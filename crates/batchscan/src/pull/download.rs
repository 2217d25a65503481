//! Downloads pages, converts them to rows in parallel, and writes them in order.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::Context;
use batchscan_client::{Error, Page, Pages, TryStreamExt, UtcInstant};
use batchscan_formats::write::TextWriter;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::{JoinHandle, spawn_blocking};

use super::output::{Output, PullError};
use crate::selection::Selection;

/// Pages between download and writer. Enough to keep both busy; bounds the memory.
const PAGES_QUEUED_MAX: usize = 6;
/// Names of unknown fields in a note.
const UNKNOWN_MAX: usize = 10;

/// Which batches are written, and how.
#[derive(Clone, Debug)]
pub(crate) struct RowFormat {
    pub(crate) writer: TextWriter,
    pub(crate) selection: Selection,
}

/// Writes pages to the output.
#[derive(Debug)]
pub(crate) struct PageWriter {
    format: Arc<RowFormat>,
    pub(crate) output: Output,
    pub(crate) totals: Totals,
}

/// What was written so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) batches: u64,
    pub(crate) first_date: Option<UtcInstant>,
    pub(crate) last_date: Option<UtcInstant>,
    /// Names of fields that are not in the API contract.
    pub(crate) unknown_fields: BTreeSet<String>,
}

impl PageWriter {
    pub(crate) fn new(format: RowFormat, output: Output) -> Self {
        Self { format: Arc::new(format), output, totals: Totals::default() }
    }

    /// Writes pages until the last one or until `stop` is done. Calls `on_page` after each.
    pub(crate) async fn run(
        self,
        mut pages: Pages,
        stop: impl Future<Output = ()>,
        on_page: impl Fn(&Totals) + Send + 'static,
    ) -> Result<Self, PullError> {
        let format = self.format.clone();
        let (sender, receiver) = channel(PAGES_QUEUED_MAX);
        let runtime = Handle::current();
        let writing = spawn_blocking(move || self.write_all(receiver, &runtime, &on_page));
        let mut stop = std::pin::pin!(stop);
        let stopped = loop {
            let page = tokio::select! {
                page = pages.try_next() => page,
                () = &mut stop => break Some(PullError::Interrupted),
                // The writer has failed and returns its error below.
                () = sender.closed() => break None,
            };
            match page {
                Ok(Some(page)) => {
                    let format = format.clone();
                    if sender.send(spawn_blocking(move || Rows::from_page(&format, &page))).await.is_err() {
                        break None;
                    }
                }
                Ok(None) => break None,
                Err(error) => break Some(PullError::Failed(error.into())),
            }
        };
        drop(sender);
        let writer = writing.await.context("the writer failed")??;
        stopped.map_or(Ok(writer), Err)
    }

    /// Several pages are converted at once; rows are written in order.
    fn write_all(
        mut self,
        mut pages: Receiver<JoinHandle<Result<Rows, Error>>>,
        runtime: &Handle,
        on_page: &dyn Fn(&Totals),
    ) -> Result<Self, PullError> {
        while let Some(rows) = pages.blocking_recv() {
            let rows = runtime.block_on(rows).context("cannot convert a page")?;
            self.write(rows.map_err(anyhow::Error::new)?)?;
            on_page(&self.totals);
        }
        Ok(self)
    }

    fn write(&mut self, mut rows: Rows) -> Result<(), PullError> {
        let writer = &self.format.writer;
        // Each row starts with a separator, which the first one must not have.
        if self.totals.batches == 0 {
            rows.text.replace_range(..writer.separator().len().min(rows.text.len()), "");
        }
        if self.output.bytes == 0 {
            let mut head = String::new();
            writer.push_header(&mut head);
            rows.text.insert_str(0, &head);
        }
        if rows.is_last {
            writer.push_footer(&mut rows.text);
        }
        self.output.append(rows.text.as_bytes())?;
        self.totals.batches += rows.batches;
        self.totals.first_date = self.totals.first_date.or(rows.first_date);
        self.totals.last_date = rows.last_date.or(self.totals.last_date);
        let room = UNKNOWN_MAX.saturating_sub(self.totals.unknown_fields.len());
        self.totals.unknown_fields.extend(rows.unknown_fields.into_iter().take(room));
        Ok(())
    }
}

struct Rows {
    /// Each row with a separator before it.
    text: String,
    batches: u64,
    first_date: Option<UtcInstant>,
    last_date: Option<UtcInstant>,
    unknown_fields: BTreeSet<String>,
    is_last: bool,
}

impl Rows {
    fn from_page(format: &RowFormat, page: &Page) -> Result<Self, Error> {
        let (text, is_last) = (String::with_capacity(page.size()), page.next_token().is_none());
        let unknown_fields = BTreeSet::new();
        let mut rows = Self { text, batches: 0, first_date: None, last_date: None, unknown_fields, is_last };
        for row in page.rows() {
            let (received, source) = row?;
            rows.first_date = rows.first_date.or(Some(received.batch_creation_date));
            rows.last_date = Some(received.batch_creation_date);
            if !format.selection.includes(&received.batch) {
                continue;
            }
            rows.text.push_str(format.writer.separator());
            format.writer.push_batch(&mut rows.text, &received.batch, source);
            rows.batches += 1;
            let room = UNKNOWN_MAX.saturating_sub(rows.unknown_fields.len());
            rows.unknown_fields.extend(received.unknown.into_keys().take(room));
        }
        Ok(rows)
    }
}
