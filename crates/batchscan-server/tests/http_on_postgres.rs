//! Every claim about HTTP on a PostgreSQL server, and what is true of outages there.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, and so does what it is made of"
)]

mod http;
#[path = "http/postgres_failures.rs"]
mod postgres_failures;

/// The store that the claims are held on.
const STORE: http::app::Kind = http::app::Kind::Postgres;
