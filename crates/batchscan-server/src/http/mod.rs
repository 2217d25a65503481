//! The API over HTTP. Only `http` and `operator` know routes, statuses and axum.
//!
//! A request passes `middleware` (limits, CORS, request id, access log) and the route, then the extractors (`caller`,
//! `query`) to its handler, which calls the store and builds a response.

mod access_log;
mod app;
pub(crate) mod authorization;
mod batches;
mod cache;
mod caller;
pub(crate) mod caller_cell;
mod changes;
mod client_address;
mod conditional;
mod cors;
mod dashboard;
mod demo_report;
mod docs;
mod encoding;
pub(crate) mod error;
mod export;
mod export_file;
mod export_text;
#[cfg(test)]
mod fuzz;
mod health;
mod middleware;
pub mod openapi;
mod organisations;
pub(crate) mod parameters;
mod query;
pub(crate) mod response;
pub(crate) mod routes;
mod seen;
mod session;
pub(crate) mod static_files;
pub(crate) mod token;
mod waiting;

pub use app::{App, AppParts, StartError};
pub use routes::router;
pub(crate) use waiting::CHECK_INTERVAL;
