//! Credentials of an organisation: list, issue, rotate, revoke.

use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use batchscan_model::{ClientId, ClientSecret, Reason, UtcInstant};
use batchscan_store::{IdAndSecret, NewCredential, Rotation, is_label, new_secret};
use serde::Deserialize;
use serde_json::{Value, json};

use super::access::Operator;
use super::json::credential;
use super::request::{PathNames, invalid_field, respond};
use crate::http::App;
use crate::http::error::ApiError;
use crate::http::response::no_content;

/// How long an old secret keeps working, unless the operator says otherwise.
pub const RETIRE_AFTER_DAYS: u32 = 7;

/// `GET /operator/v1/organisations/{name}/credentials`.
pub(super) async fn list(
    State(app): State<App>,
    operator: Operator,
    PathNames(name): PathNames<String>,
) -> Result<Response, ApiError> {
    operator.require_admin()?;
    let all = operator.store.credentials(Some(&name)).await?;
    let now = app.clock.now();
    let data: Value = all.iter().map(|one| credential(one, now)).collect();
    Ok(respond(StatusCode::OK, &json!({ "data": data })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewOptions {
    #[serde(default)]
    label: String,
    expires_at: Option<String>,
}

/// `POST /operator/v1/organisations/{name}/credentials`.
pub(super) async fn issue(
    State(app): State<App>,
    operator: Operator,
    PathNames(name): PathNames<String>,
    body: Body,
) -> Result<Response, ApiError> {
    let NewOptions { label, expires_at } = operator.read_json(body).await?;
    if !is_label(&label) {
        return Err(invalid_field("label", Reason::BadName));
    }
    let now = app.clock.now();
    let parse = |text: String| UtcInstant::parse_any_offset(&text).ok().filter(|at| *at > now);
    let expires_at = match expires_at {
        Some(text) => Some(parse(text).ok_or_else(|| invalid_field("expires_at", Reason::NotInTheFuture))?),
        None => None,
    };
    let IdAndSecret { id: client, secret } = IdAndSecret::of_client().ok_or_else(no_randomness)?;
    let secret_hash = app.keys().ring.secret.hash(&secret);
    let new = NewCredential { client: client.clone(), label, expires_at, secret_hash, now };
    operator.store.add_credential(&name, new).await?;
    let expires_at = expires_at.map(|at| at.to_string());
    Ok(respond_secret(StatusCode::CREATED, &client, &secret, ("expires_at", expires_at)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RotateOptions {
    retire_after_seconds: Option<u32>,
}

/// `POST /operator/v1/organisations/{name}/credentials/{client_id}/rotate`.
pub(super) async fn rotate(
    State(app): State<App>,
    operator: Operator,
    PathNames((name, client)): PathNames<(String, String)>,
    body: Body,
) -> Result<Response, ApiError> {
    let RotateOptions { retire_after_seconds } = operator.read_json(body).await?;
    let client = find(&operator, &name, &client).await?;
    let secret = new_secret().ok_or_else(no_randomness)?;
    let now = app.clock.now();
    let retire_at = now.plus_secs(retire_after_seconds.unwrap_or(RETIRE_AFTER_DAYS * 24 * 60 * 60).into());
    let rotation = Rotation { secret_hash: app.keys().ring.secret.hash(&secret), retire_at, now };
    operator.store.rotate_credential(&client, rotation).await?;
    let until = Some(retire_at.to_string());
    Ok(respond_secret(StatusCode::OK, &client, &secret, ("old_secret_until", until)))
}

/// `DELETE /operator/v1/organisations/{name}/credentials/{client_id}`.
pub(super) async fn revoke(
    State(app): State<App>,
    operator: Operator,
    PathNames((name, client)): PathNames<(String, String)>,
) -> Result<Response, ApiError> {
    operator.require_admin()?;
    let client = find(&operator, &name, &client).await?;
    operator.store.revoke_credential(&client, app.clock.now()).await?;
    Ok(no_content())
}

/// The credential, which must belong to the organisation in the path.
async fn find(operator: &Operator, org: &str, client: &str) -> Result<ClientId, ApiError> {
    let all = operator.store.credentials(Some(org)).await?;
    let found = all.into_iter().find(|credential| credential.client.as_str() == client);
    found.map(|credential| credential.client).ok_or(ApiError::NO_SUCH_CREDENTIAL)
}

fn respond_secret(
    status: StatusCode,
    client: &ClientId,
    secret: &ClientSecret,
    (name, until): (&str, Option<String>),
) -> Response {
    respond(status, &json!({ "client_id": client.as_str(), "client_secret": secret.reveal(), name: until }))
}

fn no_randomness() -> ApiError {
    ApiError::internal("the random number generator failed")
}
