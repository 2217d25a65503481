//! The interface over HTTP. The one place that knows routes, statuses and axum.
//!
//! A request goes through [`Service::answer`] (limits, CORS, request id, log line, metrics) to the routes below,
//! and from there through `request` (parse; who is calling) to the store and back through `response`.

mod app;
mod auth;
mod batches;
mod budget;
mod cache;
mod conditional;
mod cors;
mod docs;
mod encoding;
mod error;
mod health;
mod in_flight;
mod observe;
pub mod openapi;
mod pages;
mod published;
mod rate_limit;
mod request;
pub mod request_id;
mod response;
mod stream;

pub use app::{App, StartError};
pub use in_flight::{InFlight, OneInFlight};
pub use observe::Service;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::{MethodRouter, get, post};

use error::ApiError;

/// Every route of the service.
fn routes(app: Arc<App>) -> Router {
    let mut routes = Router::new()
        .route("/v1/auth", only("POST, OPTIONS", post(auth::token)))
        .route("/v2/auth", only("POST, OPTIONS", post(auth::token)))
        .route("/v1/batches", only("GET, HEAD, OPTIONS", get(batches::list_v1)))
        .route("/v2/batches", only("GET, HEAD, OPTIONS", get(batches::list_v2)))
        .route("/healthz", only("GET, HEAD, OPTIONS", get(health::alive)))
        .route("/readyz", only("GET, HEAD, OPTIONS", get(health::ready)))
        .route("/openapi.json", only("GET, HEAD, OPTIONS", get(openapi::answer)))
        .route("/docs", only("GET, HEAD, OPTIONS", get(docs::page)))
        .route("/docs/", only("GET, HEAD, OPTIONS", get(docs::page)))
        .route("/docs/{file}", only("GET, HEAD, OPTIONS", get(docs::file)))
        .route("/", only("GET, HEAD, OPTIONS", get(pages::dashboard)))
        .route("/batches", only("GET, HEAD, OPTIONS", get(pages::dashboard)))
        .route("/batches/{id}", only("GET, HEAD, OPTIONS", get(pages::dashboard)))
        .route("/assets/{file}", only("GET, HEAD, OPTIONS", get(pages::asset)))
        .route("/favicon.svg", only("GET, HEAD, OPTIONS", get(pages::asset)));
    if app.config.metrics_in_public {
        routes = routes.route("/metrics", only("GET, HEAD, OPTIONS", get(health::metrics)));
    }
    routes.fallback(async || ApiError::NotFound).with_state(app)
}

/// The routes of the operator's own address.
fn operator_routes(app: Arc<App>) -> Router {
    Router::new()
        .route("/healthz", only("GET, HEAD, OPTIONS", get(health::alive)))
        .route("/readyz", only("GET, HEAD, OPTIONS", get(health::ready)))
        .route("/metrics", only("GET, HEAD, OPTIONS", get(health::metrics)))
        .fallback(async || ApiError::NotFound)
        .with_state(app)
}

/// A route that answers OPTIONS, and refuses all methods but its own with a body and `Allow` (decisions 027, 030).
fn only(allowed: &'static str, route: MethodRouter<Arc<App>>) -> MethodRouter<Arc<App>> {
    route
        .options(async move || {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NO_CONTENT;
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
            response
        })
        .fallback(async move || ApiError::MethodNotAllowed(allowed).into_response())
}
