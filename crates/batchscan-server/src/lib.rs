//! The batchscan service as a library.
//!
//! | module | owns |
//! |---|---|
//! | [`serve`] | the running service: listeners, background tasks, shutdown |
//! | [`listener`], [`tls`] | connections: limits, timeouts, TLS, draining |
//! | [`operator`] | the operator API |
//! | [`http`] | the API: routes, extractors, responses, error statuses |
//! | [`auth`] | secrets, tokens, keys |
//! | [`cipher`], [`cursor`], `changes_position` | what clients keep for the service, encrypted |
//! | `budget`, `in_flight` | the memory of responses, and how far each was sent |
//! | `slots`, `spool` | concurrent exports and imports, and their temporary files |
//! | [`config`], [`clock`], [`metrics`] | settings, time, Prometheus metrics |
//!
//! Imports point one way: `serve → {listener, operator} → http → {auth, cursor, changes_position} → cipher`. SQL is in `batchscan-store`.

pub mod auth;
mod budget;
mod changes_position;
pub mod cipher;
pub mod clock;
pub mod config;
mod connection;
pub mod cursor;
mod hex;
pub mod http;
mod in_flight;
pub mod listener;
pub mod metrics;
pub mod operator;
mod request_id;
pub mod serve;
mod slots;
mod spool;
pub mod tls;
