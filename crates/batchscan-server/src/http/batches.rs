//! `GET /v1/batches` and `GET /v2/batches`: the same pages, once walked to the end and once one at a time.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::Response;
use axum::http::request::Parts;
use axum::response::IntoResponse;
use batchscan_model::Invalid;
use bytes::Bytes;

use super::App;
use super::budget::HeldPage;
use super::cache::{PageCache, PageKey};
use super::conditional::{Held, QueryMark};
use super::encoding::Encoding;
use super::error::{ApiError, Cause};
use super::request::{BatchQuery, caller};
use super::{response, stream};
use crate::auth::TokenRefused;
use crate::cursor::Cursor;
use batchscan_store::deflate::whole_gzip;
use batchscan_store::{Answer, Caller, DataVersion, Form, Page, PageLimit, PageRequest, PageText, Walk};

/// `GET /v1/batches`: all matching batches as one array, streamed, oldest first.
pub(super) async fn list_v1(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response<Body>, ApiError> {
    let asked = request.into_parts().0;
    let tenant = caller(&asked.headers, &app.keys().ring, app.clock.now())?;
    let answer = answer_v1(&app, &tenant, &asked).await;
    Ok(of(tenant, answer))
}

/// `GET /v2/batches`: one page, oldest first.
pub(super) async fn list_v2(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response<Body>, ApiError> {
    let asked = request.into_parts().0;
    let tenant = caller(&asked.headers, &app.keys().ring, app.clock.now())?;
    let answer = answer_v2(&app, &tenant, &asked).await;
    Ok(of(tenant, answer))
}

async fn answer_v1(app: &Arc<App>, tenant: &Caller, asked: &Parts) -> Result<Response<Body>, ApiError> {
    admit(app, tenant)?;
    let query = BatchQuery::v1(asked.uri.query().unwrap_or_default());
    let query = in_good_standing(app, tenant, query).await?;
    let mark = QueryMark::new(1, tenant.org, &query, 0);
    let held = Held::new(&asked.headers);
    let seen = held.seen(mark);
    let known = move |version| {
        let etag = mark.etag(version);
        held.matches(&etag).then_some(etag)
    };
    let encoding = Encoding::accepted(&asked.headers);
    let first = PageRequest { seen, ..stream::first_ask(app, query.range, encoding) };
    let page = match app.store.page(tenant, first, known).await? {
        Answer::DeadCredential => return Err(ApiError::BadToken(TokenRefused::Invalid)),
        Answer::Known(etag) => return Ok(response::not_modified(&etag)),
        Answer::Page(page) => page,
    };
    let encoding = match &page.text {
        // With the bracket that closes it.
        PageText::Plain(text) if page.next.is_none() => encoding.for_size(text.len() + 1),
        _ => encoding,
    };
    let etag = mark.etag(page.version);
    let body = stream::body(app.clone(), tenant.clone(), query.range, page, encoding)?;
    Ok(response::json(body, encoding, &etag))
}

async fn answer_v2(app: &App, tenant: &Caller, asked: &Parts) -> Result<Response<Body>, ApiError> {
    admit(app, tenant)?;
    let query = BatchQuery::v2(asked.uri.query().unwrap_or_default(), &app.keys().sealer, tenant);
    let query = in_good_standing(app, tenant, query).await?;
    let lookup = Lookup {
        mark: QueryMark::new(2, tenant.org, &query, app.config.page_rows),
        encoding: Encoding::accepted(&asked.headers),
        has_packs: app.store.has_packs(),
    };
    let (held, cache) = (Held::new(&asked.headers), app.cache.clone());
    let seen = query.walk.as_ref().map_or(0, |walk| walk.seen).max(held.seen(lookup.mark));
    let known = move |version| lookup.known(version, &held, &cache);
    let limit = PageLimit { rows: app.config.page_rows, bytes: usize::MAX };
    let (range, walk, form) = (query.range, query.walk.clone(), lookup.encoding.form());
    let ask = PageRequest { range, walk, limit, opening: "{\"data\":[", seen, now: app.clock.now(), form };
    match app.store.page(tenant, ask, known).await? {
        Answer::DeadCredential => Err(ApiError::BadToken(TokenRefused::Invalid)),
        Answer::Known(Known::Held(etag)) => Ok(response::not_modified(&etag)),
        Answer::Known(Known::Cached(found)) => {
            app.metrics.cache_hits.inc();
            send(app, lookup, found).await
        }
        Answer::Page(page) => {
            app.metrics.cache_misses.inc();
            let version = page.version;
            let (page, encoding) = envelope(app, tenant, &query, page)?;
            send(app, lookup, Found { version, page: hold(app, page)?, encoding, is_cached: false }).await
        }
    }
}

/// What can be answered without reading batches.
enum Known {
    Held(String),
    Cached(Found),
}

/// A page, from the cache or just read.
struct Found {
    version: DataVersion,
    page: HeldPage,
    encoding: Encoding,
    is_cached: bool,
}

/// How a page is found again.
#[derive(Clone, Copy)]
struct Lookup {
    mark: QueryMark,
    encoding: Encoding,
    /// Whether the store is quicker with gzip than encoding a plain page is.
    has_packs: bool,
}

impl Lookup {
    fn key(self, version: DataVersion, encoding: Encoding) -> PageKey {
        PageKey { version, query: self.mark, encoding }
    }

    /// The client's own copy, else the cache's: in the encoding wanted, or plain, to be encoded or too small for it.
    fn known(self, version: DataVersion, held: &Held, cache: &PageCache) -> Option<Known> {
        let etag = self.mark.etag(version);
        if held.matches(&etag) {
            return Some(Known::Held(etag));
        }
        let found = |encoding| cache.get(&self.key(version, encoding)).map(|page| (page, encoding));
        let is_from_store = self.has_packs && self.encoding.form() == Form::Deflated;
        let goes_plain = |page: &HeldPage| self.encoding.for_size(page.bytes.len()) == Encoding::Plain;
        let plain = || found(Encoding::Plain).filter(|(page, _)| !is_from_store || goes_plain(page));
        let (page, encoding) = found(self.encoding).or_else(plain)?;
        Some(Known::Cached(Found { version, page, encoding, is_cached: true }))
    }
}

/// Lets the request through, if it is within the credential's limit and not to be failed on purpose.
fn admit(app: &App, tenant: &Caller) -> Result<(), ApiError> {
    if let Some(limit) = &app.rate_limit {
        limit.admit(&tenant.client, app.clock.now()).map_err(ApiError::TooManyRequests)?;
    }
    if app.draws_failure() {
        return Err(ApiError::Unavailable(Cause::ours("failed on purpose")));
    }
    Ok(())
}

/// A fault of the query is told only to a caller whose credential is alive (decision 007). A sound query is let
/// through: its page is read together with the credential's standing.
async fn in_good_standing(
    app: &App,
    tenant: &Caller,
    query: Result<BatchQuery, Invalid>,
) -> Result<BatchQuery, ApiError> {
    let invalid = match query {
        Ok(query) => return Ok(query),
        Err(invalid) => invalid,
    };
    // A store that cannot be reached takes nothing away: the query is wrong all the same (decision 028).
    match app.store.standing(tenant, app.clock.now()).await {
        Ok(None) => Err(ApiError::BadToken(TokenRefused::Invalid)),
        Ok(Some(_)) | Err(_) => Err(ApiError::InvalidQuery(invalid)),
    }
}

/// Closes the page's text with the cursor of the next one; tells how the text is encoded.
fn envelope(
    app: &App,
    tenant: &Caller,
    query: &BatchQuery,
    page: Page,
) -> Result<(Bytes, Encoding), ApiError> {
    let mut text = page.text;
    match page.next {
        None => text.push(b"],\"next_token\":null}"),
        Some(after) => {
            let since = query.walk.as_ref().map_or(page.version.number, |walk| walk.since);
            let walk = Walk { after, since, seen: page.version.number };
            let cursor = Cursor { walk, range: query.range };
            let sealed = app.keys().sealer.seal(tenant.org, &cursor);
            let sealed =
                sealed.ok_or_else(|| ApiError::Broken(Cause::ours("a cursor could not be sealed")))?;
            text.push(&[b"],\"next_token\":\"", sealed.as_bytes(), b"\"}"].concat());
        }
    }
    match text {
        PageText::Plain(mut text) => {
            // The cache counts what a page holds, not what its buffer could.
            text.shrink_to_fit();
            Ok((Bytes::from(text), Encoding::Plain))
        }
        PageText::Deflated(piece) => Ok((Bytes::from(whole_gzip(&piece)), Encoding::Gzip)),
    }
}

/// Sends a page in the encoding the client likes, and keeps it for the next one who asks.
async fn send(app: &App, lookup: Lookup, found: Found) -> Result<Response<Body>, ApiError> {
    let Found { version, page, encoding, is_cached } = found;
    let wanted = match encoding {
        Encoding::Plain => lookup.encoding.for_size(page.bytes.len()),
        encoded => encoded,
    };
    let page = if wanted == encoding { page } else { hold(app, encode(wanted, page.bytes).await?)? };
    if !is_cached || wanted != encoding {
        app.cache.put(lookup.key(version, wanted), page.clone());
    }
    let mut response = response::json(Body::from(page.bytes), wanted, &lookup.mark.etag(version));
    response.extensions_mut().insert(page.share);
    Ok(response)
}

/// Counts a page among those in memory. One too many is refused: the client comes back when others are done.
fn hold(app: &App, page: Bytes) -> Result<HeldPage, ApiError> {
    let held = app.budget.hold(page);
    held.ok_or_else(|| ApiError::Unavailable(Cause::ours("too many pages are held in memory")))
}

/// Compresses away from the runtime's threads: it takes milliseconds.
async fn encode(encoding: Encoding, page: Bytes) -> Result<Bytes, ApiError> {
    let encoded = tokio::task::spawn_blocking(move || encoding.encode(&page)).await;
    match encoded {
        Ok(Ok(encoded)) => Ok(encoded),
        Ok(Err(error)) => Err(ApiError::Broken(Cause::ours(&error))),
        Err(error) => Err(ApiError::Broken(Cause::ours(&error))),
    }
}

/// Tells the log line whose request it was, whatever came of it.
fn of(tenant: Caller, answer: Result<Response<Body>, ApiError>) -> Response<Body> {
    let mut response = answer.into_response();
    response.extensions_mut().insert(tenant);
    response
}
