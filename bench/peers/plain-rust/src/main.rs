//! A peer for the benchmark: the API over an SQLite file, as a good ordinary Rust service. Typed columns become structs,
//! structs become JSON. It caches nothing, stores no JSON, and uses no crate of batchscan.
//!
//! | module | owns |
//! |---|---|
//! | `batch` | a batch, from a row and as JSON |
//! | `app` | the state that all requests share |
//! | `database` | connections to the file, and its queries |
//! | `filters` | dates and cursors of a request |
//! | `tokens` | signing and verifying tokens |
//! | `auth` | token requests, and the caller of a request |
//! | `batches` | both versions of the list |
//! | `error` | every error as a response |

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use axum::Router;
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use clap::Parser;
use tokio::net::TcpListener;
use tower_http::compression::CompressionLayer;

use app::App;
use database::Database;
use error::ApiError;
use tokens::Tokens;

mod app;
mod auth;
mod batch;
mod batches;
mod database;
mod error;
mod filters;
mod tokens;

/// The API over an SQLite file.
#[derive(Parser)]
struct Arguments {
    /// The file that load.py made
    #[arg(long)]
    database: PathBuf,
    /// Where to listen; port 0 picks one
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let database = Database::open(&arguments.database)
        .with_context(|| format!("cannot open {}", arguments.database.display()))?;
    let app = Arc::new(App { database, tokens: Tokens::new().context("cannot generate a signing key")? });
    let listener = TcpListener::bind(arguments.listen)
        .await
        .with_context(|| format!("cannot listen on {}", arguments.listen))?;
    println!("listening on http://{}", listener.local_addr()?);
    // Small responses must not wait for the acknowledgement of the previous one.
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    axum::serve(listener, routes(app)).await?;
    Ok(())
}

fn routes(app: Arc<App>) -> Router {
    Router::new()
        .route("/v1/auth", post(auth::issue_token))
        .route("/v2/auth", post(auth::issue_token))
        .route("/v1/batches", get(batches::list_v1))
        .route("/v2/batches", get(batches::list_v2))
        .fallback(async || ApiError::NotFound)
        .method_not_allowed_fallback(async || ApiError::MethodNotAllowed)
        .layer(CompressionLayer::new())
        .with_state(app)
}
