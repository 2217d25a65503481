//! `GET /v1/batches` and `GET /v2/batches`.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Json};
use futures_util::stream;
use serde::Serialize;

use crate::app::App;
use crate::auth::Caller;
use crate::batch::Batch;
use crate::error::ApiError;
use crate::filters::{Filters, RawFilters};

/// Batches on a page.
const PAGE_BATCHES: u32 = 1_000;

/// The response of v2.
#[derive(Serialize)]
pub(crate) struct Page {
    data: Vec<Batch>,
    next_token: Option<String>,
}

/// `GET /v2/batches`: one page, oldest first.
pub(crate) async fn list_v2(
    State(app): State<Arc<App>>,
    Caller(organisation): Caller,
    query: Result<Query<RawFilters>, QueryRejection>,
) -> Result<Json<Page>, ApiError> {
    let filters = Filters::dates_or_cursor(&query?.0)?;
    let (data, next) = read_page(&app, organisation, &filters).await?;
    let next_token = next.map(|next| next.to_cursor()).transpose()?;
    Ok(Json(Page { data, next_token }))
}

/// `GET /v1/batches`: all batches as one array, streamed page by page to bound memory.
pub(crate) async fn list_v1(
    State(app): State<Arc<App>>,
    Caller(organisation): Caller,
    query: Result<Query<RawFilters>, QueryRejection>,
) -> Result<impl IntoResponse, ApiError> {
    let filters = Filters::dates(&query?.0)?;
    // An error in the first page can still be reported by the status.
    let first = read_page(&app, organisation.clone(), &filters).await?;
    let pages = Pages { app, organisation, next: Next::Page(first), separator: b'[' };
    let body = Body::from_stream(stream::try_unfold(pages, Pages::next_chunk));
    Ok(([(header::CONTENT_TYPE, "application/json")], body))
}

/// A page, and the filters of the one after it.
type ReadPage = (Vec<Batch>, Option<Filters>);

async fn read_page(app: &App, organisation: String, filters: &Filters) -> Result<ReadPage, ApiError> {
    // One more row than a page shows whether another page follows.
    let mut batches = app.database.batches(organisation, filters.range(), PAGE_BATCHES + 1).await?;
    let is_last = batches.len() <= PAGE_BATCHES as usize;
    batches.truncate(PAGE_BATCHES as usize);
    let next = batches.last().filter(|_| !is_last).map(|last| filters.after(last));
    Ok((batches, next))
}

/// The rest of a v1 response.
struct Pages {
    app: Arc<App>,
    organisation: String,
    next: Next,
    /// The byte before the next batch.
    separator: u8,
}

enum Next {
    Page(ReadPage),
    Read(Filters),
    End,
}

impl Pages {
    async fn next_chunk(self) -> Result<Option<(Bytes, Self)>, ApiError> {
        let (batches, next) = match self.next {
            Next::Page(page) => page,
            Next::Read(filters) => read_page(&self.app, self.organisation.clone(), &filters).await?,
            Next::End => return Ok(None),
        };
        let mut text = Vec::new();
        let mut separator = self.separator;
        for batch in &batches {
            text.push(separator);
            serde_json::to_writer(&mut text, batch).map_err(|error| ApiError::Internal(error.into()))?;
            separator = b',';
        }
        let next = match next {
            Some(filters) => Next::Read(filters),
            None => {
                text.extend(if separator == b'[' { "[]" } else { "]" }.bytes());
                Next::End
            }
        };
        Ok(Some((text.into(), Self { next, separator, ..self })))
    }
}
