//! The operator API (decision 055): on the operator's address only, with tokens of its own.
//!
//! | module | owns |
//! |---|---|
//! | `access` | `Operator`: the token of a request, and what it allows |
//! | `imports` | imports of files and single batches, and their record |
//! | `organisations`, `credentials` | as on the command line |
//! | `watchers` | reports of watched folders |
//! | `json` | organisations, credentials, imports and audit entries as JSON, for the API and the command line |

mod access;
mod credentials;
mod imports;
pub mod json;
mod organisations;
mod request;
mod watchers;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing;
use batchscan_store::AuditRange;

use self::access::Operator;
use self::request::Query;
use crate::http::App;
use crate::http::error::ApiError;
use crate::http::routes::{get, health_routes, metrics_route, post, with_allow, with_middleware};
use crate::http::static_files::StaticFile;

pub use self::credentials::RETIRE_AFTER_DAYS;
pub use self::imports::KEEP_REMOVALS_DAYS;

/// The OpenAPI document of the operator API.
pub const DOCUMENT: &str = include_str!("../../operator-openapi.json");

/// The routes of the operator's address.
pub fn router(app: App) -> Router {
    let not_found = async || ApiError::NotFound;
    let routes = health_routes().merge(metrics_route()).merge(api_routes());
    with_middleware(routes.fallback(not_found), app)
}

fn api_routes() -> Router<App> {
    Router::new()
        .route("/operator/v1/openapi.json", get(document))
        .route("/operator/v1/audit", get(audit))
        .route(
            "/operator/v1/organisations",
            with_allow(
                "GET, HEAD, POST, OPTIONS",
                routing::get(organisations::list).post(organisations::add),
            ),
        )
        .route(
            "/operator/v1/organisations/{name}",
            with_allow(
                "PATCH, DELETE, OPTIONS",
                routing::patch(organisations::rename).delete(organisations::remove),
            ),
        )
        .route(
            "/operator/v1/organisations/{name}/imports",
            with_allow("GET, HEAD, POST, OPTIONS", routing::get(imports::list).post(imports::create)),
        )
        .route(
            "/operator/v1/organisations/{name}/watchers",
            with_allow("PUT, OPTIONS", routing::put(watchers::report)),
        )
        .route(
            "/operator/v1/organisations/{name}/batches/{batch_id}",
            with_allow(
                "PUT, DELETE, OPTIONS",
                routing::put(imports::put_batch).delete(imports::remove_batch),
            ),
        )
        .route(
            "/operator/v1/organisations/{name}/credentials",
            with_allow("GET, HEAD, POST, OPTIONS", routing::get(credentials::list).post(credentials::issue)),
        )
        .route(
            "/operator/v1/organisations/{name}/credentials/{client_id}",
            with_allow("DELETE, OPTIONS", routing::delete(credentials::revoke)),
        )
        .route("/operator/v1/organisations/{name}/credentials/{client_id}/rotate", post(credentials::rotate))
}

async fn document(headers: HeaderMap) -> Response {
    StaticFile::new("application/json", DOCUMENT.as_bytes().into(), None).respond(&headers)
}

/// `GET /operator/v1/audit`.
async fn audit(
    State(app): State<App>,
    operator: Operator,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    operator.require_admin()?;
    let query = Query::parse(query.as_deref(), &["after", "limit", "since"])?;
    let (after, limit) = query.after()?;
    let range = AuditRange { since: query.instant("since")?, after, limit: limit + 1 };
    let entries = app.store.audit(range).await?;
    Ok(request::list(entries, limit, json::audit_entry))
}
