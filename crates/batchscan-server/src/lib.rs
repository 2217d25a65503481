//! The batchscan service as a library.
//!
//! | module | owns |
//! |---|---|
//! | [`serve`] | the running service: listeners, background work, the way down |
//! | [`edge`] | connections: accepts, caps, times out, drains, TLS |
//! | [`http`] | the interface: routes, requests, answers, statuses |
//! | [`auth`] | secrets, tokens, keys |
//! | [`cursor`] | the sealed cursors of v2 |
//! | [`config`], [`clock`], [`metrics`] | what the operator sets, what time it is, what the operator sees |
//!
//! Imports run one way: `serve → edge → http → {auth, cursor}`. Only `http` and `edge` know HTTP; SQL is the business of
//! `batchscan-store`.

pub mod auth;
pub mod clock;
pub mod config;
pub mod cursor;
pub mod edge;
pub mod http;
pub mod metrics;
pub mod serve;
