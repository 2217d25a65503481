//! The way of a pull: pages come from the service on one side, rows are made of those that are there, and written in
//! their order on the other. Knows nothing of names and of what happens to the file afterwards.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{ErrorKind, Write};

use anyhow::Context;
use batchscan_client::{Error, Page, Pages, TryStreamExt, UtcInstant};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::{JoinHandle, spawn_blocking};

use super::partial::{Next, Partial};
use batchscan_formats::write::TextFormat;

/// Pages on their way to the writer: enough to keep all sides busy, few enough to hold in memory.
const PAGES_WAITING_MAX: usize = 6;
/// Names of unknown fields worth telling.
const UNKNOWN_MAX: usize = 10;

/// What rows are written to.
#[derive(Debug)]
pub(crate) enum Growing {
    /// A file that a later pull can go on with.
    Kept(Box<Partial>),
    /// Standard output.
    Stdout,
    /// A temporary file without a name.
    Spool(File),
}

/// The writing side.
#[derive(Debug)]
pub(crate) struct Writer {
    form: TextFormat,
    pub(crate) growing: Growing,
    pub(crate) tally: Tally,
}

/// What has been written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) batches: u64,
    pub(crate) bytes: u64,
    /// The date of the last batch.
    pub(crate) reached: Option<UtcInstant>,
    /// Fields that this program does not know.
    pub(crate) unknown: BTreeSet<String>,
    pub(crate) is_ended: bool,
}

/// Why a pull did not come to its end.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// The service, or the way to it.
    Service(Error),
    /// The file, or the disk under it.
    Writing(anyhow::Error),
    /// All is there, and the name is not to be had.
    Naming(anyhow::Error),
    /// Whoever read standard output went away.
    NobodyReads,
    /// Somebody asked for it.
    Interrupted,
}

impl Stopped {
    /// Whether the same pull may come to its end another time. Not when the disk is full or the data are not batches:
    /// then what is there is of no use.
    pub(crate) fn leaves_hope(&self) -> bool {
        match self {
            Stopped::Interrupted | Stopped::Naming(_) => true,
            Stopped::Service(error) => !matches!(error, Error::InvalidBatch(_) | Error::PaginationLoop(_)),
            Stopped::Writing(_) | Stopped::NobodyReads => false,
        }
    }
}

impl Writer {
    pub(crate) fn new(form: TextFormat, growing: Growing) -> Self {
        let mut tally = Tally::default();
        if let Growing::Kept(partial) = &growing {
            (tally.batches, tally.bytes) = (partial.journal.batches, partial.len());
            tally.is_ended = partial.journal.next == Next::End;
        }
        Self { form, growing, tally }
    }

    /// Writes pages as they come, until the last one or until `stop` is done. `on_page` is told after each.
    pub(crate) async fn run(
        self,
        mut pages: Pages,
        stop: impl Future<Output = ()>,
        on_page: impl Fn(&Tally) + Send + 'static,
    ) -> anyhow::Result<(Self, Result<(), Stopped>)> {
        let form = self.form;
        let (sender, receiver) = channel(PAGES_WAITING_MAX);
        let runtime = Handle::current();
        let writing = spawn_blocking(move || self.write_all(receiver, &runtime, &on_page));
        let mut stop = std::pin::pin!(stop);
        let stopped = loop {
            let page = tokio::select! {
                page = pages.try_next() => page,
                () = &mut stop => break Some(Stopped::Interrupted),
                // A writer that has ended says why itself, and need not wait for a service that is away.
                () = sender.closed() => break None,
            };
            match page {
                Ok(Some(page)) => {
                    if sender.send(spawn_blocking(move || Rows::of(form, &page))).await.is_err() {
                        break None;
                    }
                }
                Ok(None) => break None,
                Err(error) => break Some(Stopped::Service(error)),
            }
        };
        drop(sender);
        let (writer, written) = writing.await.context("writing broke off")?;
        Ok((writer, written.and(stopped.map_or(Ok(()), Err))))
    }

    /// However it ends, the next pull can go on from the last page that was written.
    fn write_all(
        mut self,
        pages: Receiver<JoinHandle<Result<Rows, Error>>>,
        runtime: &Handle,
        on_page: &dyn Fn(&Tally),
    ) -> (Self, Result<(), Stopped>) {
        let written = self.write_each(pages, runtime, on_page);
        let vouched = self.growing.vouch();
        (self, written.and(vouched))
    }

    /// Rows are made of several pages at once, and written in the order of the pages.
    fn write_each(
        &mut self,
        mut pages: Receiver<JoinHandle<Result<Rows, Error>>>,
        runtime: &Handle,
        on_page: &dyn Fn(&Tally),
    ) -> Result<(), Stopped> {
        while let Some(rows) = pages.blocking_recv() {
            let made = match runtime.block_on(rows) {
                Ok(made) => made.map_err(Stopped::Service),
                Err(broken) => Err(Stopped::Writing(anyhow::Error::new(broken).context("a page broke"))),
            };
            made.and_then(|rows| self.write(rows))?;
            on_page(&self.tally);
        }
        Ok(())
    }

    fn write(&mut self, mut rows: Rows) -> Result<(), Stopped> {
        // Rows are made without knowing what is before them.
        if self.tally.batches == 0 {
            rows.text.replace_range(..self.form.separator().len().min(rows.text.len()), "");
        }
        if self.tally.bytes == 0 {
            let mut head = String::new();
            self.form.push_header(&mut head);
            rows.text.insert_str(0, &head);
        }
        if rows.next == Next::End {
            self.form.push_footer(&mut rows.text);
        }
        self.growing.append(rows.text.as_bytes(), rows.batches, rows.next.clone())?;
        self.tally.bytes += rows.text.len() as u64;
        self.tally.batches += rows.batches;
        self.tally.is_ended = rows.next == Next::End;
        self.tally.reached = rows.reached.or(self.tally.reached);
        let room = UNKNOWN_MAX.saturating_sub(self.tally.unknown.len());
        self.tally.unknown.extend(rows.unknown.into_iter().take(room));
        Ok(())
    }
}

/// What a page becomes.
struct Rows {
    /// Each row with what stands between two of them before it.
    text: String,
    batches: u64,
    reached: Option<UtcInstant>,
    unknown: BTreeSet<String>,
    next: Next,
}

impl Rows {
    fn of(form: TextFormat, page: &Page) -> Result<Self, Error> {
        let next = page.next_token().map_or(Next::End, |token| Next::After(token.to_owned()));
        let text = String::with_capacity(page.size());
        let mut rows = Self { text, batches: 0, reached: None, unknown: BTreeSet::new(), next };
        for row in page.rows() {
            let (received, source) = row?;
            rows.text.push_str(form.separator());
            form.push_batch(&mut rows.text, &received.batch, source);
            rows.batches += 1;
            rows.reached = Some(received.batch_creation_date);
            let room = UNKNOWN_MAX.saturating_sub(rows.unknown.len());
            rows.unknown.extend(received.unknown.into_keys().take(room));
        }
        Ok(rows)
    }
}

impl Growing {
    fn append(&mut self, bytes: &[u8], batches: u64, next: Next) -> Result<(), Stopped> {
        match self {
            Growing::Kept(partial) => partial.append(bytes, batches, next).map_err(Stopped::Writing),
            Growing::Spool(file) => {
                let written = file.write_all(bytes).context("cannot write a temporary file");
                written.map_err(Stopped::Writing)
            }
            Growing::Stdout => write_out(bytes),
        }
    }

    /// Vouches for all that was added, where somebody may go on with it.
    fn vouch(&mut self) -> Result<(), Stopped> {
        match self {
            Growing::Kept(partial) => partial.vouch().map_err(Stopped::Writing),
            Growing::Spool(_) | Growing::Stdout => Ok(()),
        }
    }
}

/// Writes to standard output.
pub(crate) fn write_out(bytes: &[u8]) -> Result<(), Stopped> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(Stopped::NobodyReads),
        Err(error) => {
            Err(Stopped::Writing(anyhow::Error::new(error).context("cannot write to standard output")))
        }
    }
}
