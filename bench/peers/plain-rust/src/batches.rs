//! `GET /v1/batches` and `GET /v2/batches`.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Json};
use futures_util::stream;
use serde::Serialize;

use crate::App;
use crate::auth::Caller;
use crate::batch::Batch;
use crate::error::ApiError;
use crate::filters::{Filters, RawFilters};

/// Batches on a page.
const PAGE_BATCHES: u32 = 1_000;

/// The envelope of v2.
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

/// `GET /v1/batches`: all of them as one array, page by page, so that memory does not grow with the answer.
pub(crate) async fn list_v1(
    State(app): State<Arc<App>>,
    Caller(organisation): Caller,
    query: Result<Query<RawFilters>, QueryRejection>,
) -> Result<impl IntoResponse, ApiError> {
    let filters = Filters::dates(&query?.0)?;
    // The first page is read before the answer begins: what fails by then still has its status.
    let first = read_page(&app, organisation.clone(), &filters).await?;
    let walk = Walk { app, organisation, next: Next::Page(first), opening: b'[' };
    let body = Body::from_stream(stream::try_unfold(walk, Walk::step));
    Ok(([(header::CONTENT_TYPE, "application/json")], body))
}

/// A page, and the filters of the one after it.
type ReadPage = (Vec<Batch>, Option<Filters>);

async fn read_page(app: &App, organisation: String, filters: &Filters) -> Result<ReadPage, ApiError> {
    // One more than is sent tells whether there is another page.
    let mut batches = app.database.batches(organisation, filters.clone(), PAGE_BATCHES + 1).await?;
    let is_last = batches.len() <= PAGE_BATCHES as usize;
    batches.truncate(PAGE_BATCHES as usize);
    let next = batches.last().filter(|_| !is_last).map(|last| filters.beyond(last));
    Ok((batches, next))
}

/// An answer of v1 that is under way.
struct Walk {
    app: Arc<App>,
    organisation: String,
    next: Next,
    /// What stands before the next batch.
    opening: u8,
}

enum Next {
    Page(ReadPage),
    Read(Filters),
    End,
}

impl Walk {
    async fn step(self) -> Result<Option<(Bytes, Self)>, ApiError> {
        let (batches, next) = match self.next {
            Next::Page(page) => page,
            Next::Read(filters) => read_page(&self.app, self.organisation.clone(), &filters).await?,
            Next::End => return Ok(None),
        };
        let mut text = Vec::new();
        let mut opening = self.opening;
        for batch in &batches {
            text.push(opening);
            serde_json::to_writer(&mut text, batch).map_err(|error| ApiError::Internal(error.into()))?;
            opening = b',';
        }
        let next = match next {
            Some(filters) => Next::Read(filters),
            None => {
                text.extend(if opening == b'[' { "[]" } else { "]" }.bytes());
                Next::End
            }
        };
        Ok(Some((text.into(), Self { next, opening, ..self })))
    }
}
