//! Watched folders report here, so that `batchscan status` notices one that has died.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use batchscan_model::Reason;
use batchscan_store::{FOLDER_BYTES_MAX, HOST_BYTES_MAX, Watcher, WatcherState};
use serde::Deserialize;
use tokio::sync::Semaphore;

use super::access::Operator;
use super::request::{PathNames, invalid_field, read_json};
use crate::http::App;
use crate::http::error::ApiError;
use crate::http::response::no_content;

const DETAIL_BYTES_MAX: usize = 4_000;
/// Reports that wait for the database at once: other changes wait behind them. On SQLite they wait for a running import.
/// More get a 503 meanwhile, because none could be recorded; watchers try again.
static REPORTS: Semaphore = Semaphore::const_new(4);
const BUSY: &str = "too many reports of watchers at once";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Report {
    host: Option<String>,
    folder: Option<String>,
    state: Option<String>,
    detail: Option<String>,
}

/// `PUT /operator/v1/organisations/{name}/watchers`.
pub(super) async fn report(
    State(app): State<App>,
    operator: Operator,
    PathNames(name): PathNames<String>,
    body: Body,
) -> Result<Response, ApiError> {
    operator.require_import_to(&name)?;
    let Report { host, folder, state, detail } = read_json(body).await?;
    let state = state.as_deref().and_then(WatcherState::parse);
    let bad_state = || ApiError::InvalidJson("state must be running, waiting or stopped".into());
    let watcher = Watcher {
        host: text("host", host, HOST_BYTES_MAX)?,
        folder: text("folder", folder, FOLDER_BYTES_MAX)?,
        state: state.ok_or_else(bad_state)?,
        detail: text("detail", detail, DETAIL_BYTES_MAX)?,
        seen_at: app.clock.now(),
    };
    let permit = REPORTS.try_acquire().map_err(|_| ApiError::unavailable(BUSY))?;
    // A client that disconnects does not free its place: its report still waits.
    let recording = tokio::spawn(async move {
        let _permit = permit;
        operator.store.record_watcher(&name, watcher).await
    });
    recording.await.map_err(|error| ApiError::internal(&error))??;
    Ok(no_content())
}

fn text(field: &'static str, text: Option<String>, bytes_max: usize) -> Result<String, ApiError> {
    let text = text.ok_or_else(|| invalid_field(field, Reason::Missing))?;
    let is_valid = !text.is_empty() && text.len() <= bytes_max && !text.contains(char::is_control);
    let problem = || format!("{field} must have 1 to {bytes_max} bytes, without control characters");
    if is_valid { Ok(text) } else { Err(ApiError::InvalidJson(problem())) }
}
