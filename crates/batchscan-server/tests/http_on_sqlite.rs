//! Every HTTP test on SQLite.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod http;
mod http_once;
#[path = "http/sqlite_failures.rs"]
mod sqlite_failures;

// `cargo bolero` compiles this, too, and then needs its runtime (docs/TESTING.md).
use bolero as _;

/// The store under test.
const STORE: http::StoreKind = http::StoreKind::Sqlite;
