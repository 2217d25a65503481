//! Stands between a connection and hyper: keeps the time, and gives hyper's bare error answers a body.
//!
//! hyper knows one timeout for a request's head, and it runs while a kept-alive connection is merely idle; before
//! the first byte there is none at all. So the time is kept here: a head must be whole soon after it begins, an idle
//! connection may stay longer, and a reader that stalls is let go in the end.

use std::future::Future;
use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::http::{InFlight, request_id};

/// From a request's first byte, or from the connection's beginning, to the end of its head.
const HEAD_WAIT: Duration = Duration::from_secs(10);
/// How long a connection may stay open between two requests.
const IDLE_WAIT: Duration = Duration::from_secs(75);
/// How long a client may take no byte of its answer: long enough for one that loads a database in between.
const STALL_WAIT: Duration = Duration::from_secs(300);
/// How long a client that is still sending when its answer is out may go on, so that it gets to read it.
const LINGER_WAIT: Duration = Duration::from_secs(2);
/// How HTTP/2 begins. Its frames between requests are no request heads.
const H2_PREFACE: &[u8] = b"PRI * HTTP/2";
/// hyper's own error answers are shorter than this.
const BARE_ANSWER_BYTES_MAX: usize = 256;

/// A guarded connection.
pub(super) struct Guard<S> {
    stream: S,
    in_flight: InFlight,
    /// How many requests were whole when we last looked.
    begun: usize,
    speaks_h2: bool,
    /// What the client owes us: the rest of a head, or its next request.
    expects: Expects,
    timer: Pin<Box<Sleep>>,
    stalled: Option<Pin<Box<Sleep>>>,
    owing: Option<Pin<Box<Sleep>>>,
    lingering: Option<Pin<Box<Sleep>>>,
    replacement: Option<Replacement>,
}

#[derive(Clone, Copy, PartialEq)]
enum Expects {
    /// The connection is new.
    FirstByte,
    /// A request has begun and is not whole.
    RestOfHead,
    /// A request is being answered.
    Nothing,
    /// The last one is answered.
    NextRequest,
}

/// An answer of ours in place of a bare one of hyper's.
struct Replacement {
    bytes: Vec<u8>,
    written: usize,
}

impl<S> Guard<S> {
    pub(super) fn new(stream: S, in_flight: InFlight) -> Self {
        let timer = Box::pin(sleep_until(Instant::now() + HEAD_WAIT));
        let expects = Expects::FirstByte;
        Self {
            stream,
            in_flight,
            begun: 0,
            speaks_h2: false,
            expects,
            timer,
            stalled: None,
            owing: None,
            lingering: None,
            replacement: None,
        }
    }

    fn expect(&mut self, what: Expects, within: Duration) {
        self.expects = what;
        self.timer.as_mut().reset(Instant::now() + within);
    }

    /// A head that became a request is no longer waited for.
    fn settle(&mut self) {
        let begun = self.in_flight.begun();
        if begun != self.begun {
            self.begun = begun;
            self.expects = Expects::Nothing;
        }
    }

    /// Something came in.
    fn received(&mut self, bytes: &[u8]) {
        self.settle();
        self.speaks_h2 |= self.expects == Expects::FirstByte && bytes.starts_with(H2_PREFACE);
        if self.speaks_h2 {
            if self.expects == Expects::FirstByte {
                self.expect(Expects::NextRequest, IDLE_WAIT);
            }
        } else if self.expects != Expects::RestOfHead && self.in_flight.is_none() {
            self.expect(Expects::RestOfHead, HEAD_WAIT);
        }
    }

    /// Nothing more is there to read. Says whether the client has taken too long.
    fn waits_too_long(&mut self, cx: &mut Context<'_>) -> bool {
        self.settle();
        if !self.in_flight.is_none() {
            return self.owes_too_long(cx);
        }
        if self.expects == Expects::Nothing {
            self.expect(Expects::NextRequest, IDLE_WAIT);
        }
        self.timer.as_mut().poll(cx).is_ready()
    }

    /// An answer is owed. Says whether the client has taken nothing of it for too long: a client of HTTP/2 can stall
    /// without a single write that waits, by never opening its window.
    fn owes_too_long(&mut self, cx: &mut Context<'_>) -> bool {
        loop {
            let left = STALL_WAIT.saturating_sub(self.in_flight.stalled_for());
            if left.is_zero() {
                return true;
            }
            let timer = self.owing.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + left)));
            if timer.as_mut().poll(cx).is_pending() {
                return false;
            }
            self.owing = None;
        }
    }

    /// The client takes no bytes. Says whether that has gone on for too long.
    fn stalls_too_long(&mut self, cx: &mut Context<'_>) -> bool {
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + STALL_WAIT)));
        stalled.as_mut().poll(cx).is_ready()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        match Pin::new(&mut self.stream).poll_read(cx, buffer) {
            Poll::Ready(Ok(())) => {
                let received = &buffer.filled()[before..];
                if !received.is_empty() {
                    self.received(received);
                }
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending if self.waits_too_long(cx) => Poll::Ready(Err(ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncWrite + Unpin> Guard<S> {
    /// Passes a write on, unless it stalls for too long.
    fn watched(&mut self, cx: &mut Context<'_>, wrote: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match wrote {
            Poll::Pending if self.stalls_too_long(cx) => Poll::Ready(Err(ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
            ready => {
                self.stalled = None;
                ready
            }
        }
    }

    /// Writes our answer where hyper wants to write its bare one; done when all of it is out.
    fn write_replacement(&mut self, cx: &mut Context<'_>, bare: usize) -> Poll<io::Result<usize>> {
        while let Some(replacement) = &mut self.replacement {
            let rest = &replacement.bytes[replacement.written..];
            if rest.is_empty() {
                self.replacement = None;
                break;
            }
            let wrote = Pin::new(&mut self.stream).poll_write(cx, rest);
            match ready!(self.watched(cx, wrote))? {
                0 => return Poll::Ready(Err(ErrorKind::WriteZero.into())),
                bytes => {
                    if let Some(replacement) = &mut self.replacement {
                        replacement.written += bytes;
                    }
                }
            }
        }
        Poll::Ready(Ok(bare))
    }
}

impl<S: AsyncRead + Unpin> Guard<S> {
    /// Takes what the client still sends, and throws it away. A connection that is closed with bytes unread is reset,
    /// and with it goes the answer to whoever sends a long body before reading. One that owes us nothing is let go.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let idle = matches!(self.expects, Expects::FirstByte | Expects::NextRequest);
        let over = self.lingering.as_mut().is_none_or(|timer| timer.as_mut().poll(cx).is_ready());
        if idle || over {
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

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Guard<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.replacement.is_none() {
            self.replacement = bare_answer(bytes).map(|bytes| Replacement { bytes, written: 0 });
        }
        if self.replacement.is_some() {
            return self.write_replacement(cx, bytes.len());
        }
        let wrote = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.watched(cx, wrote)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let [only] = slices {
            return self.poll_write(cx, only);
        }
        let wrote = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.watched(cx, wrote)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.lingering.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
            self.lingering = Some(Box::pin(sleep_until(Instant::now() + LINGER_WAIT)));
            // With nothing there to read, a client whose request was answered is idle: hyper just has not asked since.
            self.settle();
            let mut byte = [0u8; 1];
            let is_quiet =
                Pin::new(&mut self.stream).poll_read(cx, &mut ReadBuf::new(&mut byte)).is_pending();
            if is_quiet && self.expects == Expects::Nothing {
                return Poll::Ready(Ok(()));
            }
        }
        self.poll_linger(cx)
    }
}

/// What to send in place of `bytes`, if they are an answer that hyper made by itself.
///
/// Ours all carry `x-request-id`; no chunk of a body begins like this, since JSON has no bare line ends.
fn bare_answer(bytes: &[u8]) -> Option<Vec<u8>> {
    if bytes.len() > BARE_ANSWER_BYTES_MAX
        || !bytes.starts_with(b"HTTP/1.1 4")
        || !bytes.ends_with(b"\r\n\r\n")
    {
        return None;
    }
    let text = std::str::from_utf8(bytes).ok()?;
    let bare = text.contains("content-length: 0\r\n") && !text.contains("x-request-id");
    let status = text.strip_prefix("HTTP/1.1 ")?.split("\r\n").next()?;
    let detail = match status.get(..3)? {
        "414" => "The path and query are too long",
        "431" => "The request's header fields are too large",
        _ => "The request is not valid HTTP",
    };
    bare.then(|| answer(status, detail))
}

/// A whole HTTP/1.1 answer that ends its connection.
pub(super) fn answer(status: &str, detail: &str) -> Vec<u8> {
    let body = serde_json::json!({ "detail": detail }).to_string();
    let retry = if status.starts_with("503") { "retry-after: 4\r\n" } else { "" };
    let id = request_id::next();
    tracing::info!(target: "request", id, status, "answered at the edge");
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncache-control: no-store\r\ncontent-length: {}\r\nx-request-id: {id}\r\n{retry}connection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}
