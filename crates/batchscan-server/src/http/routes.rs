//! Every public route of the service.

use axum::Router;
use axum::body::Body;
use axum::handler::Handler;
use axum::http::{HeaderValue, Response, StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::routing::{self, MethodRouter};

use super::app::App;
use super::error::ApiError;
use super::{
    batches, changes, dashboard, demo_report, docs, export, health, middleware, openapi, seen, session, token,
};

/// The public routes.
pub fn router(app: App) -> Router {
    let routes = Router::new()
        .route("/v1/auth", post(token::create))
        .route("/v2/auth", post(token::create))
        .route("/v1/batches", get(batches::list_v1))
        .route("/v2/batches", get(batches::list_v2))
        .route("/v2/batches/{batch_id}", get(batches::get_v2))
        .route("/v2/changes", get(changes::list))
        .route("/v2/export.csv", get(export::get))
        .route("/v2/export.ndjson", get(export::get))
        .route("/v2/export.parquet", get(export::get))
        .route("/v2/export.xlsx", get(export::get))
        .route(
            "/session",
            with_allow("POST, DELETE, OPTIONS", routing::post(session::create).delete(session::end)),
        )
        .route("/session/token", post(session::token))
        .route(
            "/session/seen",
            with_allow("GET, HEAD, POST, OPTIONS", routing::get(seen::list).post(seen::change)),
        )
        .route("/openapi.json", get(openapi::get))
        .route("/docs", get(docs::page))
        .route("/docs/", get(docs::page))
        .route("/docs/{file}", get(docs::file))
        .route("/", get(dashboard::page))
        .route("/batches", get(dashboard::page))
        .route("/batches/{id}", get(dashboard::page))
        .route("/analysis", get(dashboard::page))
        .route("/assets/{file}", get(dashboard::file))
        .route("/favicon.svg", get(dashboard::file))
        .merge(health_routes());
    let routes = if app.config.metrics_in_public { routes.merge(metrics_route()) } else { routes };
    let routes = match app.config.has_demo_reports {
        true => routes.route("/demo/reports/{id}", get(demo_report::page)),
        false => routes,
    };
    with_middleware(routes.fallback(dashboard::not_found), app)
}

pub(crate) fn health_routes() -> Router<App> {
    Router::new().route("/healthz", get(health::alive)).route("/readyz", get(health::ready))
}

pub(crate) fn metrics_route() -> Router<App> {
    Router::new().route("/metrics", get(health::metrics))
}

pub(crate) fn with_middleware(routes: Router<App>, app: App) -> Router {
    routes.layer(from_fn_with_state(app.clone(), middleware::handle)).with_state(app)
}

pub(crate) fn get<H: Handler<T, App>, T: 'static>(handler: H) -> MethodRouter<App> {
    with_allow("GET, HEAD, OPTIONS", routing::get(handler))
}

pub(crate) fn post<H: Handler<T, App>, T: 'static>(handler: H) -> MethodRouter<App> {
    with_allow("POST, OPTIONS", routing::post(handler))
}

/// Adds OPTIONS, and a 405 with `Allow` for other methods (decisions 027, 030).
pub(crate) fn with_allow(allowed: &'static str, route: MethodRouter<App>) -> MethodRouter<App> {
    let options = async move || {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
        response
    };
    route.options(options).fallback(async move || ApiError::MethodNotAllowed(allowed))
}
