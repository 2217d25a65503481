//! Downloads pages, converts them to rows in parallel, and writes them in order.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::sync::Arc;

use anyhow::Context;
use batchscan_client::{Error, Page, Pages, TryStreamExt, UtcInstant};
use batchscan_formats::write::{Columns, TextFormat};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::{JoinHandle, spawn_blocking};

use super::journal::Next;
use super::partial_file::PartialFile;
use crate::selection::Selection;

/// Pages between download and writer. Enough to keep both busy; bounds the memory.
const PAGES_QUEUED_MAX: usize = 6;
/// Names of unknown fields in a note.
const UNKNOWN_MAX: usize = 10;

/// Where rows are written to.
#[derive(Debug)]
pub(crate) enum Sink {
    /// A file that can be resumed.
    Partial(Box<PartialFile>),
    Stdout,
    /// An unnamed file, for a binary format on standard output.
    TempFile(File),
}

/// Which batches are written, and how.
#[derive(Clone, Debug)]
pub(crate) struct RowFormat {
    pub(crate) form: TextFormat,
    pub(crate) columns: Columns,
    pub(crate) selection: Selection,
}

/// Writes pages to a sink.
#[derive(Debug)]
pub(crate) struct PageWriter {
    format: Arc<RowFormat>,
    pub(crate) sink: Sink,
    pub(crate) totals: Totals,
}

/// What was written so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) batches: u64,
    pub(crate) bytes: u64,
    pub(crate) first_date: Option<UtcInstant>,
    pub(crate) last_date: Option<UtcInstant>,
    /// Names of fields that are not in the API contract.
    pub(crate) unknown_fields: BTreeSet<String>,
    /// Whether the last page is written.
    pub(crate) is_complete: bool,
}

/// Why a pull did not complete.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PullError {
    /// The service failed.
    #[error(transparent)]
    Service(#[from] Error),
    /// The file cannot be written.
    #[error(transparent)]
    Write(#[from] anyhow::Error),
    /// The file is complete but cannot be renamed.
    #[error(transparent)]
    Rename(anyhow::Error),
    /// The reader of standard output has closed the pipe.
    #[error("broken pipe")]
    BrokenPipe,
    /// By a signal.
    #[error("interrupted")]
    Interrupted,
}

impl PullError {
    /// Whether `--resume` can succeed. Not if the disk is full or the data is invalid.
    pub(crate) fn can_resume(&self) -> bool {
        match self {
            PullError::Interrupted | PullError::Rename(_) => true,
            PullError::Service(error) => !matches!(error, Error::InvalidBatch(_) | Error::PaginationLoop(_)),
            PullError::Write(_) | PullError::BrokenPipe => false,
        }
    }
}

impl PageWriter {
    pub(crate) fn new(format: RowFormat, sink: Sink) -> Self {
        let mut totals = Totals::default();
        if let Sink::Partial(partial) = &sink {
            (totals.batches, totals.bytes) = (partial.journal.batches, partial.len());
            totals.is_complete = partial.journal.next == Next::End;
        }
        Self { format: Arc::new(format), sink, totals }
    }

    /// Writes pages until the last one or until `stop` is done. Calls `on_page` after each.
    pub(crate) async fn run(
        self,
        mut pages: Pages,
        stop: impl Future<Output = ()>,
        on_page: impl Fn(&Totals) + Send + 'static,
    ) -> anyhow::Result<(Self, Result<(), PullError>)> {
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
                Err(error) => break Some(PullError::Service(error)),
            }
        };
        drop(sender);
        let (writer, written) = writing.await.context("the writer failed")?;
        Ok((writer, written.and(stopped.map_or(Ok(()), Err))))
    }

    /// Writes the journal also after an error, so that the pull can be resumed.
    fn write_all(
        mut self,
        pages: Receiver<JoinHandle<Result<Rows, Error>>>,
        runtime: &Handle,
        on_page: &dyn Fn(&Totals),
    ) -> (Self, Result<(), PullError>) {
        let written = self.write_pages(pages, runtime, on_page);
        let journaled = self.sink.write_journal();
        (self, written.and(journaled))
    }

    /// Several pages are converted at once; rows are written in order.
    fn write_pages(
        &mut self,
        mut pages: Receiver<JoinHandle<Result<Rows, Error>>>,
        runtime: &Handle,
        on_page: &dyn Fn(&Totals),
    ) -> Result<(), PullError> {
        while let Some(rows) = pages.blocking_recv() {
            let rows = runtime.block_on(rows).context("cannot convert a page")?;
            self.write(rows?)?;
            on_page(&self.totals);
        }
        Ok(())
    }

    fn write(&mut self, mut rows: Rows) -> Result<(), PullError> {
        let RowFormat { form, columns, .. } = &*self.format;
        // Each row starts with a separator, which the first one must not have.
        if self.totals.batches == 0 {
            rows.text.replace_range(..form.separator().len().min(rows.text.len()), "");
        }
        if self.totals.bytes == 0 {
            let mut head = String::new();
            form.push_header(&mut head, columns);
            rows.text.insert_str(0, &head);
        }
        if rows.next == Next::End {
            form.push_footer(&mut rows.text);
        }
        self.sink.append(rows.text.as_bytes(), rows.batches, rows.next.clone())?;
        self.totals.bytes += rows.text.len() as u64;
        self.totals.batches += rows.batches;
        self.totals.is_complete = rows.next == Next::End;
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
    next: Next,
}

impl Rows {
    fn from_page(format: &RowFormat, page: &Page) -> Result<Self, Error> {
        let next = page.next_token().map_or(Next::End, |token| Next::After(token.to_owned()));
        let text = String::with_capacity(page.size());
        let unknown_fields = BTreeSet::new();
        let mut rows = Self { text, batches: 0, first_date: None, last_date: None, unknown_fields, next };
        for row in page.rows() {
            let (received, source) = row?;
            rows.first_date = rows.first_date.or(Some(received.batch_creation_date));
            rows.last_date = Some(received.batch_creation_date);
            if !format.selection.includes(&received.batch) {
                continue;
            }
            rows.text.push_str(format.form.separator());
            format.form.push_batch(&mut rows.text, &received.batch, source, &format.columns);
            rows.batches += 1;
            let room = UNKNOWN_MAX.saturating_sub(rows.unknown_fields.len());
            rows.unknown_fields.extend(received.unknown.into_keys().take(room));
        }
        Ok(rows)
    }
}

impl Sink {
    fn append(&mut self, bytes: &[u8], batches: u64, next: Next) -> Result<(), PullError> {
        match self {
            Sink::Partial(partial) => partial.append(bytes, batches, next)?,
            Sink::TempFile(file) => file.write_all(bytes).context("cannot write to a temporary file")?,
            Sink::Stdout => {
                let mut out = std::io::stdout().lock();
                out.write_all(bytes).and_then(|()| out.flush()).map_err(stdout_error)?;
            }
        }
        Ok(())
    }

    /// Writes the journal, if the sink has one.
    fn write_journal(&mut self) -> Result<(), PullError> {
        match self {
            Sink::Partial(partial) => Ok(partial.write_journal()?),
            Sink::TempFile(_) | Sink::Stdout => Ok(()),
        }
    }
}

pub(super) fn stdout_error(error: std::io::Error) -> PullError {
    match error.kind() {
        ErrorKind::BrokenPipe => PullError::BrokenPipe,
        _ => anyhow::Error::new(error).context("cannot write to standard output").into(),
    }
}
