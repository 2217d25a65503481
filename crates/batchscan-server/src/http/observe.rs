//! What happens to every request, whatever its route: limits, CORS, its id, its log line, its counts.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Response};
use axum::response::IntoResponse;
use futures_util::FutureExt;
use http_body::{Body as _, Frame, SizeHint};
use tower::Service as _;

use super::budget::Share;
use super::error::{ApiError, Cause};
use super::{App, OneInFlight, cors, operator_routes, request_id, routes};
use crate::metrics::{ErrorLabel, RequestLabels, RouteLabel};
use batchscan_store::Caller;

/// A query of ours is under 700 bytes with the longest cursor.
const URI_BYTES_MAX: usize = 8 * 1024;
/// Names and values of all header fields. Browsers and proxies stay far below.
const HEADER_BYTES_MAX: usize = 32 * 1024;

/// The service as a function from requests to answers.
#[derive(Clone, Debug)]
pub struct Service {
    app: Arc<App>,
    routes: Router,
}

impl Service {
    /// The interface.
    pub fn public(app: Arc<App>) -> Self {
        Self { routes: routes(app.clone()), app }
    }

    /// Health and metrics for the operator's network.
    pub fn operator(app: Arc<App>) -> Self {
        Self { routes: operator_routes(app.clone()), app }
    }

    /// Answers a request. It always does: what goes wrong is an answer too. `owed` is kept until it is sent.
    pub async fn answer(&self, request: Request, owed: OneInFlight) -> Response<Body> {
        let started = Instant::now();
        let seen = Seen {
            id: request_id::of(request.headers()),
            method: method_label(request.method()),
            route: route_label(request.uri().path()),
            started,
            owed,
        };
        let origin = cors::named_origin(&self.app.config.cors_origins, request.headers());
        let is_v1 = request.uri().path().starts_with("/v1/");
        let mut response = self.route(request, origin.is_some()).await;
        if let Some(origin) = origin {
            cors::allow(origin, response.headers_mut());
        }
        if is_v1 {
            self.tell_sunset(response.headers_mut());
        }
        if let Ok(id) = HeaderValue::from_str(&seen.id) {
            response.headers_mut().insert(request_id::REQUEST_ID, id);
        }
        observed(self.app.clone(), seen, response)
    }

    async fn route(&self, request: Request, is_named_origin: bool) -> Response<Body> {
        if let Err(error) = within_limits(&request) {
            return error.into_response();
        }
        if let Some(answer) = cors::preflight(request.method(), request.headers()).filter(|_| is_named_origin)
        {
            return answer;
        }
        // A defect in one request must not take the connection's other requests with it.
        match AssertUnwindSafe(self.routes.clone().call(request)).catch_unwind().await {
            Ok(Ok(response)) => response,
            Ok(Err(never)) => match never {},
            Err(_) => ApiError::Broken(Cause::ours("a handler panicked")).into_response(),
        }
    }

    /// The end of v1, where the operator set one (decision 038).
    fn tell_sunset(&self, headers: &mut HeaderMap) {
        let Some(end) = self.app.config.v1_sunset else { return };
        let since_epoch = Duration::from_secs(u64::try_from(end.secs()).unwrap_or(0));
        let sunset = httpdate::fmt_http_date(std::time::UNIX_EPOCH + since_epoch);
        let deprecation = HeaderValue::from_str(&format!("@{}", end.secs()));
        headers.extend(deprecation.ok().map(|value| (HeaderName::from_static("deprecation"), value)));
        headers.extend(
            HeaderValue::from_str(&sunset).ok().map(|value| (HeaderName::from_static("sunset"), value)),
        );
    }
}

fn within_limits(request: &Request) -> Result<(), ApiError> {
    let uri = request.uri();
    if uri.path().len() + uri.query().map_or(0, str::len) > URI_BYTES_MAX {
        return Err(ApiError::UriTooLong);
    }
    let bytes: usize = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if bytes > HEADER_BYTES_MAX { Err(ApiError::HeadersTooLarge) } else { Ok(()) }
}

/// A method that is none of the usual could be anything, a secret too.
fn method_label(method: &Method) -> &'static str {
    const KNOWN: [&str; 7] = ["GET", "HEAD", "POST", "OPTIONS", "PUT", "PATCH", "DELETE"];
    KNOWN.into_iter().find(|known| *known == method.as_str()).unwrap_or("other")
}

/// The names under which requests are counted: a fixed few, whatever paths strangers try.
fn route_label(path: &str) -> &'static str {
    const KNOWN: [&str; 9] = [
        "/v1/auth",
        "/v2/auth",
        "/v1/batches",
        "/v2/batches",
        "/healthz",
        "/readyz",
        "/metrics",
        "/openapi.json",
        "/docs",
    ];
    KNOWN.into_iter().find(|route| *route == path).unwrap_or_else(|| match path {
        "/" | "/batches" => "dashboard",
        _ if path.starts_with("/docs/") => "/docs",
        _ if ["/batches/", "/assets/"].iter().any(|folder| path.starts_with(folder)) => "dashboard",
        _ => "other",
    })
}

/// What is known of a request before it is answered.
struct Seen {
    id: String,
    method: &'static str,
    route: &'static str,
    started: Instant,
    owed: OneInFlight,
}

/// Wraps the body, so that the request is counted and logged when its last byte is handed over, or is not.
fn observed(app: Arc<App>, seen: Seen, mut response: Response<Body>) -> Response<Body> {
    let record = Record {
        app,
        seen,
        status: response.status().as_u16(),
        tenant: response.extensions_mut().remove::<Caller>(),
        cause: response.extensions_mut().remove::<Cause>(),
        _share: response.extensions_mut().remove::<Arc<Share>>(),
        bytes: 0,
        finished: false,
    };
    response.map(|inner| Body::new(ObservedBody { finished_at_start: inner.is_end_stream(), inner, record }))
}

struct Record {
    app: Arc<App>,
    seen: Seen,
    status: u16,
    tenant: Option<Caller>,
    cause: Option<Cause>,
    _share: Option<Arc<Share>>,
    bytes: u64,
    finished: bool,
}

impl Drop for Record {
    fn drop(&mut self) {
        let (metrics, route, status) = (&self.app.metrics, self.seen.route, self.status);
        let took = self.seen.started.elapsed();
        metrics.requests.get_or_create(&RequestLabels { route, status }).inc();
        metrics.latency.get_or_create(&RouteLabel { route }).observe(took.as_secs_f64());
        metrics.sent_bytes.get_or_create(&RouteLabel { route }).inc_by(self.bytes);
        if let Some(kind) = self.cause.as_ref().and_then(|cause| cause.store) {
            metrics.store_errors.get_or_create(&ErrorLabel { kind }).inc();
        }
        self.log(took);
    }
}

impl Record {
    /// The request's one line: an error if the service failed, else a matter of course.
    fn log(&self, took: Duration) {
        macro_rules! line {
            ($level:ident) => {
                tracing::$level!(
                    target: "request",
                    id = self.seen.id,
                    method = self.seen.method,
                    route = self.seen.route,
                    status = self.status,
                    ms = (took.as_secs_f64() * 1e6).round() / 1e3,
                    bytes = self.bytes,
                    org = self.tenant.as_ref().map(|tenant| tenant.org.0),
                    client = self.tenant.as_ref().map(|tenant| tenant.client.as_str()),
                    cut = (!self.finished).then_some(true),
                    cause = self.cause.as_ref().map(|cause| cause.why.as_str()),
                )
            };
        }
        match self.seen.route {
            _ if self.cause.is_some() => line!(error),
            // A balancer asks twice a second.
            "/healthz" | "/readyz" | "/metrics" => line!(debug),
            _ => line!(info),
        }
    }
}

/// A body that counts what it gives.
struct ObservedBody {
    inner: Body,
    record: Record,
    finished_at_start: bool,
}

impl http_body::Body for ObservedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = std::task::ready!(Pin::new(&mut self.inner).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                self.record.seen.owed.progress();
                self.record.bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
                self.record.finished = self.inner.is_end_stream();
            }
            Some(Err(error)) => self.record.cause = Some(Cause::of_stream(error)),
            None => self.record.finished = true,
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

impl Drop for ObservedBody {
    /// A body without bytes, or one that nobody reads because the request was HEAD, was never polled.
    fn drop(&mut self) {
        self.record.finished |= self.finished_at_start || self.record.seen.method == "HEAD";
    }
}
