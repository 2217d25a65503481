//! The floor of the benchmark: sends one prepared response to every request. It has axum, hyper's settings, the runtime
//! and the allocator of batchscan, but no crate of it. Its cost is the cost of HTTP.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use axum::routing::{get, post};
use clap::Parser;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tower::Service as _;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The limits of batchscan's listener.
const HEAD_BYTES_MAX: usize = 48 * 1024;
const HEADER_FIELDS_MAX: usize = 100;

/// Sends one prepared response to every request.
#[derive(Parser)]
struct Arguments {
    /// Head and body of the response, as HTTP/1.1 sends them
    #[arg(long)]
    response: PathBuf,
    /// Where to listen
    #[arg(long)]
    listen: SocketAddr,
}

struct Prepared {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let file = std::fs::read(&arguments.response)
        .with_context(|| format!("cannot read {}", arguments.response.display()))?;
    let prepared = Prepared::parse(file).context("the file is not an HTTP response")?;
    let router = Router::new()
        .route("/v2/batches", get(send))
        .route("/v2/auth", post(read_and_send))
        .with_state(Arc::new(prepared));
    let listener = TcpListener::bind(arguments.listen)
        .await
        .with_context(|| format!("cannot listen on {}", arguments.listen))?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(serve_connection(stream, router.clone()));
    }
}

impl Prepared {
    fn parse(file: Vec<u8>) -> Option<Self> {
        let file = Bytes::from(file);
        let end = file.windows(4).position(|bytes| bytes == b"\r\n\r\n")?;
        let mut lines = std::str::from_utf8(&file[..end]).ok()?.split("\r\n");
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let headers = lines.map(|line| {
            let (name, value) = line.split_once(": ")?;
            Some((HeaderName::try_from(name).ok()?, HeaderValue::from_str(value).ok()?))
        });
        Some(Self { status, headers: headers.collect::<Option<_>>()?, body: file.slice(end + 4..) })
    }
}

async fn send(State(prepared): State<Arc<Prepared>>) -> Response<Body> {
    let mut response = Response::new(Body::from(prepared.body.clone()));
    *response.status_mut() = prepared.status;
    response.headers_mut().clone_from(&prepared.headers);
    response
}

async fn read_and_send(state: State<Arc<Prepared>>, _form: Bytes) -> Response<Body> {
    send(state).await
}

/// As batchscan's listener does.
async fn serve_connection(stream: TcpStream, router: Router) {
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let mut router = router.clone();
        async move {
            let response = router.call(request.map(Body::new)).await;
            Ok::<_, Infallible>(response.unwrap_or_else(|never| match never {}))
        }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .half_close(true)
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADER_FIELDS_MAX);
    // A client that disconnects is not an error.
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}
