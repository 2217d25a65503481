//! `/healthz`, `/readyz`, `/metrics`: for load balancers and Prometheus.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, Response, header};

use super::App;
use super::error::{ApiError, Cause};
use batchscan_store::StoreError;

/// A load balancer's patience is short; a store that needs longer is not ready.
const READY_WAIT: Duration = Duration::from_secs(2);

/// The process lives.
pub(super) async fn alive() -> Response<Body> {
    text("application/json", r#"{"status":"alive"}"#.into())
}

/// It can answer: the store is there, and the process is not about to stop.
pub(super) async fn ready(State(app): State<Arc<App>>) -> Result<Response<Body>, ApiError> {
    if app.is_draining() {
        return Err(ApiError::Unavailable(Cause::ours("the process is stopping")));
    }
    match tokio::time::timeout(READY_WAIT, app.store.ping()).await {
        Ok(Ok(())) => {}
        // Also a broken store may be mended; to a load balancer it is not ready, no more and no less.
        Ok(Err(error)) => return Err(ApiError::Unavailable(Cause::ours(&error))),
        Err(_) => return Err(StoreError::Unreachable("no answer in time".into()).into()),
    }
    Ok(text("application/json", r#"{"status":"ready"}"#.into()))
}

/// The counters.
pub(super) async fn metrics(State(app): State<Arc<App>>) -> Response<Body> {
    app.metrics.look_at_database(&app.store.hosts(), app.store.retries());
    text("application/openmetrics-text; version=1.0.0; charset=utf-8", app.metrics.text())
}

fn text(kind: &'static str, body: String) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
