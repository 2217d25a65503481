//! The access log and the metrics of requests: one record when the last byte of a response was sent, or was not.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::{MatchedPath, Request};
use axum::http::{Method, StatusCode, Version};
use axum::response::Response;
use batchscan_model::ClientId;
use http_body::{Body as _, Frame, SizeHint};

use super::app::App;
use super::caller_cell::CallerCell;
use super::client_address::client_address;
use super::error::Cause;
use crate::config::Network;
use crate::in_flight::ResponseInFlight;
use crate::metrics::{ErrorLabel, RequestLabels, RouteLabel};
use crate::request_id;

/// The status in the log of a request whose client disconnected before there was a response, as in nginx.
const CLIENT_CLOSED_REQUEST: u16 = 499;
/// Pieces of an HTTP/2 body. Smaller ones would cost more.
const H2_PIECE_BYTES: usize = 64 * 1024;

/// How long a request waited for changes. Not counted as the time of its response.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waited(pub(super) Duration);

/// What the log needs from the request.
pub(super) struct AccessLog {
    id: String,
    method: &'static str,
    version: Version,
    route: Arc<str>,
    caller: CallerCell,
    started: Instant,
    in_flight: Option<Arc<ResponseInFlight>>,
}

impl AccessLog {
    /// Reads the request, and adds the [`CallerCell`] to it.
    pub(super) fn start(request: &mut Request, trusted_proxies: &[Network]) -> Self {
        let caller = CallerCell::new(client_address(request, trusted_proxies));
        let route = request.extensions().get::<MatchedPath>().map_or("other", MatchedPath::as_str);
        let log = Self {
            id: request_id::from_headers(request.headers()),
            method: method_label(request.method()),
            version: request.version(),
            route: Arc::from(route),
            caller: caller.clone(),
            started: Instant::now(),
            in_flight: request.extensions().get::<Arc<ResponseInFlight>>().cloned(),
        };
        request.extensions_mut().insert(caller);
        log
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Wraps the body, so that the request is logged when the last byte was sent or dropped.
    pub(super) fn wrap(self, app: App, mut response: Response) -> Response {
        if let Some(in_flight) = &self.in_flight {
            in_flight.note_progress();
            // HTTP/1.0 has no other way to show that a body of unknown length is incomplete (decision 026).
            let is_incomplete =
                self.version == Version::HTTP_10 && response.body().size_hint().exact().is_none();
            in_flight.set_must_reset(is_incomplete);
        }
        let has_no_body = self.method == "HEAD" || response.body().is_end_stream();
        let record = Arc::new(Record {
            app,
            status: response.status().as_u16(),
            waited: response.extensions_mut().remove::<Waited>().map_or(Duration::ZERO, |waited| waited.0),
            cause: response.extensions_mut().remove::<Cause>().map_or_else(OnceLock::new, OnceLock::from),
            taken: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            is_read: AtomicBool::new(has_no_body),
            request: self,
        });
        response.map(|inner| Body::new(LoggedBody { inner, rest: Bytes::new(), record }))
    }
}

/// A request whose response is not ready. If it is dropped, the client has disconnected: the request is logged as such.
pub(super) struct PendingRequest(Option<(App, AccessLog)>);

impl PendingRequest {
    pub(super) fn new(app: App, log: AccessLog) -> Self {
        Self(Some((app, log)))
    }

    /// Wraps the response, see [`AccessLog::wrap`].
    pub(super) fn respond(mut self, response: Response) -> Response {
        match self.0.take() {
            Some((app, log)) => log.wrap(app, response),
            None => response,
        }
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        if let Some((app, log)) = self.0.take() {
            let mut response = Response::default();
            *response.status_mut() = StatusCode::from_u16(CLIENT_CLOSED_REQUEST).unwrap_or_default();
            drop(log.wrap(app, response));
        }
    }
}

/// Unknown methods are not logged: they could contain anything, even a secret.
fn method_label(method: &Method) -> &'static str {
    const KNOWN: [&str; 7] = ["GET", "HEAD", "POST", "OPTIONS", "PUT", "PATCH", "DELETE"];
    KNOWN.into_iter().find(|known| *known == method.as_str()).unwrap_or("other")
}

/// The log record of a request. Written when the body and all of its bytes are dropped.
struct Record {
    app: App,
    request: AccessLog,
    status: u16,
    /// Time that the client asked to wait for.
    waited: Duration,
    cause: OnceLock<Cause>,
    /// Bytes that hyper took from the body.
    taken: AtomicU64,
    /// Bytes that hyper passed on to the kernel.
    sent: AtomicU64,
    /// Whether hyper took the whole body.
    is_read: AtomicBool,
}

impl Drop for Record {
    fn drop(&mut self) {
        let (metrics, route) = (&self.app.metrics, &self.request.route);
        let elapsed = self.request.started.elapsed();
        let (taken, mut bytes) = (*self.taken.get_mut(), *self.sent.get_mut());
        let is_complete = *self.is_read.get_mut() && bytes == taken;
        if let Some(in_flight) =
            self.request.in_flight.as_ref().filter(|_| self.request.version != Version::HTTP_2)
        {
            if is_complete {
                in_flight.set_must_reset(false);
            } else {
                // The part of the last piece that was sent before the connection broke. Includes the head of the
                // response.
                bytes = in_flight.written().clamp(bytes, taken);
            }
        }
        let labels = RequestLabels { route: route.clone(), status: self.status };
        metrics.requests.get_or_create(&labels).inc();
        let label = RouteLabel { route: route.clone() };
        if self.status != CLIENT_CLOSED_REQUEST {
            let secs = elapsed.saturating_sub(self.waited).as_secs_f64();
            metrics.latency.get_or_create(&label).observe(secs);
        }
        metrics.sent_bytes.get_or_create(&label).inc_by(bytes);
        if let Some(kind) = self.cause.get().and_then(|cause| cause.store_error) {
            metrics.store_errors.get_or_create(&ErrorLabel { kind }).inc();
        }
        self.log(elapsed, bytes, is_complete);
    }
}

impl Record {
    /// Whether an organisation's batches were read.
    fn is_read_of_batches(&self) -> bool {
        let route = &*self.request.route;
        (matches!(route, "/v1/batches" | "/v2/batches" | "/v2/changes") || route.starts_with("/v2/export."))
            && matches!(self.status, 200 | 304)
            && self.request.method == "GET"
    }

    fn log(&self, elapsed: Duration, bytes: u64, is_complete: bool) {
        let caller = self.request.caller.get();
        let read_at = self.is_read_of_batches().then(|| self.app.clock.now());
        let org_name = caller.and_then(|caller| self.app.organisations.name(caller.org, read_at));
        macro_rules! line {
            ($level:ident) => {
                tracing::$level!(
                    target: "request",
                    id = self.request.id,
                    method = self.request.method,
                    route = &*self.request.route,
                    status = self.status,
                    ms = (elapsed.as_secs_f64() * 1e6).round() / 1e3,
                    bytes,
                    org = caller.map(|caller| caller.org.0),
                    org_name = org_name.as_deref(),
                    client = self.request.caller.client().map(ClientId::as_str),
                    address = self.request.caller.address().map(tracing::field::display),
                    cut = (!is_complete).then_some(true),
                    cause = self.cause.get().map(|cause| cause.text.as_str()),
                )
            };
        }
        match &*self.request.route {
            _ if self.cause.get().is_some() => line!(error),
            // Load balancers and Prometheus request these all the time.
            "/healthz" | "/readyz" | "/metrics" => line!(debug),
            _ => line!(info),
        }
    }
}

/// A body that updates its record.
struct LoggedBody {
    inner: Body,
    /// What is left of a frame that is sent in pieces.
    rest: Bytes,
    record: Arc<Record>,
}

impl LoggedBody {
    /// The next piece. An HTTP/2 client can stop reading at any time without closing the connection, so that only whole
    /// pieces are known to be sent.
    fn next_piece(&mut self, mut data: Bytes) -> Bytes {
        if self.record.request.version == Version::HTTP_2 && data.len() > H2_PIECE_BYTES {
            self.rest = data.split_off(H2_PIECE_BYTES);
        }
        self.record.taken.fetch_add(data.len() as u64, Ordering::Relaxed);
        self.record.is_read.store(self.is_end_stream(), Ordering::Relaxed);
        if let Some(in_flight) = &self.record.request.in_flight {
            in_flight.note_progress();
        }
        Bytes::from_owner(Piece { data, record: self.record.clone() })
    }
}

impl http_body::Body for LoggedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if !self.rest.is_empty() {
            let rest = std::mem::take(&mut self.rest);
            return Poll::Ready(Some(Ok(Frame::data(self.next_piece(rest)))));
        }
        let frame = std::task::ready!(Pin::new(&mut self.inner).poll_frame(cx));
        Poll::Ready(match frame {
            Some(Ok(frame)) => Some(Ok(frame.map_data(|data| self.next_piece(data)))),
            Some(Err(error)) => {
                let _ = self.record.cause.set(Cause::of_stream(&error));
                Some(Err(error))
            }
            None => {
                self.record.is_read.store(true, Ordering::Relaxed);
                None
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (mut hint, rest) = (self.inner.size_hint(), self.rest.len() as u64);
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + rest);
        }
        hint.set_lower(hint.lower() + rest);
        hint
    }
}

/// Bytes that hyper took from a body, and drops when the kernel has taken them or the connection is closed.
struct Piece {
    data: Bytes,
    record: Arc<Record>,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        if self.record.request.in_flight.as_ref().is_none_or(|in_flight| !in_flight.is_closed()) {
            self.record.sent.fetch_add(self.data.len() as u64, Ordering::Relaxed);
        }
    }
}
