//! The access log and the metrics of requests: one record when the last byte of a response was read, or was not.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use axum::response::Response;
use http_body::{Body as _, Frame, SizeHint};

use super::app::App;
use super::budget::Reservation;
use super::caller::CallerSlot;
use super::error::Cause;
use crate::in_flight::ResponseInFlight;
use crate::metrics::{ErrorLabel, RequestLabels, RouteLabel};
use crate::request_id;

/// What the log needs from the request.
pub(super) struct AccessLog {
    id: String,
    method: &'static str,
    route: Arc<str>,
    caller: CallerSlot,
    started: Instant,
    in_flight: Option<Arc<ResponseInFlight>>,
}

impl AccessLog {
    /// Reads the request, and adds the [`CallerSlot`] to it.
    pub(super) fn start(request: &mut Request) -> Self {
        let caller = CallerSlot::default();
        let route = request.extensions().get::<MatchedPath>().map_or("other", MatchedPath::as_str);
        let log = Self {
            id: request_id::from_headers(request.headers()),
            method: method_label(request.method()),
            route: Arc::from(route),
            caller: caller.clone(),
            started: Instant::now(),
            in_flight: request.extensions_mut().remove::<Arc<ResponseInFlight>>(),
        };
        request.extensions_mut().insert(caller);
        log
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Wraps the body, so that the request is logged when the body is dropped.
    pub(super) fn wrap(self, app: App, mut response: Response) -> Response {
        let record = Record {
            app,
            status: response.status().as_u16(),
            cause: response.extensions_mut().remove::<Cause>(),
            _reservation: response.extensions_mut().remove::<Reservation>(),
            bytes: 0,
            is_complete: self.method == "HEAD" || response.body().is_end_stream(),
            request: self,
        };
        response.map(|inner| Body::new(LoggedBody { inner, record }))
    }
}

/// Unknown methods are not logged: they could contain anything, even a secret.
fn method_label(method: &Method) -> &'static str {
    const KNOWN: [&str; 7] = ["GET", "HEAD", "POST", "OPTIONS", "PUT", "PATCH", "DELETE"];
    KNOWN.into_iter().find(|known| *known == method.as_str()).unwrap_or("other")
}

struct Record {
    app: App,
    request: AccessLog,
    status: u16,
    cause: Option<Cause>,
    _reservation: Option<Reservation>,
    bytes: u64,
    is_complete: bool,
}

impl Drop for Record {
    fn drop(&mut self) {
        let (metrics, route) = (&self.app.metrics, &self.request.route);
        let elapsed = self.request.started.elapsed();
        let labels = RequestLabels { route: route.clone(), status: self.status };
        metrics.requests.get_or_create(&labels).inc();
        let label = RouteLabel { route: route.clone() };
        metrics.latency.get_or_create(&label).observe(elapsed.as_secs_f64());
        metrics.sent_bytes.get_or_create(&label).inc_by(self.bytes);
        if let Some(kind) = self.cause.as_ref().and_then(|cause| cause.store_error) {
            metrics.store_errors.get_or_create(&ErrorLabel { kind }).inc();
        }
        self.log(elapsed);
    }
}

impl Record {
    fn log(&self, elapsed: Duration) {
        let caller = self.request.caller.get();
        macro_rules! line {
            ($level:ident) => {
                tracing::$level!(
                    target: "request",
                    id = self.request.id,
                    method = self.request.method,
                    route = &*self.request.route,
                    status = self.status,
                    ms = (elapsed.as_secs_f64() * 1e6).round() / 1e3,
                    bytes = self.bytes,
                    org = caller.map(|caller| caller.org.0),
                    client = caller.map(|caller| caller.client.as_str()),
                    cut = (!self.is_complete).then_some(true),
                    cause = self.cause.as_ref().map(|cause| cause.text.as_str()),
                )
            };
        }
        match &*self.request.route {
            _ if self.cause.is_some() => line!(error),
            // Load balancers and Prometheus request these all the time.
            "/healthz" | "/readyz" | "/metrics" => line!(debug),
            _ => line!(info),
        }
    }
}

/// A body that updates its record.
struct LoggedBody {
    inner: Body,
    record: Record,
}

impl http_body::Body for LoggedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = std::task::ready!(Pin::new(&mut self.inner).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                if let Some(in_flight) = &self.record.request.in_flight {
                    in_flight.note_progress();
                }
                self.record.bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
                self.record.is_complete = self.inner.is_end_stream();
            }
            Some(Err(error)) => self.record.cause = Some(Cause::of_stream(error)),
            None => self.record.is_complete = true,
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
