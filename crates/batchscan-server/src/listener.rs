//! Accepts connections, limits their number and drains them. Knows HTTP's framing but no routes.
//!
//! A request that hyper cannot parse never reaches a handler: hyper itself responds with 400, 414 or 431 without a body.
//! On HTTP/1 `ClientStream` adds a JSON body to these responses. On HTTP/2 that is not possible: a malformed request
//! ends in a stream reset or a closed connection, and too many header fields in a 431 without a body.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use hyper::body::{Body as _, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tower::Service as _;

use crate::budget::Budget;
use crate::connection::{self, ClientStream, Socket};
use crate::in_flight::InFlight;
use crate::metrics::Metrics;
use crate::tls::Tls;

/// Open connections. An idle one costs about 10 KB and a file descriptor.
pub const CONNECTIONS_MAX: usize = 10_000;
/// Connections that the system may queue for us, so that a burst of clients does not have to retry.
const BACKLOG: u32 = 4_096;
/// A TLS handshake takes two round trips.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Buffer for the head of an HTTP/1 request. Larger than what the middleware accepts, so that its error is sent.
const HEAD_BYTES_MAX: usize = 48 * 1024;
/// Header fields of an HTTP/1 request.
const HEADER_FIELDS_MAX: usize = 100;
/// Header fields of an HTTP/2 request after decompression.
const H2_HEADER_BYTES_MAX: u32 = 16 * 1024;
/// Concurrent requests on one HTTP/2 connection.
const H2_STREAMS_MAX: u32 = 64;
/// Buffer for an HTTP/2 response that its client does not read.
const H2_SEND_BYTES_MAX: usize = 64 * 1024;
/// Pause after a failed accept, for example because no file descriptor is left.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);
/// Time to send the error to a client that exceeds [`CONNECTIONS_MAX`].
const REJECT_TIMEOUT: Duration = Duration::from_secs(1);

/// A bound address.
#[derive(Debug)]
pub struct Listener {
    tcp: TcpListener,
    tls: Option<Arc<Tls>>,
    address: SocketAddr,
}

impl Listener {
    /// Binds an address such as `127.0.0.1:8080`; port 0 picks a free port.
    pub async fn bind(address: &str, tls: Option<Arc<Tls>>) -> std::io::Result<Self> {
        let tcp = bind(address).await?;
        let address = tcp.local_addr()?;
        Ok(Self { tcp, tls, address })
    }

    /// The URL of the address.
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Serves until `stop` becomes true, then waits at most `drain` for unfinished responses.
    pub(crate) async fn serve(
        self,
        router: Router,
        (metrics, budget): (Arc<Metrics>, Budget),
        mut stop: watch::Receiver<bool>,
        drain: Duration,
    ) {
        let graceful = GracefulShutdown::new();
        let (abort_sender, abort) = watch::channel(false);
        let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let acceptor = Acceptor { router, metrics, budget, slots, tls: self.tls, abort };
        loop {
            tokio::select! {
                accepted = self.tcp.accept() => match accepted {
                    Ok((stream, address)) => acceptor.spawn_connection(stream, address.ip().to_canonical(), graceful.watcher()),
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a connection");
                        tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                    }
                },
                () = is_set(&mut stop) => break,
            }
        }
        drop(self.tcp);
        if tokio::time::timeout(drain, graceful.shutdown()).await.is_err() {
            tracing::warn!(seconds = drain.as_secs(), "aborted responses that did not finish in time");
        }
        drop(abort_sender);
    }
}

/// Completes when the value is true or its sender is dropped.
async fn is_set(flag: &mut watch::Receiver<bool>) {
    let _ = flag.wait_for(|is_set| *is_set).await;
}

/// Binds the first usable address.
async fn bind(address: &str) -> std::io::Result<TcpListener> {
    let mut last_error = std::io::Error::from(std::io::ErrorKind::InvalidInput);
    for address in tokio::net::lookup_host(address).await? {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        socket.set_reuseaddr(true)?;
        match socket.bind(address).and_then(|()| socket.listen(BACKLOG)) {
            Ok(listener) => return Ok(listener),
            Err(error) => last_error = error,
        }
    }
    Err(last_error)
}

/// Starts a task for each new connection.
struct Acceptor {
    router: Router,
    metrics: Arc<Metrics>,
    budget: Budget,
    slots: Arc<Semaphore>,
    tls: Option<Arc<Tls>>,
    /// Ends the connections that are left after draining.
    abort: watch::Receiver<bool>,
}

impl Acceptor {
    fn spawn_connection(&self, stream: TcpStream, address: IpAddr, watcher: Watcher) {
        let Ok(slot) = self.slots.clone().try_acquire_owned() else {
            self.metrics.connections_refused.inc();
            if self.tls.is_none() {
                tokio::spawn(reject(stream));
            }
            return;
        };
        // Responses are written as a whole: delaying a packet until it is full would only delay their ends.
        let _ = stream.set_nodelay(true);
        let open = OpenConnection::new(self.metrics.clone(), slot);
        let (router, budget, in_flight) = (self.router.clone(), self.budget.clone(), InFlight::new(address));
        let (tls, mut abort) = (self.tls.clone(), self.abort.clone());
        let connection = async move {
            let Some(tls) = tls else {
                return serve_connection(stream, in_flight, router, budget, watcher).await;
            };
            match tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)).await {
                Ok(Ok(stream)) => serve_connection(stream, in_flight, router, budget, watcher).await,
                Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
                Err(_) => tracing::debug!("TLS handshake timed out"),
            }
        };
        tokio::spawn(async move {
            let _open = open;
            tokio::select! {
                biased;
                () = connection => {}
                () = is_set(&mut abort) => {}
            }
        });
    }
}

/// Serves one connection until either side closes it.
async fn serve_connection(
    stream: impl Socket,
    in_flight: InFlight,
    router: Router,
    budget: Budget,
    watcher: Watcher,
) {
    let io = TokioIo::new(ClientStream::new(stream, in_flight.clone(), budget));
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let has_body = !request.body().is_end_stream();
        let mut request: Request = request.map(Body::new);
        request.extensions_mut().insert(Arc::new(in_flight.begin(has_body)));
        let mut router = router.clone();
        async move { Ok::<_, Infallible>(router.call(request).await.unwrap_or_else(|never| match never {})) }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    // `pipeline_flush` stays off: with it, a slow reader of a long response makes hyper buffer without limit.
    // `ClientStream` has the timeouts: hyper's header timeout would also close idle connections.
    // Half-closed connections are served for a while: `ClientStream` decides when the client is gone.
    let mut http1 = builder.http1();
    http1
        .half_close(true)
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADER_FIELDS_MAX);
    let mut http2 = builder.http2();
    http2.timer(TokioTimer::new()).max_concurrent_streams(H2_STREAMS_MAX);
    http2.max_header_list_size(H2_HEADER_BYTES_MAX).max_send_buf_size(H2_SEND_BYTES_MAX);
    let connection = builder.serve_connection(io, service).into_owned();
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(error, "connection ended with an error");
    }
}

/// Sends a 503 and closes the connection.
async fn reject(mut stream: TcpStream) {
    let detail = "Too many connections: try again in a few seconds";
    let response = connection::http1_error("503 Service Unavailable", detail, &stream);
    let _ = tokio::time::timeout(REJECT_TIMEOUT, stream.write_all(&response)).await;
}

/// Counts a connection while it is open.
struct OpenConnection {
    metrics: Arc<Metrics>,
    _slot: OwnedSemaphorePermit,
}

impl OpenConnection {
    fn new(metrics: Arc<Metrics>, slot: OwnedSemaphorePermit) -> Self {
        metrics.connections.inc();
        Self { metrics, _slot: slot }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.metrics.connections.dec();
    }
}
