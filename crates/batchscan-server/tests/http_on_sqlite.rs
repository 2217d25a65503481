//! Every HTTP test on SQLite.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod http;
mod http_once;
#[path = "http/sqlite_failures.rs"]
mod sqlite_failures;

/// The store under test.
const STORE: http::StoreKind = http::StoreKind::Sqlite;
