//! The batchscan service as a library.

pub mod auth;
pub mod clock;
pub mod config;
pub mod cursor;
pub mod edge;
pub mod http;
pub mod import;
pub mod metrics;
pub mod serve;
pub mod store;
