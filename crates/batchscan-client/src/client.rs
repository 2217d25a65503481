//! What a caller asks for: batches, pages, and whether anything changed.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use batchscan_model::DateRange;
use futures_util::stream::{self, BoxStream, StreamExt, TryStreamExt};
use reqwest::header::ETAG;
use reqwest::{Response, StatusCode};
use url::Url;

use crate::array::ArrayCutter;
use crate::ask::Asker;
use crate::{ClientBuilder, Error, Page, Received, Version};

/// Pages without a batch and with a cursor: a service may have some, but not without end.
const EMPTY_PAGES_MAX: u32 = 1_000;

/// Every page of a walk.
pub type Pages = BoxStream<'static, Result<Page, Error>>;
/// Every batch of a walk.
pub type Batches = BoxStream<'static, Result<Received, Error>>;

/// A client of one service, in the name of one organisation. Cloning it is cheap, and clones share the token.
#[derive(Clone, Debug)]
pub struct Client {
    asker: Arc<Asker>,
}

/// Whether there is anything new, by the service's ETag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// What the caller has is what the service would send.
    Unchanged,
    /// It is not, or nobody can tell.
    Changed {
        /// The ETag of what a walk that begins now delivers; none where the service gives none.
        etag: Option<String>,
    },
}

impl Client {
    /// Begins a client for the service at this address.
    pub fn builder(url: impl Into<String>) -> ClientBuilder {
        ClientBuilder::new(&url.into())
    }

    pub(crate) fn new(asker: Asker) -> Self {
        Self { asker: Arc::new(asker) }
    }

    /// Gets a token now instead of at the first use: tells at once whether address and credentials are good.
    ///
    /// # Errors
    ///
    /// As any walk has them.
    pub async fn sign_in(&self) -> Result<(), Error> {
        self.asker.sign_in().await
    }

    /// Every batch of a window, both ends inclusive, in the order of the service.
    ///
    /// ```
    /// use batchscan_client::{Client, DateRange, TryStreamExt, UtcInstant};
    ///
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/service.rs"));
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// # let service = Service::with_batches(20).await;
    /// # let client = Client::builder(service.url()).credentials(service.client_id(), service.client_secret()).build()?;
    /// let january = DateRange {
    ///     start: Some(UtcInstant::parse_any_offset("2026-01-01T00:00:00Z")?),
    ///     end: Some(UtcInstant::parse_any_offset("2026-01-31T23:59:59Z")?),
    /// };
    /// let batches: Vec<_> = client.batches(january).try_collect().await?;
    /// assert_eq!(batches[0].crop_type.as_deref(), Some("Tomato"));
    /// # assert_eq!(batches.len(), 20);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn batches(&self, range: DateRange) -> Batches {
        let each = |page: Page| stream::iter(page.batches().collect::<Vec<_>>());
        // After an error nothing follows, so that nobody who goes on all the same takes the rest for the whole.
        let until_error = |has_failed: &mut bool, batch: Result<_, _>| {
            let is_over = std::mem::replace(has_failed, batch.is_err());
            std::future::ready((!is_over).then_some(batch))
        };
        self.pages(range).map_ok(each).try_flatten().scan(false, until_error).boxed()
    }

    /// The same, page by page: for programs that keep the cursor, or the texts as they came.
    ///
    /// ```
    /// use batchscan_client::{Client, DateRange, TryStreamExt};
    ///
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/service.rs"));
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// # let service = Service::with_batches(2500).await;
    /// # let client = Client::builder(service.url()).credentials(service.client_id(), service.client_secret()).build()?;
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
    /// // Had it been interrupted in between, it would go on from the cursor, tomorrow and elsewhere too:
    /// if let Some(cursor) = cursor {
    ///     let mut pages = client.pages_after(DateRange::default(), cursor);
    ///     // …
    /// #   while let Some(page) = pages.try_next().await? {
    /// #       for text in page.texts() { file += &format!("{}\n", text?); }
    /// #   }
    /// }
    /// # assert_eq!(file.lines().count(), 2_500);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn pages(&self, range: DateRange) -> Pages {
        match self.asker.version {
            Version::V1 => self.pieces_of_v1(range),
            Version::V2 => self.walk(range, None),
        }
    }

    /// Goes on with a walk of v2 after a page, by that page's [`next_token`](Page::next_token). The window must be the
    /// one that the walk began with.
    pub fn pages_after(&self, range: DateRange, next_token: impl Into<String>) -> Pages {
        self.walk(range, Some(next_token.into()))
    }

    /// Whether a window's batches are other than those that came with `etag`.
    ///
    /// Asks v1, whose ETag covers the whole window: that of a first page may stay the same when later ones change. The
    /// answer's body is not read.
    ///
    /// ```
    /// use batchscan_client::{Client, DateRange, Freshness};
    ///
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/service.rs"));
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// # let service = Service::with_batches(20).await;
    /// # let client = Client::builder(service.url()).credentials(service.client_id(), service.client_secret()).build()?;
    /// let everything = DateRange::default();
    /// let etag = match client.freshness(everything, None).await? {
    ///     Freshness::Changed { etag } => etag,
    ///     Freshness::Unchanged => None,
    /// };
    /// // … walk, keep the ETag beside what came, and later:
    /// if client.freshness(everything, etag.as_deref()).await? == Freshness::Unchanged {
    ///     println!("nothing new");
    /// }
    /// # assert_eq!(client.freshness(everything, etag.as_deref()).await?, Freshness::Unchanged);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As any walk has them.
    pub async fn freshness(&self, range: DateRange, etag: Option<&str>) -> Result<Freshness, Error> {
        let url = self.asker.batches_url(Version::V1, range, None);
        let response = self.asker.begin(Version::V1, &url, etag).await?;
        if response.status() == StatusCode::NOT_MODIFIED {
            return Ok(Freshness::Unchanged);
        }
        let etag = response.headers().get(ETAG).and_then(|etag| etag.to_str().ok()).map(str::to_owned);
        Ok(Freshness::Changed { etag })
    }

    fn walk(&self, range: DateRange, next_token: Option<String>) -> Pages {
        let walk = Walk { asker: self.asker.clone(), range, next_token, seen: Seen::default() };
        stream::try_unfold(Some(walk), |walk| async {
            let Some(walk) = walk else { return Ok(None) };
            walk.step().await.map(Some)
        })
        .boxed()
    }

    fn pieces_of_v1(&self, range: DateRange) -> Pages {
        let url = self.asker.batches_url(Version::V1, range, None);
        let cutter = ArrayCutter::default();
        let pieces = Pieces { asker: self.asker.clone(), url, cutter, state: State::Begin };
        stream::try_unfold(pieces, Pieces::step).boxed()
    }
}

/// A walk over the pages of v2.
struct Walk {
    asker: Arc<Asker>,
    range: DateRange,
    next_token: Option<String>,
    seen: Seen,
}

impl Walk {
    /// The next page, and the rest of the walk if there is one.
    async fn step(mut self) -> Result<(Page, Option<Self>), Error> {
        let url = self.asker.batches_url(Version::V2, self.range, self.next_token.as_deref());
        let page = self.asker.page(&url).await?;
        self.next_token = page.next_token().map(str::to_owned);
        let Some(next_token) = &self.next_token else { return Ok((page, None)) };
        self.seen.note(next_token, page.is_empty())?;
        Ok((page, Some(self)))
    }
}

/// The cursors of a walk so far. A number for each, so that a walk of a million pages holds a few megabytes.
#[derive(Default)]
struct Seen {
    hasher: RandomState,
    cursors: HashSet<u64>,
    empty_pages: u32,
}

impl Seen {
    fn note(&mut self, cursor: &str, is_empty: bool) -> Result<(), Error> {
        let circle = |why: &str| Err(Error::Circle { why: why.to_owned() });
        if !self.cursors.insert(self.hasher.hash_one(cursor)) {
            return circle("a cursor came a second time");
        }
        self.empty_pages = if is_empty { self.empty_pages + 1 } else { 0 };
        if self.empty_pages > EMPTY_PAGES_MAX {
            return circle("page after page holds no batch and names another");
        }
        Ok(())
    }
}

/// The array of v1, in pieces.
struct Pieces {
    asker: Arc<Asker>,
    url: Url,
    cutter: ArrayCutter,
    state: State,
}

enum State {
    Begin,
    Under(Response),
    Ended,
}

impl Pieces {
    /// The next batches, and the rest of the array.
    async fn step(mut self) -> Result<Option<(Page, Self)>, Error> {
        let mut response = match self.state {
            State::Begin => self.asker.begin(Version::V1, &self.url, None).await?,
            State::Under(response) => response,
            State::Ended => return Ok(None),
        };
        self.state = State::Ended;
        while !self.cutter.is_full() {
            match self.asker.piece(&mut response).await? {
                Some(piece) => {
                    self.cutter.push(&piece).map_err(|why| self.asker.not_batchscan(&self.url, &why))?;
                }
                // An array that was not closed is no answer.
                None if !self.cutter.is_whole() => {
                    return Err(self.asker.broken("the array ends in the middle"));
                }
                None => return Ok(Some((self.cutter.take(), self))),
            }
        }
        self.state = State::Under(response);
        Ok(Some((self.cutter.take(), self)))
    }
}
