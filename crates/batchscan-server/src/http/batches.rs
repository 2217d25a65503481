//! `GET /v1/batches` and `GET /v2/batches`: the same batches, in one streamed response or page by page.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use batchscan_model::BatchId;
use batchscan_store::{
    ArrayBody, ArrayChunks, ArrayError, ArrayRequest, BatchArray, Caller, DataVersion, Encoding, OneBatch,
    Page, PageLimit, PageRequest, PageResult,
};
use bytes::Bytes;
use futures_util::stream;

use super::app::App;
use super::cache::{CachedPage, PageCache, PageKey};
use super::conditional::{IfNoneMatch, QueryHash};
use super::encoding::content_encoding;
use super::error::ApiError;
use super::query::{PageQuery, RangeQuery};
use super::response;
use crate::auth::TokenError;
use crate::budget::Reservation;
use crate::clock::Clock;
use crate::cursor::Cursor;

/// Memory of a v1 stream, whatever its length: the store reads chunks of this size.
pub(super) const STREAM_BYTES: usize = 512 * 1024;

/// `GET /v1/batches`: all matching batches as one array, oldest first.
pub(super) async fn list_v1(
    State(app): State<App>,
    caller: Caller,
    RangeQuery(range): RangeQuery,
    if_none_match: IfNoneMatch,
    encoding: Encoding,
) -> Result<Response, ApiError> {
    let query = QueryHash::v1(caller.org, range);
    let min_version = if_none_match.latest_version(query);
    let request = ArrayRequest { range, encoding, min_version, now: app.clock.now() };
    let not_modified_etag =
        move |version| Some(query.etag(version)).filter(|etag| if_none_match.matches(etag));
    match app.store.array(&caller, request, not_modified_etag).await? {
        PageResult::InvalidCredential => Err(ApiError::InvalidToken(TokenError::Invalid)),
        PageResult::Skipped(etag) => Ok(not_modified(&etag)),
        PageResult::Read(array) => send_array(&app, &caller, array, query),
    }
}

/// `GET /v2/batches`: one page, oldest first.
pub(super) async fn list_v2(
    State(app): State<App>,
    caller: Caller,
    query: PageQuery,
    if_none_match: IfNoneMatch,
    encoding: Encoding,
) -> Result<Response, ApiError> {
    let lookup = Lookup {
        query: QueryHash::v2(caller.org, query.range, query.resume.as_ref(), app.config.page_rows),
        encoding,
        if_none_match,
        cache: app.cache.clone(),
    };
    let (hash, request) = (lookup.query, page_request(&app, &query, &lookup));
    match app.store.page(&caller, request, move |version| lookup.find(version)).await? {
        PageResult::InvalidCredential => Err(ApiError::InvalidToken(TokenError::Invalid)),
        PageResult::Skipped(Found::NotModified(etag)) => Ok(not_modified(&etag)),
        PageResult::Skipped(Found::Cached(etag, page)) => {
            app.metrics.cache_hits.inc();
            Ok(send_page(page, &etag))
        }
        PageResult::Read(page) => {
            app.metrics.cache_misses.inc();
            let key = PageKey { version: page.version, query: hash, encoding };
            let page = finish_page(&app, &caller, &query, page)?;
            app.cache.put(key, page.clone());
            Ok(send_page(page, &hash.etag(key.version)))
        }
    }
}

/// `GET /v2/batches/{batch_id}`: one batch.
pub(super) async fn get_v2(
    State(app): State<App>,
    caller: Caller,
    id: Result<Path<String>, PathRejection>,
    if_none_match: IfNoneMatch,
) -> Result<Response, ApiError> {
    let (invalid, now) = (ApiError::InvalidToken(TokenError::Invalid), app.clock.now());
    // Rejected if it is not UTF-8.
    let Some(id) = id.ok().and_then(|Path(id)| BatchId::new(id)) else {
        let is_valid = app.store.data_version(&caller, now).await?.is_some();
        return Err(if is_valid { ApiError::NoSuchBatch } else { invalid });
    };
    let query = QueryHash::batch(caller.org, &id);
    let min_version = if_none_match.latest_version(query);
    let read = app.store.batch(&caller, &id, min_version, now).await?;
    let OneBatch { version, json } = read.ok_or(invalid)?;
    let (json, etag) = (json.ok_or(ApiError::NoSuchBatch)?, query.etag(version));
    if if_none_match.matches(&etag) {
        return Ok(not_modified(&etag));
    }
    Ok(ok(Body::from(json), Encoding::Identity, &etag))
}

/// Finds a response without reading batches.
struct Lookup {
    query: QueryHash,
    encoding: Encoding,
    if_none_match: IfNoneMatch,
    cache: Arc<PageCache>,
}

enum Found {
    /// The client has this version.
    NotModified(String),
    Cached(String, CachedPage),
}

impl Lookup {
    fn find(&self, version: DataVersion) -> Option<Found> {
        if !self.if_none_match.is_empty() {
            let etag = self.query.etag(version);
            if self.if_none_match.matches(&etag) {
                return Some(Found::NotModified(etag));
            }
        }
        let key = PageKey { version, query: self.query, encoding: self.encoding };
        self.cache.get(&key).map(|page| Found::Cached(self.query.etag(version), page))
    }
}

fn page_request(app: &App, query: &PageQuery, lookup: &Lookup) -> PageRequest {
    let last_version = query.resume.as_ref().map_or(0, |resume| resume.last_version);
    PageRequest {
        range: query.range,
        resume: query.resume.clone(),
        limit: PageLimit { rows: app.config.page_rows, bytes: usize::MAX },
        body_prefix: "{\"data\":[",
        encoding: lookup.encoding,
        min_version: last_version.max(lookup.if_none_match.latest_version(lookup.query)),
        now: app.clock.now(),
    }
}

/// Appends the cursor of the next page, and reserves the memory of the page.
fn finish_page(app: &App, caller: &Caller, query: &PageQuery, page: Page) -> Result<CachedPage, ApiError> {
    let closing = match &page.next {
        None => "],\"next_token\":null}".to_owned(),
        Some(resume) => {
            let cursor = Cursor { resume: resume.clone(), range: query.range };
            let text = app.keys().cursors.encrypt(caller.org, &cursor);
            let text = text.ok_or_else(|| ApiError::internal("cannot encrypt a cursor"))?;
            format!("],\"next_token\":\"{text}\"}}")
        }
    };
    let encoding = page.encoding();
    Ok(CachedPage { body: reserved(app, caller, page.finish(&closing))?, encoding })
}

fn send_page(page: CachedPage, etag: &str) -> Response {
    ok(Body::from(page.body), page.encoding, etag)
}

/// Sends the array whole or in chunks, each read when the client has taken the one before. An error aborts the response,
/// so that no client takes a part for the whole (decision 026).
fn send_array(app: &App, caller: &Caller, array: BatchArray, query: QueryHash) -> Result<Response, ApiError> {
    let etag = query.etag(array.version);
    let body = match array.body {
        ArrayBody::Whole(bytes) => Body::from(reserved(app, caller, bytes)?),
        ArrayBody::Chunks(chunks) => {
            let reservation = Arc::new(reserve(app, caller, STREAM_BYTES)?);
            let next = |(mut chunks, clock, reservation): (Box<ArrayChunks>, Clock, Arc<Reservation>)| async move {
                let Some(chunk) = chunks.next(clock.now()).await? else { return Ok(None) };
                let chunk = Reserved::bytes(chunk, reservation.clone());
                Ok::<_, ArrayError>(Some((chunk, (chunks, clock, reservation))))
            };
            Body::from_stream(stream::try_unfold((chunks, app.clock.clone(), reservation), next))
        }
    };
    Ok(ok(body, array.encoding, &etag))
}

/// Bytes with their reservation: hyper keeps them until the kernel has taken the last one.
pub(super) struct Reserved<R> {
    bytes: Bytes,
    _reservation: R,
}

impl<R: Send + 'static> Reserved<R> {
    pub(super) fn bytes(bytes: Bytes, reservation: R) -> Bytes {
        Bytes::from_owner(Self { bytes, _reservation: reservation })
    }
}

impl<R> AsRef<[u8]> for Reserved<R> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// A body that counts as memory of responses until it is sent.
pub(super) fn reserved(app: &App, caller: &Caller, body: Bytes) -> Result<Bytes, ApiError> {
    let reservation = reserve(app, caller, body.len())?;
    Ok(Reserved::bytes(body, reservation))
}

/// Counts the memory of a response until it is sent. If the caller may have no more, it has to try again later.
pub(super) fn reserve(app: &App, caller: &Caller, bytes: usize) -> Result<Reservation, ApiError> {
    let reservation = app.budget.reserve(caller, bytes);
    reservation.ok_or_else(|| ApiError::unavailable("no memory left for responses to this client"))
}

fn ok(body: Body, encoding: Encoding, etag: &str) -> Response {
    let mut response = response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.extend(content_encoding(encoding).map(|value| (header::CONTENT_ENCODING, value)));
    with_revalidation(response, etag)
}

pub(super) fn not_modified(etag: &str) -> Response {
    let mut response = response::new(Body::empty());
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    with_revalidation(response, etag)
}

/// Clients may store the response and must revalidate it (decision 031).
pub(super) fn with_revalidation(mut response: Response, etag: &str) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    headers.insert(header::VARY, HeaderValue::from_static("Authorization, Accept-Encoding"));
    if let Ok(etag) = HeaderValue::from_str(etag) {
        headers.insert(header::ETAG, etag);
    }
    response
}
