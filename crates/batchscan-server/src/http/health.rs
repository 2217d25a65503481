//! `/healthz`, `/readyz`, `/metrics`: for load balancers and Prometheus.

use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use batchscan_store::StoreError;

use super::app::App;
use super::error::{ApiError, Cause};

/// Load balancers have short timeouts; a store that needs longer is not ready.
const READY_TIMEOUT: Duration = Duration::from_secs(2);

/// The process is running.
pub(super) async fn alive() -> Response {
    uncached("application/json", r#"{"status":"alive"}"#.into())
}

/// The store is available and the process is not shutting down.
pub(super) async fn ready(State(app): State<App>) -> Result<Response, ApiError> {
    if app.is_draining() {
        return Err(ApiError::Unavailable(Cause::new("the process is shutting down")));
    }
    match tokio::time::timeout(READY_TIMEOUT, app.store.ping()).await {
        Ok(Ok(())) => Ok(uncached("application/json", r#"{"status":"ready"}"#.into())),
        // For a load balancer, a broken store is unavailable too.
        Ok(Err(error)) => Err(ApiError::Unavailable(Cause::new(&error))),
        Err(_) => Err(StoreError::Unreachable("timed out".into()).into()),
    }
}

/// The metrics.
pub(super) async fn metrics(State(app): State<App>) -> Response {
    app.metrics.update_database(&app.store.hosts(), app.store.retries());
    uncached("application/openmetrics-text; version=1.0.0; charset=utf-8", app.metrics.text())
}

fn uncached(content_type: &'static str, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
