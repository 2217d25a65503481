//! The batchscan service as a library.
//!
//! | module | owns |
//! |---|---|
//! | [`serve`] | the running service: listeners, background work, the way down |
//! | [`edge`] | connections: accepts, caps, times out, drains, TLS |
//! | [`http`] | the interface: routes, requests, answers, statuses |
//! | [`auth`] | secrets, tokens, keys |
//! | [`cursor`] | the sealed cursors of v2 |
//! | [`deflate`] | gzip bodies out of pieces that were compressed before |
//! | [`store`] | organisations, credentials and batches; the contract every store keeps |
//! | [`import`] | files to batches, and batches to the store |
//! | [`copy`] | one database into another, verified |
//! | [`config`], [`clock`], [`metrics`] | what the operator sets, what time it is, what the operator sees |
//!
//! Imports run one way: `serve → edge → http → {auth, cursor} → store → deflate`, and `{import, copy} → store`. Only `http` and `edge`
//! know HTTP, only `store` knows SQL.

pub mod auth;
pub mod clock;
pub mod config;
pub mod copy;
pub mod cursor;
pub mod deflate;
pub mod edge;
pub mod http;
pub mod import;
pub mod metrics;
pub mod serve;
pub mod store;
