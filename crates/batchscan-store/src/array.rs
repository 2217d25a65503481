//! All batches of a date range as one JSON array, read page by page while the client receives it.

use batchscan_model::{DateRange, UtcInstant};
use bytes::Bytes;

use crate::errors::StoreError;
use crate::gzip::{Deflated, GzipStream};
use crate::page::{Body, Caller, DataVersion, Encoding, Page, PageLimit, PageRequest, PageResult, Resume};
use crate::store::{Database, Store};

/// The text of one chunk. Bounds the memory of a slow client and the time of one read.
const CHUNK_BYTES: usize = 512 * 1024;

/// Which batches to read as one array.
#[derive(Clone, Debug)]
pub struct ArrayRequest {
    /// The date filter.
    pub range: DateRange,
    /// The requested encoding. [`BatchArray::encoding`] is the one that was used.
    pub encoding: Encoding,
    /// The array must not be older than the data version with this number.
    pub min_version: i64,
    /// The current time, for the credential's expiry.
    pub now: UtcInstant,
}

/// A JSON array of batches.
#[derive(Debug)]
pub struct BatchArray {
    /// The data version of the first chunk.
    pub version: DataVersion,
    /// The encoding of the body.
    pub encoding: Encoding,
    /// The body.
    pub body: ArrayBody,
}

/// The body of a JSON array.
#[derive(Debug)]
pub enum ArrayBody {
    /// All of it.
    Whole(Bytes),
    /// A stream of chunks.
    Chunks(Box<ArrayChunks>),
}

impl Store {
    /// All matching batches as one array. `skip` is called as in [`Store::page`].
    pub async fn array<S: Send + 'static>(
        &self,
        caller: &Caller,
        request: ArrayRequest,
        skip: impl Fn(DataVersion) -> Option<S> + Send + Sync + 'static,
    ) -> Result<PageResult<S, BatchArray>, StoreError> {
        let ArrayRequest { range, encoding, min_version, now } = request;
        let first = PageRequest { min_version, ..chunk_request(range, None, encoding, usize::MAX, now) };
        let page = match self.page(caller, first, skip).await? {
            PageResult::Skipped(skipped) => return Ok(PageResult::Skipped(skipped)),
            PageResult::InvalidCredential => return Ok(PageResult::InvalidCredential),
            PageResult::Read(page) => page,
        };
        let version = page.version;
        if page.next.is_none() {
            self.check_count(caller, range, version, page.rows).await?;
            let encoding = page.encoding();
            let body = ArrayBody::Whole(page.finish("]"));
            return Ok(PageResult::Read(BatchArray { version, encoding, body }));
        }
        let chunks = ArrayChunks {
            store: self.clone(),
            caller: caller.clone(),
            range,
            rows: usize::MAX,
            rows_sent: 0,
            version: Some(version),
            gzip: (encoding == Encoding::Gzip).then(GzipStream::default),
            step: Step::Send(page),
        };
        let body = ArrayBody::Chunks(Box::new(chunks));
        Ok(PageResult::Read(BatchArray { version, encoding, body }))
    }
}

impl Store {
    /// Fails if a complete array has not all batches. In a damaged SQLite file, a page can look valid and lack some.
    async fn check_count(
        &self,
        caller: &Caller,
        range: DateRange,
        version: DataVersion,
        rows: usize,
    ) -> Result<(), StoreError> {
        let Database::Sqlite(store) = &self.database else { return Ok(()) };
        if range != DateRange::default() {
            return Ok(());
        }
        let counted = match store.indexed_batches(caller.org).await {
            // Too slow at the moment: the array is not checked.
            Err(StoreError::Unreachable(_)) => return Ok(()),
            counted => counted?,
        };
        match counted {
            Some((number, batches)) if number == version.number && batches != rows as u64 => {
                Err(StoreError::Unreadable(format!("read {rows} batches, but the index has {batches}")))
            }
            _ => Ok(()),
        }
    }
}

/// Why an array ends before its last batch.
#[derive(Debug, thiserror::Error)]
pub enum ArrayError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The caller's credential was revoked or has expired.
    #[error("the credential was revoked or expired during the response")]
    Revoked,
}

/// The chunks of an array. Each is read when it is requested.
#[derive(Debug)]
pub struct ArrayChunks {
    store: Store,
    caller: Caller,
    range: DateRange,
    /// How many batches fill a chunk, estimated from the previous one. A store discards rows that do not fit.
    rows: usize,
    rows_sent: usize,
    /// The data version of all chunks; `None` if it changed meanwhile.
    version: Option<DataVersion>,
    gzip: Option<GzipStream>,
    step: Step,
}

#[derive(Debug)]
enum Step {
    Send(Page),
    Read(Resume),
    Done,
}

impl ArrayChunks {
    /// The next bytes of the body; `None` after the last. An error must abort the response (decision 026).
    pub async fn next(&mut self, now: UtcInstant) -> Result<Option<Bytes>, ArrayError> {
        match std::mem::replace(&mut self.step, Step::Done) {
            Step::Send(page) => {
                self.rows_sent = page.rows;
                Ok(Some(self.chunk(page)?))
            }
            Step::Read(resume) => {
                let page = self.read(resume, now).await?;
                self.rows_sent += page.rows;
                self.version = self.version.filter(|version| *version == page.version);
                if let (None, Some(version)) = (&page.next, self.version) {
                    self.store.check_count(&self.caller, self.range, version, self.rows_sent).await?;
                }
                Ok(Some(self.chunk(page)?))
            }
            Step::Done => Ok(None),
        }
    }

    async fn read(&self, resume: Resume, now: UtcInstant) -> Result<Page, ArrayError> {
        let encoding = if self.gzip.is_some() { Encoding::Gzip } else { Encoding::Identity };
        let request = chunk_request(self.range, Some(resume), encoding, self.rows, now);
        match self.store.page(&self.caller, request, |_| None::<()>).await? {
            PageResult::Read(page) => Ok(page),
            PageResult::Skipped(()) | PageResult::InvalidCredential => Err(ArrayError::Revoked),
        }
    }

    fn chunk(&mut self, page: Page) -> Result<Bytes, StoreError> {
        let Page { mut body, next, rows, .. } = page;
        // A quarter more than expected, because batches differ in size.
        self.rows = CHUNK_BYTES / (body.text_bytes() / rows.max(1)).max(1) * 5 / 4 + 1;
        if rows == 0 {
            // The batches that followed were removed meanwhile: there is nothing to separate with a comma.
            body = Body::Identity(Vec::new());
        }
        let closing: &[u8] = if next.is_none() { b"]" } else { b"" };
        self.step = next.map_or(Step::Done, Step::Read);
        let Some(gzip) = &mut self.gzip else {
            let Body::Identity(mut text) = body else {
                return Err(StoreError::Broken("compressed page in a plain response".into()));
            };
            text.extend_from_slice(closing);
            return Ok(text.into());
        };
        let mut deflated = match body {
            Body::Identity(text) => Deflated::new(&text),
            Body::Gzip(deflated) => deflated,
        };
        deflated.push_text(closing);
        let mut bytes = gzip.push(&deflated);
        if matches!(self.step, Step::Done) {
            bytes.extend(std::mem::take(gzip).finish());
        }
        Ok(bytes.into())
    }
}

fn chunk_request(
    range: DateRange,
    resume: Option<Resume>,
    encoding: Encoding,
    rows: usize,
    now: UtcInstant,
) -> PageRequest {
    let body_prefix = if resume.is_none() { "[" } else { "," };
    let min_version = resume.as_ref().map_or(0, |resume| resume.last_version);
    let limit = PageLimit { rows, bytes: CHUNK_BYTES };
    PageRequest { range, resume, limit, body_prefix, encoding, min_version, now }
}
