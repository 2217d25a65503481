//! The client: batches, pages, and whether anything changed.

use std::sync::Arc;
use std::time::Duration;

use batchscan_model::DateRange;
use futures_util::stream::{self, BoxStream, StreamExt, TryStreamExt};
use reqwest::StatusCode;
use reqwest::header::ETAG;

use crate::array::ArrayStream;
use crate::pagination::Pagination;
use crate::session::Session;
use crate::{Changes, Error, Page, ReceivedBatch, Version, WAIT_MAX};

/// A stream of pages.
pub type Pages = BoxStream<'static, Result<Page, Error>>;
/// A stream of batches.
pub type Batches = BoxStream<'static, Result<ReceivedBatch, Error>>;

/// A client of one service with the credentials of one organisation. Clones are cheap and share the token.
#[derive(Clone, Debug)]
pub struct Client {
    session: Arc<Session>,
}

/// Whether there is anything new, by the service's ETag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// The service would send what the caller already has.
    Unchanged,
    /// The batches changed, or the service cannot tell.
    Changed {
        /// The ETag of what a read that starts now returns, if the service sends ETags.
        etag: Option<String>,
    },
}

impl Client {
    pub(crate) fn new(session: Session) -> Self {
        Self { session: Arc::new(session) }
    }

    /// Requests a token now instead of at the first use, which checks the address and the credentials.
    ///
    /// # Errors
    ///
    /// Any [`Error`] of a request.
    pub async fn sign_in(&self) -> Result<(), Error> {
        self.session.sign_in().await
    }

    /// Reads every batch of a date range, both ends inclusive, in the order of the service.
    ///
    /// ```
    /// use batchscan_client::{Client, DateRange, TryStreamExt, UtcInstant};
    ///
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/service.rs"));
    /// # fn main() { run_example(20, async |service| {
    /// # let client = service.client().build()?;
    /// let january = DateRange {
    ///     start: Some(UtcInstant::parse_any_offset("2026-01-01T00:00:00Z")?),
    ///     end: Some(UtcInstant::parse_any_offset("2026-01-31T23:59:59Z")?),
    /// };
    /// let batches: Vec<_> = client.batches(january).try_collect().await?;
    /// assert_eq!(batches[0].crop_type.as_deref(), Some("Tomato"));
    /// # assert_eq!(batches.len(), 20);
    /// # Ok(()) }) }
    /// ```
    pub fn batches(&self, range: DateRange) -> Batches {
        let parse = |page: Page| stream::iter(page.batches().collect::<Vec<_>>());
        // End the stream after an error: a caller who continues must not take the rest for everything.
        let until_error = |has_failed: &mut bool, batch: Result<_, _>| {
            let is_over = std::mem::replace(has_failed, batch.is_err());
            std::future::ready((!is_over).then_some(batch))
        };
        self.pages(range).map_ok(parse).try_flatten().scan(false, until_error).boxed()
    }

    /// Reads the same page by page: for programs that store the cursor or the original JSON.
    ///
    /// ```
    /// use batchscan_client::{Client, DateRange, TryStreamExt};
    ///
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/service.rs"));
    /// # fn main() { run_example(2_500, async |service| {
    /// # let client = service.client().build()?;
    /// let mut pages = client.pages(DateRange::default());
    /// let mut file = String::new();
    /// let mut cursor = None;
    /// while let Some(page) = pages.try_next().await? {
    ///     for text in page.texts() {
    ///         file += text?;
    ///         file += "\n";
    ///     }
    ///     cursor = page.next_token().map(str::to_owned);
    /// #   if file.lines().count() == 1_000 { break }
    /// }
    /// # assert!(cursor.is_some());
    ///
    /// // If it was interrupted, continue from the cursor, later or on another machine:
    /// if let Some(cursor) = cursor {
    ///     let mut pages = client.pages_after(DateRange::default(), cursor);
    ///     // …
    /// #   while let Some(page) = pages.try_next().await? {
    /// #       for text in page.texts() { file += &format!("{}\n", text?); }
    /// #   }
    /// }
    /// # assert_eq!(file.lines().count(), 2_500);
    /// # Ok(()) }) }
    /// ```
    pub fn pages(&self, range: DateRange) -> Pages {
        match self.session.version {
            Version::V1 => {
                let url = self.session.batches_url(Version::V1, range, None);
                let array = ArrayStream::new(self.session.clone(), url);
                stream::try_unfold(array, ArrayStream::next_page).boxed()
            }
            Version::V2 => self.paginate(range, None),
        }
    }

    /// Continues on v2 after a page, by its [`next_token`](Page::next_token). The date range must be the same as before.
    pub fn pages_after(&self, range: DateRange, next_token: impl Into<String>) -> Pages {
        self.paginate(range, Some(next_token.into()))
    }

    /// Reads what changed since a position, to keep a copy current. Uses v2.
    ///
    /// Without a position, the first responses contain the complete state. Store the position of a response together with
    /// its changes. If there are no changes, the service waits for one, [`WAIT_MAX`] at most.
    ///
    /// ```
    /// use std::{collections::BTreeMap, time::Duration};
    ///
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/service.rs"));
    /// # fn main() { run_example(2_500, async |service| {
    /// # let client = service.client().build()?;
    /// let mut copy = BTreeMap::new();
    /// let mut since: Option<String> = None;
    /// loop {
    ///     let changes = client.changes(since.as_deref(), Duration::ZERO).await?;
    ///     for batch in changes.batches.batches() {
    ///         let batch = batch?;
    ///         copy.insert(batch.batch_id.as_str().to_owned(), batch);
    ///     }
    ///     for id in &changes.removed {
    ///         copy.remove(id);
    ///     }
    ///     since = Some(changes.since);
    ///     if !changes.more {
    ///         break;
    ///     }
    /// }
    /// # assert_eq!(copy.len(), 2_500);
    /// # Ok(()) }) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::PositionGone`] if everything has to be read again, without a position. Any other [`Error`] of a request.
    pub async fn changes(&self, since: Option<&str>, wait: Duration) -> Result<Changes, Error> {
        let changes = self.session.changes(since, wait.min(WAIT_MAX)).await?;
        if changes.more && since == Some(changes.since.as_str()) {
            return Err(Error::PaginationLoop("a position was repeated"));
        }
        Ok(changes)
    }

    /// Whether the batches of a date range differ from those that came with `etag`.
    ///
    /// Uses v1, whose ETag covers the whole date range; the ETag of a first page may stay the same when later pages
    /// change. The body is not read.
    ///
    /// ```
    /// use batchscan_client::{Client, DateRange, Freshness};
    ///
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/service.rs"));
    /// # fn main() { run_example(20, async |service| {
    /// # let client = service.client().build()?;
    /// let everything = DateRange::default();
    /// let etag = match client.freshness(everything, None).await? {
    ///     Freshness::Changed { etag } => etag,
    ///     Freshness::Unchanged => None,
    /// };
    /// // … read the batches, store the ETag with them, and later:
    /// if client.freshness(everything, etag.as_deref()).await? == Freshness::Unchanged {
    ///     println!("nothing new");
    /// }
    /// # assert_eq!(client.freshness(everything, etag.as_deref()).await?, Freshness::Unchanged);
    /// # Ok(()) }) }
    /// ```
    ///
    /// # Errors
    ///
    /// Any [`Error`] of a request.
    pub async fn freshness(&self, range: DateRange, etag: Option<&str>) -> Result<Freshness, Error> {
        let url = self.session.batches_url(Version::V1, range, None);
        let response = self.session.get(Version::V1, &url, etag).await?;
        if response.status() == StatusCode::NOT_MODIFIED {
            return Ok(Freshness::Unchanged);
        }
        let etag = response.headers().get(ETAG).and_then(|etag| etag.to_str().ok()).map(str::to_owned);
        Ok(Freshness::Changed { etag })
    }

    fn paginate(&self, range: DateRange, next_token: Option<String>) -> Pages {
        let pagination = Pagination::new(self.session.clone(), range, next_token);
        stream::try_unfold(Some(pagination), |pagination| async {
            let Some(pagination) = pagination else { return Ok(None) };
            pagination.next_page().await.map(Some)
        })
        .boxed()
    }
}
