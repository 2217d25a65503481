//! The byte stream of a client: timeouts, clients that are gone, lingering close, and JSON bodies for hyper's own error
//! responses.
//!
//! hyper has one timeout for the head of a request. It also runs while a kept-alive connection is idle, and there is none
//! before the first byte. So the timeouts are here: short for a head, longer for an idle connection, long for a client
//! that stops reading.

use std::future::Future;
use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use memchr::memmem;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_rustls::server::TlsStream;

use crate::budget::Budget;
use crate::in_flight::InFlight;
use crate::request_id;

/// From the first byte of a request, or from the start of the connection, to the end of the head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Between two requests.
const IDLE_TIMEOUT: Duration = Duration::from_secs(75);
/// For the response to a client that has closed its side of the connection: some still read, such as `nc`, and most are
/// gone. Only waits and exports take longer (decision 028).
const HALF_CLOSED_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a stalled response is looked at: the time that it may stall depends on the memory that is left.
const STALL_CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// For a client that is still sending when its response is complete, so that it can read the response.
const LINGER_TIMEOUT: Duration = Duration::from_secs(2);
/// The first bytes of HTTP/2. Its frames between requests are not request heads.
const H2_PREFACE: &[u8] = b"PRI * HTTP/2";
/// hyper calls a body of more than 2^64 - 3 bytes a header field that is too large.
const LARGEST_LENGTHS: &[u8] = b": 1844674407370955161";
/// hyper's own error responses are shorter than this.
const HYPER_ERROR_BYTES_MAX: usize = 256;

/// A TCP connection, with or without TLS.
pub(crate) trait Socket: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    fn tcp(&self) -> &TcpStream;
}

impl Socket for TcpStream {
    fn tcp(&self) -> &TcpStream {
        self
    }
}

impl Socket for TlsStream<TcpStream> {
    fn tcp(&self) -> &TcpStream {
        self.get_ref().0
    }
}

/// A client's stream as hyper sees it.
pub(crate) struct ClientStream<S: Socket> {
    stream: S,
    in_flight: InFlight,
    budget: Budget,
    /// Number of requests at the last check.
    requests: usize,
    is_h2: bool,
    /// Whether the client announced a body that is larger than hyper can count.
    has_huge_body: bool,
    /// A byte of the next request that was read before hyper wanted it.
    read_ahead: Option<u8>,
    /// Set when the client closes its side before there is a response.
    half_closed_timer: Option<Pin<Box<Sleep>>>,
    phase: Phase,
    /// Timeout of the current phase.
    timer: Pin<Box<Sleep>>,
    /// Since when a write is pending.
    write_pending_since: Option<Instant>,
    stall_timer: Option<Pin<Box<Sleep>>>,
    linger_timer: Option<Pin<Box<Sleep>>>,
    is_shut_down: bool,
    /// Whether closing the socket resets the connection, even if the process is killed.
    resets_on_close: bool,
    /// The rest of our response instead of hyper's.
    replacement: Option<Bytes>,
}

impl<S: Socket> Drop for ClientStream<S> {
    fn drop(&mut self) {
        self.in_flight.close();
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Phase {
    /// Nothing was received yet.
    Connected,
    /// A request has started and its head is incomplete.
    ReadingHead,
    /// A response is being sent.
    Responding,
    /// Between two requests.
    Idle,
}

impl<S: Socket> ClientStream<S> {
    pub(crate) fn new(stream: S, in_flight: InFlight, budget: Budget) -> Self {
        Self {
            stream,
            in_flight,
            budget,
            requests: 0,
            is_h2: false,
            has_huge_body: false,
            read_ahead: None,
            half_closed_timer: None,
            phase: Phase::Connected,
            timer: Box::pin(sleep_until(Instant::now() + HEAD_TIMEOUT)),
            write_pending_since: None,
            stall_timer: None,
            linger_timer: None,
            is_shut_down: false,
            resets_on_close: false,
            replacement: None,
        }
    }

    fn enter(&mut self, phase: Phase, timeout: Duration) {
        self.phase = phase;
        self.timer.as_mut().reset(Instant::now() + timeout);
    }

    /// Ends the phase of reading a head when hyper has passed the request on.
    fn check_for_request(&mut self) {
        let requests = self.in_flight.requests();
        if requests != self.requests {
            self.requests = requests;
            self.phase = Phase::Responding;
        }
    }

    fn on_received(&mut self, bytes: &[u8]) {
        self.check_for_request();
        self.is_h2 |= self.phase == Phase::Connected && bytes.starts_with(H2_PREFACE);
        if self.is_h2 {
            if self.phase == Phase::Connected {
                self.enter(Phase::Idle, IDLE_TIMEOUT);
            }
            return;
        }
        self.has_huge_body |= memmem::find(bytes, LARGEST_LENGTHS).is_some();
        if self.phase != Phase::ReadingHead && self.in_flight.is_idle() {
            self.enter(Phase::ReadingHead, HEAD_TIMEOUT);
        }
    }

    /// Called when there is nothing to read: whether the client has exceeded a timeout.
    fn has_timed_out(&mut self, cx: &mut Context<'_>) -> bool {
        self.check_for_request();
        if !self.in_flight.is_idle() {
            // An HTTP/2 client can stall without a pending write, by never opening its flow control window.
            return self.has_stalled(cx, self.in_flight.stalled_for());
        }
        if self.phase == Phase::Responding {
            self.enter(Phase::Idle, IDLE_TIMEOUT);
        }
        self.timer.as_mut().poll(cx).is_ready()
    }

    /// Whether the client has not read its response for too long. Otherwise the task is woken to check again.
    fn has_stalled(&mut self, cx: &mut Context<'_>, stalled_for: Duration) -> bool {
        loop {
            let left = self.budget.stall_timeout().saturating_sub(stalled_for);
            if left.is_zero() {
                return true;
            }
            let next_check = Instant::now() + left.min(STALL_CHECK_INTERVAL);
            let timer = self.stall_timer.get_or_insert_with(|| Box::pin(sleep_until(next_check)));
            if timer.as_mut().poll(cx).is_pending() {
                return false;
            }
            self.stall_timer = None;
        }
    }
}

impl<S: Socket> AsyncRead for ClientStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        if let Some(byte) = self.read_ahead.take() {
            buffer.put_slice(&[byte]);
            self.on_received(&[byte]);
            return Poll::Ready(Ok(()));
        }
        match Pin::new(&mut self.stream).poll_read(cx, buffer) {
            Poll::Ready(Ok(())) => {
                let received = &buffer.filled()[before..];
                if !received.is_empty() {
                    self.on_received(received);
                }
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending if self.has_timed_out(cx) => Poll::Ready(Err(ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: Socket> ClientStream<S> {
    /// Fails if the client is gone before there is a response, which ends its request. hyper does not read after the end
    /// of a request of HTTP/1 while its handler runs, but it flushes.
    fn check_for_close(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if self.is_h2 || self.read_ahead.is_some() || !self.in_flight.is_waiting() {
            return Ok(());
        }
        if self.half_closed_timer.is_none() {
            let mut byte = [0u8; 1];
            let mut buffer = ReadBuf::new(&mut byte);
            match Pin::new(&mut self.stream).poll_read(cx, &mut buffer)? {
                Poll::Pending => return Ok(()),
                Poll::Ready(()) => self.read_ahead = buffer.filled().first().copied(),
            }
            if self.read_ahead.is_some() {
                return Ok(());
            }
        }
        let timeout = || Box::pin(sleep_until(Instant::now() + HALF_CLOSED_TIMEOUT));
        match self.half_closed_timer.get_or_insert_with(timeout).as_mut().poll(cx) {
            Poll::Ready(()) => Err(ErrorKind::ConnectionAborted.into()),
            Poll::Pending => Ok(()),
        }
    }

    /// Fails a write or a flush that is pending for too long.
    fn with_timeout<T>(&mut self, cx: &mut Context<'_>, sent: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if sent.is_ready() {
            self.write_pending_since = None;
            return sent;
        }
        let since = *self.write_pending_since.get_or_insert_with(Instant::now);
        if self.has_stalled(cx, since.elapsed()) {
            return Poll::Ready(Err(ErrorKind::TimedOut.into()));
        }
        Poll::Pending
    }

    /// The same for a write, whose bytes are counted.
    fn count_written(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let bytes = ready!(self.with_timeout(cx, written))?;
        self.in_flight.note_written(bytes);
        // On HTTP/2, these may be the bytes of another response.
        if !self.is_h2 {
            self.in_flight.note_progress();
        }
        Poll::Ready(Ok(bytes))
    }

    /// Called before every write, so that no byte of an unfinished response is sent without it.
    fn update_reset_on_close(&mut self) {
        let must_reset = self.in_flight.must_reset();
        if must_reset != self.resets_on_close {
            self.resets_on_close = must_reset;
            #[expect(deprecated, reason = "only a time other than zero blocks")]
            let _ = self.stream.tcp().set_linger(must_reset.then_some(Duration::ZERO));
        }
    }

    /// Writes our response, then reports hyper's as written.
    fn write_replacement(&mut self, cx: &mut Context<'_>, hyper_bytes: usize) -> Poll<io::Result<usize>> {
        while let Some(mut rest) = self.replacement.clone().filter(|rest| !rest.is_empty()) {
            let written = Pin::new(&mut self.stream).poll_write(cx, &rest);
            match ready!(self.count_written(cx, written))? {
                0 => return Poll::Ready(Err(ErrorKind::WriteZero.into())),
                bytes => rest.advance(bytes),
            }
            self.replacement = Some(rest);
        }
        self.replacement = None;
        Poll::Ready(Ok(hyper_bytes))
    }
}

impl<S: Socket> ClientStream<S> {
    /// Discards what the client still sends. Closing a connection with unread bytes resets it, and then a client that
    /// sends a long body before it reads loses its response.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let is_idle = matches!(self.phase, Phase::Connected | Phase::Idle);
        let is_over = self.linger_timer.as_mut().is_none_or(|timer| timer.as_mut().poll(cx).is_ready());
        if is_idle || is_over {
            return Poll::Ready(Ok(()));
        }
        let mut scratch = [0u8; 8 * 1024];
        loop {
            let mut unread = ReadBuf::new(&mut scratch);
            match ready!(Pin::new(&mut self.stream).poll_read(cx, &mut unread)) {
                Ok(()) if !unread.filled().is_empty() => {}
                _ => return Poll::Ready(Ok(())),
            }
        }
    }
}

impl<S: Socket> AsyncWrite for ClientStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.replacement.is_none() {
            self.replacement =
                replace_hyper_error(bytes, self.has_huge_body, self.stream.tcp()).map(Bytes::from);
        }
        if self.replacement.is_some() {
            return self.write_replacement(cx, bytes.len());
        }
        self.update_reset_on_close();
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.count_written(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let [only] = slices {
            return self.poll_write(cx, only);
        }
        self.update_reset_on_close();
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.count_written(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// TLS has a buffer of its own, so that a flush can be pending.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check_for_close(cx)?;
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.with_timeout(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.update_reset_on_close();
        if self.resets_on_close {
            return Poll::Ready(Ok(()));
        }
        if !self.is_shut_down {
            let timer = self
                .linger_timer
                .get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + LINGER_TIMEOUT)));
            if timer.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Ok(()));
            }
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
            self.is_shut_down = true;
            // If there is nothing to read, the client is idle: hyper has just not tried to read since.
            self.check_for_request();
            let mut byte = [0u8; 1];
            let is_quiet = self.read_ahead.is_none()
                && Pin::new(&mut self.stream).poll_read(cx, &mut ReadBuf::new(&mut byte)).is_pending();
            if is_quiet && self.phase == Phase::Responding {
                return Poll::Ready(Ok(()));
            }
        }
        self.poll_linger(cx)
    }
}

/// The response to send instead of `bytes`, if they are an error response of hyper itself.
///
/// Our responses all have `x-request-id`. No chunk of a body looks like this, since our JSON has no bare line breaks.
fn replace_hyper_error(bytes: &[u8], has_huge_body: bool, client: &TcpStream) -> Option<Vec<u8>> {
    if bytes.len() > HYPER_ERROR_BYTES_MAX
        || !bytes.starts_with(b"HTTP/1.1 4")
        || !bytes.ends_with(b"\r\n\r\n")
    {
        return None;
    }
    let text = std::str::from_utf8(bytes).ok()?;
    let is_hypers = text.contains("content-length: 0\r\n") && !text.contains("x-request-id");
    let status = text.strip_prefix("HTTP/1.1 ")?.split("\r\n").next()?;
    let (status, detail) = match status.get(..3)? {
        "414" => (status, "The path and query are too long"),
        "431" if has_huge_body => ("413 Payload Too Large", "The request body is too large"),
        "431" => (status, "The request's header fields are too large"),
        _ => (status, "The request is not valid HTTP"),
    };
    is_hypers.then(|| http1_error(status, detail, client))
}

/// A complete HTTP/1.1 error response that closes the connection.
pub(crate) fn http1_error(status: &str, detail: &str, client: &TcpStream) -> Vec<u8> {
    let body = serde_json::json!({ "detail": detail }).to_string();
    let retry = if status.starts_with("503") { "retry-after: 4\r\n" } else { "" };
    let id = request_id::generate();
    let code = status.get(..3).and_then(|code| code.parse::<u16>().ok());
    let address = client.peer_addr().ok().map(|address| tracing::field::display(address.ip().to_canonical()));
    tracing::info!(target: "request", id, status = code, address, "rejected before routing");
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nx-content-type-options: nosniff\r\ncache-control: no-store\r\ncontent-length: {}\r\nx-request-id: {id}\r\n{retry}connection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}
