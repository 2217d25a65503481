//! The HTTP tests that the store can influence, on PostgreSQL, and its failures.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]
#![allow(dead_code, reason = "some helpers are only used by tests that run once, on SQLite")]

mod http;
#[path = "http/postgres_failures.rs"]
mod postgres_failures;
mod postgres_hosts;

// `cargo bolero` compiles this, too, and then needs its runtime (docs/TESTING.md).
use bolero as _;

/// The store under test.
const STORE: http::StoreKind = http::StoreKind::Postgres;
