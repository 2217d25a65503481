//! Every claim about HTTP on an SQLite file, and what is true of outages there.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, and so does what it is made of"
)]

mod http;
#[path = "http/sqlite_failures.rs"]
mod sqlite_failures;

/// The store that the claims are held on.
const STORE: http::app::Kind = http::app::Kind::Sqlite;
