//! Every error the service answers with, and the one mapping to statuses and bodies.

use axum::body::Body;
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{Response, StatusCode};
use axum::response::IntoResponse;
use batchscan_model::{Invalid, Reason};
use serde_json::{Value, json};

use crate::auth::TokenRefused;
use batchscan_store::StoreError;

/// An answer that is not what was asked for.
#[derive(Debug)]
pub(crate) enum ApiError {
    /// A query that cannot be read.
    InvalidQuery(Invalid),
    /// An auth request that cannot be read.
    InvalidForm(Invalid),
    /// A client id or secret that is wrong, and whether they came by HTTP Basic.
    WrongCredentials { by_basic: bool },
    /// No bearer token.
    NoToken,
    /// A bearer token that does not open anything.
    BadToken(TokenRefused),
    /// No such path.
    NotFound,
    /// A path that knows only these methods.
    MethodNotAllowed(&'static str),
    /// A body that breaks the rules of HTTP.
    BrokenBody,
    /// A body past the limit.
    BodyTooLarge,
    /// A body that did not come in time.
    BodyTooSlow,
    /// A path or query past the limit.
    UriTooLong,
    /// Header fields past the limit.
    HeadersTooLarge,
    /// More requests than the operator allows; how long to wait, in seconds.
    TooManyRequests(u64),
    /// Not at the moment: mostly because the store cannot be reached.
    Unavailable(Cause),
    /// What must not happen did.
    Broken(Cause),
}

/// Why an error happened, for the log line of its request. Never sent.
#[derive(Clone, Debug)]
pub(crate) struct Cause {
    /// For the log.
    pub(crate) why: String,
    /// Under what it is counted, if it was the store.
    pub(crate) store: Option<&'static str>,
}

impl Cause {
    /// A cause of our own.
    pub(crate) fn ours(why: &(impl ToString + ?Sized)) -> Self {
        Self { why: why.to_string(), store: None }
    }

    /// Why a body broke off.
    pub(crate) fn of_stream(error: &axum::Error) -> Self {
        let mut source = std::error::Error::source(error);
        while let Some(inner) = source {
            if let Some(store) = inner.downcast_ref::<StoreError>() {
                return Self::of_store(store);
            }
            source = inner.source();
        }
        Self::ours(error)
    }

    fn of_store(error: &StoreError) -> Self {
        let kind = match error {
            StoreError::Unreachable(_) => "unreachable",
            StoreError::Broken(_) => "broken",
        };
        Self { why: error.to_string(), store: Some(kind) }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let cause = Cause::of_store(&error);
        match error {
            StoreError::Unreachable(_) => ApiError::Unavailable(cause),
            StoreError::Broken(_) => ApiError::Broken(cause),
        }
    }
}

impl ApiError {
    pub(super) fn status(&self) -> StatusCode {
        match self {
            ApiError::InvalidQuery(_) | ApiError::InvalidForm(_) => StatusCode::UNPROCESSABLE_ENTITY,
            ApiError::WrongCredentials { .. } | ApiError::NoToken | ApiError::BadToken(_) => {
                StatusCode::UNAUTHORIZED
            }
            ApiError::NotFound => StatusCode::NOT_FOUND,
            ApiError::MethodNotAllowed(_) => StatusCode::METHOD_NOT_ALLOWED,
            ApiError::BrokenBody => StatusCode::BAD_REQUEST,
            ApiError::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            ApiError::BodyTooSlow => StatusCode::REQUEST_TIMEOUT,
            ApiError::UriTooLong => StatusCode::URI_TOO_LONG,
            ApiError::HeadersTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            ApiError::TooManyRequests(_) => StatusCode::TOO_MANY_REQUESTS,
            ApiError::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
            ApiError::Broken(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    pub(super) fn body(&self) -> Value {
        let detail = match self {
            ApiError::InvalidQuery(invalid) => return json!({ "detail": invalid }),
            ApiError::InvalidForm(invalid) => return invalid_form(invalid),
            ApiError::WrongCredentials { .. } => return wrong_credentials(),
            ApiError::NoToken => "Not authenticated: send the header Authorization: Bearer ACCESS_TOKEN",
            ApiError::BadToken(TokenRefused::Expired) => "The access token has expired: get a new one",
            ApiError::BadToken(TokenRefused::Invalid) => "The access token is not valid: get a new one",
            ApiError::NotFound => "Not Found",
            ApiError::MethodNotAllowed(_) => "Method Not Allowed",
            ApiError::BrokenBody => "The request body is not valid HTTP",
            ApiError::BodyTooLarge => "The request body is too large",
            ApiError::BodyTooSlow => "The request body did not arrive in time",
            ApiError::UriTooLong => "The path and query are too long",
            ApiError::HeadersTooLarge => "The request's header fields are too large",
            ApiError::TooManyRequests(_) => "Too many requests: wait as Retry-After says",
            ApiError::Unavailable(_) => {
                "The service cannot reach its data at the moment: try again in a few seconds"
            }
            // One fixed text (decision 029): the cause is in the log, under the request's id.
            ApiError::Broken(_) => "Internal Server Error",
        };
        json!({ "detail": detail })
    }

    fn extra_header(&self) -> Option<(HeaderName, HeaderValue)> {
        let text = HeaderValue::from_static;
        Some(match self {
            ApiError::WrongCredentials { by_basic: true } => {
                (header::WWW_AUTHENTICATE, text("Basic realm=\"batchscan\", charset=\"UTF-8\""))
            }
            ApiError::NoToken => (header::WWW_AUTHENTICATE, text("Bearer")),
            ApiError::BadToken(_) => (header::WWW_AUTHENTICATE, text("Bearer error=\"invalid_token\"")),
            ApiError::MethodNotAllowed(allowed) => (header::ALLOW, text(allowed)),
            ApiError::TooManyRequests(secs) => (header::RETRY_AFTER, HeaderValue::from(*secs)),
            ApiError::Unavailable(_) => (header::RETRY_AFTER, HeaderValue::from(retry_after_secs())),
            ApiError::BodyTooSlow => (header::CONNECTION, text("close")),
            _ => return None,
        })
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response<Body> {
        let mut response = Response::new(Body::from(self.body().to_string()));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.extend(self.extra_header());
        if let ApiError::InvalidForm(_) | ApiError::WrongCredentials { .. } = self {
            response.headers_mut().insert(header::PRAGMA, HeaderValue::from_static("no-cache"));
        }
        if let ApiError::Unavailable(cause) | ApiError::Broken(cause) = self {
            response.extensions_mut().insert(cause);
        }
        response
    }
}

/// From 3 to 5 (decision 028), taking turns: clients that were refused together do not come back together.
fn retry_after_secs() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static TURN: AtomicU64 = AtomicU64::new(0);
    3 + TURN.fetch_add(1, Ordering::Relaxed) % 3
}

/// `detail` as the interface says, and beside it the words of RFC 6749 (decision 005).
fn invalid_form(invalid: &Invalid) -> Value {
    let only_grant_type = invalid.errors().iter().all(|fault| fault.reason == Reason::NotClientCredentials);
    let error = if only_grant_type { "unsupported_grant_type" } else { "invalid_request" };
    let told: Vec<String> =
        invalid.errors().iter().map(|fault| format!("{}: {}", fault.field, fault.reason.message())).collect();
    json!({ "detail": invalid, "error": error, "error_description": told.join("; ") })
}

fn wrong_credentials() -> Value {
    let detail = "The client_id or client_secret is wrong";
    json!({ "detail": detail, "error": "invalid_client", "error_description": detail })
}
