//! A peer for the benchmark: the interface over an SQLite file, written as an ordinary, good Rust service is. Typed
//! columns become structs, structs become JSON. No page is kept, no text is stored ready to send, and no crate of
//! batchscan is used.
//!
//! | module | owns |
//! |---|---|
//! | `batch` | a batch, from a row and as JSON |
//! | `database` | connections to the file, and its queries |
//! | `filters` | dates and cursors of a request |
//! | `auth` | credentials for a token, a token for an organisation |
//! | `batches` | both versions of the list |
//! | `error` | every error as an answer |

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

use auth::Tokens;
use database::Database;
use error::ApiError;

mod auth;
mod batch;
mod batches;
mod database;
mod error;
mod filters;

/// The interface over an SQLite file.
#[derive(Parser)]
struct Arguments {
    /// The file that load.py made
    #[arg(long)]
    database: PathBuf,
    /// Where to listen; port 0 picks one
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
}

/// What every request may use.
struct App {
    database: Database,
    tokens: Tokens,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let database = Database::open(&arguments.database)
        .with_context(|| format!("cannot open {}", arguments.database.display()))?;
    let app = Arc::new(App { database, tokens: Tokens::new().context("there are no random numbers")? });
    let listener = TcpListener::bind(arguments.listen)
        .await
        .with_context(|| format!("cannot listen on {}", arguments.listen))?;
    println!("listening on http://{}", listener.local_addr()?);
    // Small answers are not to wait for the client's acknowledgement of the one before.
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    axum::serve(listener, routes(app)).await?;
    Ok(())
}

fn routes(app: Arc<App>) -> Router {
    Router::new()
        .route("/v1/auth", post(auth::token))
        .route("/v2/auth", post(auth::token))
        .route("/v1/batches", get(batches::list_v1))
        .route("/v2/batches", get(batches::list_v2))
        .fallback(async || ApiError::NotFound)
        .method_not_allowed_fallback(async || ApiError::MethodNotAllowed)
        .layer(CompressionLayer::new())
        .with_state(app)
}
