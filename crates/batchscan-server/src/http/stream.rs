//! The body of v1: pages walked to the end, one at a time, each only when the client has taken the one before.

use std::sync::Arc;

use axum::body::Body;
use batchscan_model::DateRange;
use bytes::Bytes;
use futures_util::stream;

use super::App;
use super::encoding::{Encoder, Encoding};
use super::error::{ApiError, Cause};
use batchscan_store::{Answer, Caller, Form, Page, PageLimit, PageRequest, PageText, StoreError, Walk};

/// A chunk is what a slow reader holds in memory, and one short job for a reader of the store.
const CHUNK_BYTES: usize = 512 * 1024;

/// What to ask the store for first.
pub(super) fn first_ask(app: &App, range: DateRange, encoding: Encoding) -> PageRequest {
    chunk_ask(app, range, None, usize::MAX, encoding.form())
}

fn chunk_ask(app: &App, range: DateRange, walk: Option<Walk>, rows: usize, form: Form) -> PageRequest {
    let opening = if walk.is_none() { "[" } else { "," };
    let limit = PageLimit { rows, bytes: CHUNK_BYTES };
    let seen = walk.as_ref().map_or(0, |walk| walk.seen);
    PageRequest { range, walk, limit, opening, seen, now: app.clock.now(), form }
}

/// A body that begins with `first` and reads on as the client does.
///
/// A failure ends it with an error: the connection is cut, so that no client takes the part for the whole
/// (decision 026).
pub(super) fn body(
    app: Arc<App>,
    tenant: Caller,
    range: DateRange,
    mut first: Page,
    encoding: Encoding,
) -> Result<Body, ApiError> {
    if let (Encoding::Plain, None, PageText::Plain(text)) = (encoding, &first.next, &mut first.text) {
        text.push(b']');
        return Ok(Body::from(std::mem::take(text)));
    }
    let encoder = Encoder::new(encoding).map_err(|error| ApiError::Broken(Cause::ours(&error)))?;
    let since = first.version.number;
    let walking = Walking { app, tenant, range, since, rows: usize::MAX, form: encoding.form(), encoder };
    let chunks = stream::try_unfold(Some((walking, Step::Have(first))), |state| async {
        let Some((mut walking, step)) = state else { return Ok(None) };
        let page = match step {
            Step::Have(page) => page,
            Step::After(walk) => walking.read(walk).await?,
        };
        walking.chunk(page)
    });
    Ok(Body::from_stream(chunks))
}

/// A stream under way.
struct Walking {
    app: Arc<App>,
    tenant: Caller,
    range: DateRange,
    since: i64,
    /// How many batches fill a chunk, by the last one: what a store reads past that is thrown away.
    rows: usize,
    form: Form,
    encoder: Encoder,
}

enum Step {
    Have(Page),
    After(Walk),
}

type Next = Option<(Bytes, Option<(Walking, Step)>)>;

impl Walking {
    async fn read(&mut self, walk: Walk) -> Result<Page, StoreError> {
        let ask = chunk_ask(&self.app, self.range, Some(walk), self.rows, self.form);
        match self.app.store.page(&self.tenant, ask, |_| None::<()>).await? {
            Answer::Page(mut page) => {
                // What followed a moment ago may be gone; then there is nothing to separate.
                if page.rows == 0 {
                    page.text = PageText::Plain(Vec::new());
                }
                Ok(page)
            }
            Answer::Known(()) | Answer::DeadCredential => {
                Err(StoreError::Unreachable("the credential was revoked in the middle of the answer".into()))
            }
        }
    }

    /// The page as bytes to send, and what comes after it.
    fn chunk(mut self, page: Page) -> Result<Next, StoreError> {
        let broken = |error: std::io::Error| StoreError::Broken(error.to_string());
        let Page { mut text, next, version, rows } = page;
        // A quarter more than expected: batches differ.
        self.rows = CHUNK_BYTES / (text.text_bytes() / rows.max(1)).max(1) * 5 / 4 + 1;
        match next {
            Some(after) => {
                let walk = Walk { after, since: self.since, seen: version.number };
                let bytes = Bytes::from(self.encoder.push(text).map_err(broken)?);
                Ok(Some((bytes, Some((self, Step::After(walk))))))
            }
            None => {
                text.push(b"]");
                let mut bytes = self.encoder.push(text).map_err(broken)?;
                bytes.extend(self.encoder.finish().map_err(broken)?);
                Ok(Some((Bytes::from(bytes), None)))
            }
        }
    }
}
