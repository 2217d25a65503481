//! `GET /v1/batches` and `GET /v2/batches`: the same pages, once walked to the end and once one at a time.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::Response;
use batchscan_model::Invalid;
use bytes::Bytes;

use super::App;
use super::cache::PageKey;
use super::conditional::{Held, QueryMark};
use super::encoding::Encoding;
use super::error::{ApiError, Cause};
use super::request::{BatchQuery, caller};
use super::{response, stream};
use crate::auth::TokenRefused;
use crate::cursor::Cursor;
use crate::store::{Answer, DataVersion, Page, PageAsk, PageLimit, Tenant, Walk};

/// `GET /v1/batches`: all matching batches as one array, streamed, oldest first.
pub(super) async fn list_v1(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response<Body>, ApiError> {
    let tenant = admit(&app, &request)?;
    let query = BatchQuery::v1(request.uri().query().unwrap_or_default());
    let query = in_good_standing(&app, &tenant, query).await?;
    let mark = QueryMark::new(1, tenant.org, &query, 0);
    let held = Held::new(request.headers());
    let known = move |version| {
        let etag = mark.etag(version);
        held.matches(&etag).then_some(etag)
    };
    let first = stream::chunk_ask(&app, query.range, None);
    let answer = match app.store.page(&tenant, first, known).await? {
        Answer::DeadCredential => return Err(ApiError::BadToken(TokenRefused::Invalid)),
        Answer::Known(etag) => response::not_modified(&etag),
        Answer::Page(page) => {
            let encoding = Encoding::accepted(request.headers());
            let encoding = if page.next.is_none() { encoding.for_size(page.text.len()) } else { encoding };
            let etag = mark.etag(page.version);
            let body = stream::body(app, tenant.clone(), query.range, page, encoding)?;
            response::json(body, encoding, &etag)
        }
    };
    Ok(of(tenant, answer))
}

/// `GET /v2/batches`: one page, oldest first.
pub(super) async fn list_v2(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response<Body>, ApiError> {
    let tenant = admit(&app, &request)?;
    let query = BatchQuery::v2(request.uri().query().unwrap_or_default(), &app.sealer, &tenant);
    let query = in_good_standing(&app, &tenant, query).await?;
    let lookup = Lookup {
        mark: QueryMark::new(2, tenant.org, &query, app.config.page_rows),
        encoding: Encoding::accepted(request.headers()),
    };
    let (held, cache) = (Held::new(request.headers()), app.cache.clone());
    let known = move |version| {
        let etag = lookup.mark.etag(version);
        if held.matches(&etag) {
            return Some(Known::Held(etag));
        }
        let found = |encoding| cache.get(&lookup.key(version, encoding)).map(|page| (page, encoding));
        let (page, encoding) = found(lookup.encoding).or_else(|| found(Encoding::Plain))?;
        Some(Known::Cached { version, page, encoding })
    };
    let limit = PageLimit { rows: app.config.page_rows, bytes: usize::MAX };
    let ask = PageAsk {
        range: query.range,
        walk: query.walk.clone(),
        limit,
        opening: "{\"data\":[",
        now: app.clock.now(),
    };
    let answer = match app.store.page(&tenant, ask, known).await? {
        Answer::DeadCredential => return Err(ApiError::BadToken(TokenRefused::Invalid)),
        Answer::Known(Known::Held(etag)) => response::not_modified(&etag),
        Answer::Known(Known::Cached { version, page, encoding }) => {
            app.metrics.cache_hits.inc();
            send(&app, lookup, version, page, encoding).await?
        }
        Answer::Page(page) => {
            app.metrics.cache_misses.inc();
            let version = page.version;
            let text = envelope(&app, &tenant, &query, page)?;
            send(&app, lookup, version, text, Encoding::Plain).await?
        }
    };
    Ok(of(tenant, answer))
}

/// What can be answered without reading batches.
enum Known {
    Held(String),
    Cached { version: DataVersion, page: Bytes, encoding: Encoding },
}

/// How a page is found again.
#[derive(Clone, Copy)]
struct Lookup {
    mark: QueryMark,
    encoding: Encoding,
}

impl Lookup {
    fn key(self, version: DataVersion, encoding: Encoding) -> PageKey {
        PageKey { version, query: self.mark, encoding }
    }
}

/// The caller, if the token is good and the request is within the credential's limit.
fn admit(app: &App, request: &Request) -> Result<Tenant, ApiError> {
    let now = app.clock.now();
    let tenant = caller(request.headers(), &app.keys, now)?;
    if let Some(limit) = &app.rate_limit {
        limit.admit(&tenant.client, now).map_err(ApiError::TooManyRequests)?;
    }
    if app.draws_failure() {
        return Err(ApiError::Unavailable(Cause::ours("failed on purpose")));
    }
    Ok(tenant)
}

/// A fault of the query is told only to a caller whose credential is alive (decision 007). A sound query is let
/// through: its page is read together with the credential's standing.
async fn in_good_standing(
    app: &App,
    tenant: &Tenant,
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

/// Closes the page's text with the cursor of the next one.
fn envelope(app: &App, tenant: &Tenant, query: &BatchQuery, page: Page) -> Result<Bytes, ApiError> {
    let mut text = page.text;
    text.extend_from_slice(b"],\"next_token\":");
    match page.next {
        None => text.extend_from_slice(b"null}"),
        Some(after) => {
            let since = query.walk.as_ref().map_or(page.version.number, |walk| walk.since);
            let cursor = Cursor { walk: Walk { after, since }, range: query.range };
            let sealed = app.sealer.seal(tenant.org, &cursor);
            let sealed =
                sealed.ok_or_else(|| ApiError::Broken(Cause::ours("a cursor could not be sealed")))?;
            text.extend([b"\"", sealed.as_bytes(), b"\"}"].concat());
        }
    }
    // The cache counts what a page holds, not what its buffer could.
    text.shrink_to_fit();
    Ok(Bytes::from(text))
}

/// Sends a page in the encoding the client likes, and keeps it for the next one who asks.
async fn send(
    app: &App,
    lookup: Lookup,
    version: DataVersion,
    page: Bytes,
    encoding: Encoding,
) -> Result<Response<Body>, ApiError> {
    let etag = lookup.mark.etag(version);
    let wanted = if encoding == Encoding::Plain { lookup.encoding.for_size(page.len()) } else { encoding };
    let body = if wanted == encoding { page } else { encode(wanted, page).await? };
    app.cache.put(lookup.key(version, wanted), body.clone());
    Ok(response::json(Body::from(body), wanted, &etag))
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

/// Tells the log line whose request it was.
fn of(tenant: Tenant, mut response: Response<Body>) -> Response<Body> {
    response.extensions_mut().insert(tenant);
    response
}
