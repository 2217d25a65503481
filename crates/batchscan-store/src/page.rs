//! Requests for batches and what a store returns. Knows neither SQL nor HTTP.

use batchscan_model::{ClientId, DateRange, OrgId, Position, UtcInstant};
use bytes::Bytes;

use crate::gzip::{Deflated, gzip_body};

/// The sender of a request: an organisation, through one of its credentials.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Caller {
    /// The organisation whose batches are read.
    pub org: OrgId,
    /// The credential that was used.
    pub client: ClientId,
}

/// The state of an organisation's batches. Equal versions mean equal batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DataVersion {
    /// Increases with every change.
    pub number: i64,
    /// Random for each version, so that a restored backup cannot repeat one.
    pub mark: i64,
}

/// What a request that waits for changes depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrgState {
    /// The version of the batches.
    pub version: DataVersion,
    /// How many credentials were revoked.
    pub revoked: i64,
}

/// How a body is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// Plain JSON.
    Identity,
    /// gzip.
    Gzip,
}

/// Which batches to read, and how to return them.
#[derive(Clone, Debug)]
pub struct PageRequest {
    /// The date filter.
    pub range: DateRange,
    /// Where paging continues; `None` for the first page.
    pub resume: Option<Resume>,
    /// The size of the page.
    pub limit: PageLimit,
    /// The start of the body, such as `{"data":[`. Written before the batches, so that they are copied once.
    pub body_prefix: &'static str,
    /// The requested encoding. [`Page::encoding`] returns the one that was used.
    pub encoding: Encoding,
    /// The page must not be older than the data version with this number.
    pub min_version: i64,
    /// The current time, for the credential's expiry.
    pub now: UtcInstant,
}

impl PageRequest {
    /// Reads the credential and the data version only.
    pub(crate) fn version_only(now: UtcInstant) -> Self {
        Self {
            range: DateRange::default(),
            resume: None,
            limit: PageLimit { rows: 0, bytes: 0 },
            body_prefix: "",
            encoding: Encoding::Identity,
            min_version: 0,
            now,
        }
    }

    /// The exclusive lower bound of the page in the batch order.
    pub(crate) fn after(&self) -> Key {
        match &self.resume {
            Some(resume) => Key::new(resume.after.created.micros(), resume.after.id.as_str()),
            None => Key::new(self.range.start.map_or(i64::MIN, UtcInstant::micros), ""),
        }
    }

    /// The inclusive upper bound of the page, in microseconds.
    pub(crate) fn end_micros(&self) -> i64 {
        self.range.end.map_or(i64::MAX, UtcInstant::micros)
    }

    /// The version of the first page, if batches moved in the order since then. Those must not be returned again.
    pub(crate) fn moved_since(&self, moved_version: i64) -> Option<i64> {
        self.resume.as_ref().map(|resume| resume.first_version).filter(|first| moved_version > *first)
    }
}

/// Where paging continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resume {
    /// The last batch that was returned.
    pub after: Position,
    /// The number of the data version of the first page.
    pub first_version: i64,
    /// The number of the data version of the last page. An older version could return a batch for the second time.
    pub last_version: i64,
}

/// The size of a page: whichever limit is reached first.
#[derive(Clone, Copy, Debug)]
pub struct PageLimit {
    /// The maximum number of batches.
    pub rows: usize,
    /// The page ends with the batch or block that reaches this many bytes of text.
    pub bytes: usize,
}

/// The result of reading a page.
#[derive(Debug)]
pub enum PageResult<S, P = Page> {
    /// The caller's check of the data version returned this. No batch was read.
    Skipped(S),
    /// The batches.
    Read(P),
    /// The credential is revoked, expired or removed.
    InvalidCredential,
}

/// A single batch, and the data version that it was read in.
#[derive(Debug)]
pub struct OneBatch {
    /// The data version.
    pub version: DataVersion,
    /// The batch as JSON; `None` if there is no batch with this id.
    pub json: Option<String>,
}

/// Batches in order, as the start of a response body.
#[derive(Debug)]
pub struct Page {
    /// The data version of the batches.
    pub version: DataVersion,
    /// The number of batches.
    pub rows: usize,
    /// Where the next page starts, if there is one.
    pub next: Option<Resume>,
    pub(crate) body: Body,
}

impl Page {
    /// The encoding of the body. Short bodies are not compressed.
    pub fn encoding(&self) -> Encoding {
        match self.body {
            Body::Identity(_) => Encoding::Identity,
            Body::Gzip(_) => Encoding::Gzip,
        }
    }

    /// Appends the end of the body, such as `],"next_token":null}`, and returns the whole body.
    pub fn finish(self, closing: &str) -> Bytes {
        match self.body {
            Body::Identity(mut text) => {
                text.extend_from_slice(closing.as_bytes());
                // A cache counts the length of a page, not its capacity.
                text.shrink_to_fit();
                text.into()
            }
            Body::Gzip(mut deflated) => {
                deflated.push_text(closing.as_bytes());
                gzip_body(&deflated).into()
            }
        }
    }
}

/// A body without its end.
#[derive(Debug)]
pub(crate) enum Body {
    Identity(Vec<u8>),
    Gzip(Deflated),
}

impl Body {
    /// The length of the uncompressed text.
    pub(crate) fn text_bytes(&self) -> usize {
        match self {
            Body::Identity(text) => text.len(),
            Body::Gzip(deflated) => deflated.text_bytes(),
        }
    }
}

/// A point in the batch order: creation time in microseconds, then id by bytes. An empty id comes before all ids.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) created: i64,
    pub(crate) id: String,
}

impl Key {
    /// Before all batches.
    pub(crate) const START: Key = Key { created: i64::MIN, id: String::new() };

    /// After all batches.
    pub(crate) const END: Key = Key { created: i64::MAX, id: String::new() };

    pub(crate) fn new(created: i64, id: &str) -> Self {
        Self { created, id: id.to_owned() }
    }

    /// Replaces the key without a new allocation.
    pub(crate) fn set(&mut self, created: i64, id: &str) {
        self.created = created;
        self.id.clear();
        self.id.push_str(id);
    }
}
