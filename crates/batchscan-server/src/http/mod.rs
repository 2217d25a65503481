//! The API over HTTP. The only place that knows routes, statuses and axum.
//!
//! A request passes `middleware` (limits, CORS, request id, access log) and the route, then the extractors (`caller`,
//! `query`) to its handler, which calls the store and builds a response.

mod access_log;
mod app;
mod authorization;
mod batches;
mod cache;
mod caller;
mod changes;
mod client_address;
mod conditional;
mod cors;
mod dashboard;
mod demo_report;
mod docs;
mod encoding;
mod error;
mod export;
#[cfg(test)]
mod fuzz;
mod health;
mod middleware;
pub mod openapi;
pub mod operator;
mod organisations;
mod parameters;
mod query;
mod rate_limit;
mod routes;
mod session;
mod shares;
mod spool;
mod static_files;
mod temp_space;
mod token;
mod waiting;

pub use app::{App, AppParts, StartError};
pub use routes::{operator_router, router};
pub(crate) use waiting::CHECK_INTERVAL;
