//! Organisations: list, add, rename, remove.

use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use batchscan_model::Reason;
use batchscan_store::OrgName;
use serde::Deserialize;
use serde_json::{Value, json};

use super::access::Operator;
use super::json::organisation;
use super::request::{PathNames, invalid_field, respond};
use crate::http::App;
use crate::http::error::ApiError;
use crate::http::response::no_content;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Name {
    name: Option<String>,
}

async fn read_name(operator: &Operator, body: Body) -> Result<OrgName, ApiError> {
    let Name { name } = operator.read_json(body).await?;
    let name = name.ok_or_else(|| invalid_field("name", Reason::Missing))?;
    OrgName::new(&name).ok_or_else(|| invalid_field("name", Reason::BadName))
}

/// `GET /operator/v1/organisations`.
pub(super) async fn list(operator: Operator) -> Result<Response, ApiError> {
    operator.require_admin()?;
    let data: Value = operator.store.orgs().await?.iter().map(organisation).collect();
    Ok(respond(StatusCode::OK, &json!({ "data": data })))
}

/// `POST /operator/v1/organisations`.
pub(super) async fn add(
    State(app): State<App>,
    operator: Operator,
    body: Body,
) -> Result<Response, ApiError> {
    let name = read_name(&operator, body).await?;
    let added = operator.store.add_org(&name, app.clock.now()).await?;
    Ok(respond(StatusCode::CREATED, &organisation(&added)))
}

/// `PATCH /operator/v1/organisations/{name}`.
pub(super) async fn rename(
    State(app): State<App>,
    operator: Operator,
    PathNames(name): PathNames<String>,
    body: Body,
) -> Result<Response, ApiError> {
    let to = read_name(&operator, body).await?;
    operator.store.rename_org(&name, &to, app.clock.now()).await?;
    Ok(respond(StatusCode::OK, &organisation(&operator.store.org(to.as_str()).await?)))
}

/// `DELETE /operator/v1/organisations/{name}`.
pub(super) async fn remove(
    State(app): State<App>,
    operator: Operator,
    PathNames(name): PathNames<String>,
) -> Result<Response, ApiError> {
    operator.require_admin()?;
    operator.store.remove_org(&name, app.clock.now()).await?;
    Ok(no_content())
}
