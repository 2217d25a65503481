//! Watched folders report here, so that `batchscan status` notices one that has died.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use batchscan_model::Reason;
use batchscan_store::{Watcher, WatcherState};
use serde::Deserialize;

use super::access::Operator;
use super::request::{PathNames, invalid_field, read_json};
use crate::http::App;
use crate::http::error::ApiError;
use crate::http::response::no_content;

const TEXT_CHARS_MAX: usize = 1_000;

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
        host: text("host", host)?,
        folder: text("folder", folder)?,
        state: state.ok_or_else(bad_state)?,
        detail: text("detail", detail)?,
        seen_at: app.clock.now(),
    };
    // Fails for an unknown organisation.
    operator.store.org_id(&name).await?;
    operator.store.record_watcher(&name, watcher).await?;
    Ok(no_content())
}

fn text(field: &'static str, text: Option<String>) -> Result<String, ApiError> {
    let text = text.ok_or_else(|| invalid_field(field, Reason::Missing))?;
    let is_valid =
        !text.is_empty() && text.chars().count() <= TEXT_CHARS_MAX && !text.contains(char::is_control);
    is_valid.then_some(text).ok_or_else(|| invalid_field(field, Reason::BadName))
}
