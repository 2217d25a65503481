//! `/session/seen`: what the users of an organisation have marked as seen in the dashboard (decision 051).

use std::collections::BTreeMap;

use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use batchscan_model::printable::is_control_or_bidi;
use batchscan_store::{Caller, SEEN_SUBJECT_BYTES_MAX, SeenChange, SeenMark, StoreError};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::app::App;
use super::batches::reserved;
use super::error::ApiError;
use super::query::reject_invalid;
use super::response;
use super::session::SameOrigin;
use super::token::{in_time, parse_object, read_body};
use crate::auth::TokenError;

/// As many subjects as a request may have, each as long as a batch id can be.
const BODY_BYTES_MAX: usize = 64 * 1024;
/// Subjects of a request. Each is a statement of one transaction.
const SUBJECTS_MAX: usize = 500;
/// A few words, such as "resown".
const NOTE_CHARS_MAX: usize = 200;
/// Changes that wait for the database at once: other changes wait behind them.
static CHANGES: Semaphore = Semaphore::const_new(4);

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
struct ChangeRequest {
    /// By subject.
    marks: BTreeMap<String, MarkChange>,
}

/// What is left out stays as it is.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
struct MarkChange {
    is_seen: Option<bool>,
    note: Option<String>,
}

/// `GET /session/seen`: all marks, oldest first.
pub(super) async fn list(State(app): State<App>, caller: Caller) -> Result<Response, ApiError> {
    let marks = app.store.seen(&caller, app.clock.now()).await?;
    respond(&app, &caller, marks)
}

/// `POST /session/seen`: changes marks, and returns all.
pub(super) async fn change(
    State(app): State<App>,
    _: SameOrigin,
    caller: Caller,
    body: Body,
) -> Result<Response, ApiError> {
    let changes = reject_invalid(&app, &caller, read_changes(body).await).await?;
    let changed = in_time(async {
        let _permit = CHANGES.acquire().await;
        app.store.change_seen(&caller, changes, app.clock.now()).await
    });
    let marks = changed.await?.map_err(StoreError::from)?;
    respond(&app, &caller, marks)
}

async fn read_changes(body: Body) -> Result<BTreeMap<String, SeenChange>, ApiError> {
    let body = read_body(body, BODY_BYTES_MAX).await?;
    let ChangeRequest { marks } = parse_object(&body).map_err(ApiError::BadJson)?;
    if marks.len() > SUBJECTS_MAX {
        return Err(ApiError::BadJson(format!("more than {SUBJECTS_MAX} subjects")));
    }
    let mut changes = BTreeMap::new();
    for (subject, MarkChange { is_seen, note }) in marks {
        if !is_subject(&subject) {
            let expected = format!("a subject must have 1 to {SEEN_SUBJECT_BYTES_MAX} bytes, without NUL");
            return Err(ApiError::BadJson(expected));
        }
        let note = note.as_deref().map(clean);
        if note.as_ref().is_some_and(|note| note.chars().count() > NOTE_CHARS_MAX) {
            let expected = format!("a note must have at most {NOTE_CHARS_MAX} characters");
            return Err(ApiError::BadJson(expected));
        }
        changes.insert(subject, SeenChange { is_seen, note });
    }
    Ok(changes)
}

/// PostgreSQL stores no NUL.
fn is_subject(text: &str) -> bool {
    (1..=SEEN_SUBJECT_BYTES_MAX).contains(&text.len()) && !text.contains('\0')
}

/// A note is one line. A device that was offline must not fail for a character that was pasted.
fn clean(note: &str) -> String {
    note.replace(is_control_or_bidi, " ").trim().to_owned()
}

fn respond(app: &App, caller: &Caller, marks: Option<Vec<SeenMark>>) -> Result<Response, ApiError> {
    let marks = marks.ok_or(ApiError::InvalidToken(TokenError::Invalid))?;
    let marks = marks.iter().map(|SeenMark { subject, is_seen, at, by, note }| {
        json!({ "subject": subject, "is_seen": is_seen, "at": at.to_string(), "by": by, "note": note })
    });
    let body = json!({ "marks": marks.collect::<Value>() }).to_string();
    Ok(response::json(StatusCode::OK, Body::from(reserved(app, caller, body.into())?)))
}
