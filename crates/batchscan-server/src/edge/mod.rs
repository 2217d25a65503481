//! Connections: accepts them, caps them, times them out, drains them. Knows HTTP's framing, none of its routes.
//!
//! # What hyper answers by itself
//!
//! A request that hyper cannot parse never reaches a handler; hyper answers it with a bare 400, 414 or 431. On
//! HTTP/1 `guard` gives those answers the body that every error has. On HTTP/2 a malformed request ends in a
//! stream reset or a closed connection, as its protocol demands, and a header list past the limit in a 431 without
//! a body: nothing can be put in between there.

mod guard;
mod tls;

pub use tls::{Tls, TlsError};

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::http::{InFlight, Service};
use crate::metrics::Metrics;
use guard::Guard;

/// Connections open at once. Each idle one costs some 10 KB and a file descriptor.
pub const CONNECTIONS_MAX: usize = 10_000;
/// Connections the system may hold ready for us: a burst must not cost its clients a second.
const BACKLOG: u32 = 4_096;
/// A TLS handshake takes two round trips.
const HANDSHAKE_WAIT: Duration = Duration::from_secs(10);
/// What HTTP/1 may buffer of a request's head; a little more than handlers accept, so that those get to answer.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Header fields of a request on HTTP/1.
const HEADER_FIELDS_MAX: usize = 100;
/// The same for HTTP/2, after decompression.
const H2_HEADER_BYTES_MAX: u32 = 64 * 1024;
/// Requests at once on one HTTP/2 connection.
const H2_STREAMS_MAX: u32 = 64;
/// What HTTP/2 may buffer of an answer that its client does not read.
const H2_SEND_BYTES_MAX: usize = 64 * 1024;
/// After a failure to accept (no file descriptor left, say) the next try waits this long.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// An address that connections come in at.
#[derive(Debug)]
pub struct Listener {
    tcp: TcpListener,
    tls: Option<Arc<Tls>>,
    address: SocketAddr,
}

impl Listener {
    /// Binds an address such as `127.0.0.1:8080`; port 0 picks one.
    pub async fn bind(address: &str, tls: Option<Arc<Tls>>) -> std::io::Result<Self> {
        let tcp = listen(address).await?;
        let address = tcp.local_addr()?;
        Ok(Self { tcp, tls, address })
    }

    /// Where it listens, as a URL.
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Serves until `stop` turns true, then lets the answers under way finish for at most `drain`.
    pub async fn serve(
        self,
        service: Service,
        metrics: Arc<Metrics>,
        mut stop: watch::Receiver<bool>,
        drain: Duration,
    ) {
        let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let graceful = GracefulShutdown::new();
        let (cutting, cut) = watch::channel(false);
        let doorman = Doorman { service, metrics, tls: self.tls, cut };
        loop {
            tokio::select! {
                accepted = self.tcp.accept() => match accepted {
                    Ok((stream, _)) => doorman.admit(stream, &slots, graceful.watcher()),
                    Err(error) => {
                        tracing::warn!(%error, "could not accept a connection");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
                () = turned_true(&mut stop) => break,
            }
        }
        drop(self.tcp);
        if tokio::time::timeout(drain, graceful.shutdown()).await.is_err() {
            tracing::warn!(seconds = drain.as_secs(), "some answers did not finish in time and were cut");
        }
        drop(cutting);
    }
}

/// Done when the watched value is true, or its sender is gone.
async fn turned_true(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Listens at the first of the addresses that can be had.
async fn listen(address: &str) -> std::io::Result<TcpListener> {
    let mut refused = std::io::Error::from(std::io::ErrorKind::InvalidInput);
    for address in tokio::net::lookup_host(address).await? {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        socket.set_reuseaddr(true)?;
        match socket.bind(address).and_then(|()| socket.listen(BACKLOG)) {
            Ok(listener) => return Ok(listener),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

/// Takes each new connection to a task of its own.
struct Doorman {
    service: Service,
    metrics: Arc<Metrics>,
    tls: Option<Arc<Tls>>,
    /// Ends the connections that are left when the drain is over.
    cut: watch::Receiver<bool>,
}

impl Doorman {
    fn admit(&self, stream: TcpStream, slots: &Arc<Semaphore>, watcher: Watcher) {
        let Ok(slot) = slots.clone().try_acquire_owned() else {
            self.metrics.connections_refused.inc();
            if self.tls.is_none() {
                tokio::spawn(refuse(stream));
            }
            return;
        };
        // Answers are written whole; waiting to fill a packet would only delay their ends.
        let _ = stream.set_nodelay(true);
        let counted = Counted::new(self.metrics.clone(), slot);
        let (service, tls, mut cut) = (self.service.clone(), self.tls.clone(), self.cut.clone());
        let conversation = async move {
            let Some(tls) = tls else { return converse(stream, service, watcher).await };
            match tokio::time::timeout(HANDSHAKE_WAIT, tls.accept(stream)).await {
                Ok(Ok(stream)) => converse(stream, service, watcher).await,
                Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
                Err(_) => tracing::debug!("a TLS handshake took too long"),
            }
        };
        tokio::spawn(async move {
            let _counted = counted;
            tokio::select! {
                biased;
                () = conversation => {}
                () = turned_true(&mut cut) => {}
            }
        });
    }
}

/// Speaks HTTP on one connection until either side ends it.
async fn converse<S>(stream: S, service: Service, watcher: Watcher)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let in_flight = InFlight::default();
    let io = TokioIo::new(Guard::new(stream, in_flight.clone()));
    let answer = service_fn(move |request: hyper::Request<Incoming>| {
        let (service, owed) = (service.clone(), in_flight.begin());
        let request: Request = request.map(Body::new);
        async move { Ok::<_, std::convert::Infallible>(service.answer(request, owed).await) }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    // `pipeline_flush` stays off: with it, one slow reader of a long answer makes hyper buffer without end.
    // The guard keeps the time: hyper's own header timeout would also end idle connections.
    let mut http1 = builder.http1();
    // A client may say that it has no more to ask before it reads, as `nc` does.
    http1
        .half_close(true)
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADER_FIELDS_MAX);
    let mut http2 = builder.http2();
    http2.timer(TokioTimer::new()).max_concurrent_streams(H2_STREAMS_MAX);
    http2.max_header_list_size(H2_HEADER_BYTES_MAX).max_send_buf_size(H2_SEND_BYTES_MAX);
    let connection = builder.serve_connection(io, answer).into_owned();
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(error, "a connection ended early");
    }
}

/// Says why, and hangs up. Short and bounded: it is what keeps the service calm when too many come.
async fn refuse(mut stream: TcpStream) {
    let answer = guard::answer("503 Service Unavailable", "Too many connections: try again in a few seconds");
    let _ = tokio::time::timeout(Duration::from_secs(1), stream.write_all(&answer)).await;
}

/// Counts a connection while it lives.
struct Counted {
    metrics: Arc<Metrics>,
    _slot: OwnedSemaphorePermit,
}

impl Counted {
    fn new(metrics: Arc<Metrics>, slot: OwnedSemaphorePermit) -> Self {
        metrics.connections.inc();
        Self { metrics, _slot: slot }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.metrics.connections.dec();
    }
}
