//! `/healthz`, `/readyz`, `/metrics`: for load balancers and Prometheus.

use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use batchscan_store::StoreError;

use super::app::App;
use super::encoding::accepts;
use super::error::ApiError;
use super::response;
use crate::metrics::to_prometheus_text;

/// Load balancers have short timeouts; a store that needs longer is not ready.
const READY_TIMEOUT: Duration = Duration::from_secs(2);

/// Prometheus waits for 10 s. The other metrics matter most when the store is slow.
const ORGANISATIONS_TIMEOUT: Duration = Duration::from_secs(2);

/// A page of a thousand batches: without memory for one, a new client would get a 503.
const READY_BYTES: usize = 1024 * 1024;

/// The process is running.
pub(super) async fn alive() -> Response {
    response::json(StatusCode::OK, r#"{"status":"alive"}"#)
}

/// The store is available, there is memory for responses, and the process is not shutting down.
pub(super) async fn ready(State(app): State<App>) -> Result<Response, ApiError> {
    if app.is_draining() {
        return Err(ApiError::unavailable("the process is shutting down"));
    }
    if !app.budget.has_room(READY_BYTES) {
        return Err(ApiError::unavailable("the memory for responses is exhausted"));
    }
    match tokio::time::timeout(READY_TIMEOUT, app.store.ping()).await {
        Ok(Ok(())) => Ok(response::json(StatusCode::OK, r#"{"status":"ready"}"#)),
        // For a load balancer, a broken store is unavailable too.
        Ok(Err(error)) => Err(ApiError::unavailable(&error)),
        Err(_) => Err(StoreError::Unreachable("timed out".into()).into()),
    }
}

/// The metrics. Without the store, those of the organisations are the last known ones.
pub(super) async fn metrics(State(app): State<App>, headers: HeaderMap) -> Response {
    app.metrics.update_database(&app.store.hosts(), app.store.retries());
    let numbers = app.organisations.numbers(&app.store);
    let numbers = tokio::time::timeout(ORGANISATIONS_TIMEOUT, numbers).await.ok().and_then(Result::ok);
    let text = app.metrics.text(numbers.as_deref());
    let mut response = if accepts(&headers, header::ACCEPT, &["application/openmetrics-text"]) {
        response::text("application/openmetrics-text; version=1.0.0; charset=utf-8", text)
    } else {
        response::text("text/plain; version=0.0.4; charset=utf-8", to_prometheus_text(&text))
    };
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
    response
}
