//! Every error response, and the one mapping to statuses and bodies.

use axum::http::StatusCode;
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use batchscan_formats::read::{LocatedError, Location};
use batchscan_model::{Invalid, Reason};
use batchscan_store::{AdminError, ArrayError, Rejected, StoreError};
use serde_json::{Value, json};

use super::response;
use crate::auth::TokenError;

pub(crate) const MALFORMED_BODY: &str = "The request body is not valid HTTP";
pub(super) const ONE_HOST: &str = "Send exactly one Host header";
pub(super) const ONE_AUTHORIZATION: &str = "Send only one Authorization header";

/// Makes programs ask for a user name and a password.
pub(super) const BASIC_CHALLENGE: HeaderValue =
    HeaderValue::from_static("Basic realm=\"batchscan\", charset=\"UTF-8\"");

/// Tells the browser to forget the cookie.
pub(super) const REMOVE_COOKIE: HeaderValue =
    HeaderValue::from_static("batchscan_session=; Path=/session; Max-Age=0; HttpOnly; SameSite=Strict");

const SEND_TOKEN_OR_SECRET: &str = "Not authenticated: send your client id and secret as user name and password (HTTP Basic), or the header Authorization: Bearer ACCESS_TOKEN";
const NEW_OPERATOR_TOKEN: &str =
    "The operator token is wrong, revoked or expired: `batchscan operator token issue` issues a new one";
const NO_SPACE: &str = "The service has no disk space for this file: send smaller files, try again later, or make room in its TMPDIR";
const GONE: &str =
    "The changes since this position are not known any more: read everything again, without since";
const INVALID_VALUE: &str = "The request contains a value that cannot be stored, such as a NUL character";
const EXPECTED_FORM: &str = "send a form (application/x-www-form-urlencoded)";

/// An error response.
#[derive(Debug)]
pub enum ApiError {
    /// Invalid query parameters.
    InvalidQuery(Invalid),
    /// An invalid token request.
    InvalidForm {
        /// Its errors.
        invalid: Invalid,
        /// Whether the body was a form at all.
        is_form: bool,
    },
    /// Rejected credentials, and whether they were sent with HTTP Basic. Why is only for the log (decision 006).
    InvalidClient { by_basic: bool, rejected: Rejected },
    /// No bearer token.
    MissingToken,
    /// An export without `Authorization`.
    MissingTokenOrSecret,
    /// An invalid or expired bearer token.
    InvalidToken(TokenError),
    /// A token that is not valid for the operator API.
    InvalidOperatorToken,
    /// A session of the dashboard that has ended.
    SignedOut,
    /// A sign-in link that was used or has expired.
    UsedLink,
    /// A request for the dashboard's session from a page of another origin.
    OtherOrigin,
    /// Unknown path.
    NotFound,
    /// The organisation has no batch with this id.
    NoSuchBatch,
    /// Errors in a file to import.
    InvalidImport(Vec<LocatedError>),
    /// A JSON body that is not what was expected; what is wrong.
    InvalidJson(String),
    /// The same for a request of the dashboard, as a 400.
    BadJson(String),
    /// A query parameter that the request does not have; what it has.
    UnknownParameter(String),
    /// A request to the operator API that is not allowed or not possible now; why.
    Refused(StatusCode, &'static str),
    /// A position in the changes that cannot be continued.
    Gone,
    /// The path allows only these methods.
    MethodNotAllowed(&'static str),
    /// Not valid HTTP; what is wrong.
    BadRequest(&'static str),
    /// A body in an encoding other than `chunked`.
    UnsupportedTransferEncoding,
    /// A body above the limit.
    BodyTooLarge,
    /// A file to import above the limit, in bytes.
    ImportTooLarge(u64),
    /// A body that did not arrive in time.
    BodyTimeout,
    /// A path and query above the limit.
    UriTooLong,
    /// Header fields above the limit.
    HeadersTooLarge,
    /// Above the rate limit; the seconds to wait.
    TooManyRequests(u64),
    /// A value that the database does not accept.
    InvalidValue(Cause),
    /// A temporary failure, usually because the store is unreachable.
    Unavailable(Cause),
    /// No disk space for the temporary file of an import.
    NoSpace(Cause),
    /// A permanent failure.
    Internal(Cause),
}

/// The cause of an error, for the access log. Never sent.
#[derive(Clone, Debug)]
pub struct Cause {
    pub(super) text: String,
    /// The kind of store error, for the metrics.
    pub(super) store_error: Option<&'static str>,
}

impl Cause {
    /// A cause other than the store.
    pub(crate) fn new(text: &(impl ToString + ?Sized)) -> Self {
        Self { text: text.to_string(), store_error: None }
    }

    /// Why a streamed body was aborted.
    pub(super) fn of_stream(error: &axum::Error) -> Self {
        let mut source = std::error::Error::source(error);
        while let Some(inner) = source {
            if let Some(ArrayError::Store(store)) = inner.downcast_ref() {
                return Self::of_store(store);
            }
            source = inner.source();
        }
        Self::new(error)
    }

    fn of_store(error: &StoreError) -> Self {
        let store_error = match error {
            StoreError::Unreachable(_) => Some("unreachable"),
            StoreError::Unreadable(_) | StoreError::Broken(_) => Some("broken"),
            // The request is wrong, not the store: no alert.
            StoreError::Rejected(_) => None,
        };
        Self { text: error.to_string(), store_error }
    }
}

impl From<Invalid> for ApiError {
    fn from(invalid: Invalid) -> Self {
        ApiError::InvalidQuery(invalid)
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let cause = Cause::of_store(&error);
        match error {
            StoreError::Unreachable(_) | StoreError::Unreadable(_) => ApiError::Unavailable(cause),
            StoreError::Rejected(_) => ApiError::InvalidValue(cause),
            StoreError::Broken(_) => ApiError::Internal(cause),
        }
    }
}

impl From<AdminError> for ApiError {
    fn from(error: AdminError) -> Self {
        match error {
            AdminError::Store(error) => error.into(),
            AdminError::OrgNotFound { .. } => {
                ApiError::Refused(StatusCode::NOT_FOUND, "There is no organisation with this name")
            }
            AdminError::OrgExists(_) => {
                ApiError::Refused(StatusCode::CONFLICT, "There is already an organisation with this name")
            }
            AdminError::BatchNotFound(_) => ApiError::NoSuchBatch,
            AdminError::TokenEnded => ApiError::InvalidOperatorToken,
            AdminError::CredentialNotFound(_) => ApiError::NO_SUCH_CREDENTIAL,
            AdminError::Revoked(_) => {
                ApiError::Refused(StatusCode::CONFLICT, "The credential is already revoked")
            }
            AdminError::KeyReused => ApiError::Refused(
                StatusCode::UNPROCESSABLE_ENTITY,
                "The Idempotency-Key was already used for another body",
            ),
            other => ApiError::unavailable(&other),
        }
    }
}

impl From<ArrayError> for ApiError {
    fn from(error: ArrayError) -> Self {
        match error {
            ArrayError::Store(error) => error.into(),
            ArrayError::Revoked => ApiError::InvalidToken(TokenError::Invalid),
        }
    }
}

impl ApiError {
    pub(crate) const NO_SUCH_CREDENTIAL: Self =
        Self::Refused(StatusCode::NOT_FOUND, "The organisation has no credential with this client_id");

    /// A temporary failure other than of the store.
    pub(crate) fn unavailable(cause: &(impl ToString + ?Sized)) -> Self {
        Self::Unavailable(Cause::new(cause))
    }

    /// A permanent failure other than of the store.
    pub(crate) fn internal(cause: &(impl ToString + ?Sized)) -> Self {
        Self::Internal(Cause::new(cause))
    }

    fn status_and_detail(&self) -> (StatusCode, &'static str) {
        match self {
            ApiError::InvalidQuery(_)
            | ApiError::InvalidForm { .. }
            | ApiError::InvalidImport(_)
            | ApiError::InvalidJson(_)
            | ApiError::UnknownParameter(_) => (StatusCode::UNPROCESSABLE_ENTITY, "The request is invalid"),
            ApiError::Refused(status, detail) => (*status, detail),
            ApiError::InvalidClient { .. } => {
                (StatusCode::UNAUTHORIZED, "The client_id or client_secret is wrong")
            }
            ApiError::MissingToken => (
                StatusCode::UNAUTHORIZED,
                "Not authenticated: send the header Authorization: Bearer ACCESS_TOKEN",
            ),
            ApiError::MissingTokenOrSecret => (StatusCode::UNAUTHORIZED, SEND_TOKEN_OR_SECRET),
            ApiError::InvalidToken(TokenError::Expired(_)) => {
                (StatusCode::UNAUTHORIZED, "The access token has expired: get a new one")
            }
            ApiError::InvalidToken(TokenError::Invalid | TokenError::UnknownKey) => {
                (StatusCode::UNAUTHORIZED, "The access token is not valid: get a new one")
            }
            ApiError::InvalidOperatorToken => (StatusCode::UNAUTHORIZED, NEW_OPERATOR_TOKEN),
            ApiError::SignedOut => (StatusCode::UNAUTHORIZED, "The session has ended: sign in again"),
            ApiError::UsedLink => (
                StatusCode::UNAUTHORIZED,
                "This sign-in link was already used or has expired: ask for a new one",
            ),
            ApiError::OtherOrigin => (
                StatusCode::FORBIDDEN,
                "This request did not come from the dashboard's own address. Operators: set --public-url to the \
                address in the browser, or let the proxy pass Host",
            ),
            ApiError::NotFound => (StatusCode::NOT_FOUND, "Not Found"),
            ApiError::NoSuchBatch => (StatusCode::NOT_FOUND, "There is no batch with this id"),
            ApiError::Gone => (StatusCode::GONE, GONE),
            ApiError::MethodNotAllowed(_) => (StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed"),
            ApiError::BadRequest(detail) => (StatusCode::BAD_REQUEST, detail),
            ApiError::BadJson(_) => (StatusCode::BAD_REQUEST, "The request is invalid"),
            ApiError::UnsupportedTransferEncoding => {
                (StatusCode::NOT_IMPLEMENTED, "The only supported transfer encoding is chunked")
            }
            ApiError::BodyTooLarge | ApiError::ImportTooLarge(_) => {
                (StatusCode::PAYLOAD_TOO_LARGE, "The request body is too large")
            }
            ApiError::BodyTimeout => (StatusCode::REQUEST_TIMEOUT, "The request body did not arrive in time"),
            ApiError::UriTooLong => (StatusCode::URI_TOO_LONG, "The path and query are too long"),
            ApiError::HeadersTooLarge => {
                (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "The request's header fields are too large")
            }
            ApiError::TooManyRequests(_) => {
                (StatusCode::TOO_MANY_REQUESTS, "Too many requests: wait for the time in Retry-After")
            }
            ApiError::Unavailable(_) => (
                StatusCode::SERVICE_UNAVAILABLE,
                "The service is temporarily unavailable: try again in a few seconds",
            ),
            ApiError::InvalidValue(_) => (StatusCode::BAD_REQUEST, INVALID_VALUE),
            ApiError::NoSpace(_) => (StatusCode::INSUFFICIENT_STORAGE, NO_SPACE),
            // A fixed text (decision 029): the cause is in the log.
            ApiError::Internal(_) => (StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error"),
        }
    }

    fn body(&self, detail: &str) -> Value {
        match self {
            ApiError::InvalidQuery(invalid) => json!({ "detail": invalid }),
            ApiError::InvalidImport(errors) => invalid_import(errors),
            ApiError::InvalidJson(error) | ApiError::BadJson(error) => {
                json!({ "detail": format!("The body is not the expected JSON object: {error}") })
            }
            ApiError::UnknownParameter(detail) => json!({ "detail": detail }),
            ApiError::ImportTooLarge(max) => json!({
                "detail": format!("The file has more than {max} bytes: send smaller files, or raise --max-delivery")
            }),
            ApiError::InvalidForm { invalid, is_form } => invalid_form(invalid, *is_form),
            ApiError::InvalidClient { .. } => {
                json!({ "detail": detail, "error": "invalid_client", "error_description": detail })
            }
            _ => json!({ "detail": detail }),
        }
    }

    fn extra_header(&self) -> Option<(HeaderName, HeaderValue)> {
        let text = HeaderValue::from_static;
        Some(match self {
            ApiError::InvalidClient { by_basic: true, .. } => (header::WWW_AUTHENTICATE, BASIC_CHALLENGE),
            ApiError::MissingToken => (header::WWW_AUTHENTICATE, text("Bearer")),
            ApiError::InvalidToken(_) | ApiError::InvalidOperatorToken => {
                (header::WWW_AUTHENTICATE, text("Bearer error=\"invalid_token\""))
            }
            ApiError::SignedOut => (header::SET_COOKIE, REMOVE_COOKIE),
            ApiError::MethodNotAllowed(allowed) => (header::ALLOW, text(allowed)),
            ApiError::TooManyRequests(secs) => (header::RETRY_AFTER, HeaderValue::from(*secs)),
            ApiError::Unavailable(_) => (header::RETRY_AFTER, HeaderValue::from(retry_after_secs())),
            ApiError::BodyTimeout | ApiError::ImportTooLarge(_) | ApiError::UnsupportedTransferEncoding => {
                (header::CONNECTION, text("close"))
            }
            _ => return None,
        })
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (status, detail) = self.status_and_detail();
        let mut response = response::json(status, self.body(detail).to_string());
        response.headers_mut().extend(self.extra_header());
        if let ApiError::InvalidForm { .. } | ApiError::InvalidClient { .. } = self {
            response.headers_mut().insert(header::PRAGMA, HeaderValue::from_static("no-cache"));
        }
        if let ApiError::InvalidClient { rejected, .. } = self {
            response.extensions_mut().insert(Cause::new(rejected.reason()));
        }
        if let ApiError::InvalidValue(cause)
        | ApiError::Unavailable(cause)
        | ApiError::NoSpace(cause)
        | ApiError::Internal(cause) = self
        {
            response.extensions_mut().insert(cause);
        }
        response
    }
}

/// 3, 4 or 5 in turn (decision 028), so that clients that failed together do not all retry together.
fn retry_after_secs() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static TURN: AtomicU64 = AtomicU64::new(0);
    3 + TURN.fetch_add(1, Ordering::Relaxed) % 3
}

fn invalid_import(errors: &[LocatedError]) -> Value {
    let detail = errors.iter().map(|LocatedError { location, error }| {
        let line = match location {
            Location::Line(line) | Location::Row(line) | Location::SheetRow(_, line) => Some(line),
            Location::Columns | Location::File => None,
        };
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let (field, expected) = (text(&error.field), text(&error.expected));
        json!({ "line": line, "field": field, "found": error.found, "expected": expected })
    });
    json!({ "detail": detail.collect::<Value>() })
}

/// `detail` as in the contract, and the error code of RFC 6749 (decision 005).
fn invalid_form(invalid: &Invalid, is_form: bool) -> Value {
    let only_grant_type = invalid.errors().iter().all(|error| error.reason == Reason::NotClientCredentials);
    let error = if only_grant_type { "unsupported_grant_type" } else { "invalid_request" };
    let mut descriptions: Vec<String> =
        invalid.errors().iter().map(|error| format!("{}: {}", error.field, error.reason.message())).collect();
    // In `detail`, a body that is not a form is only missing fields (decision 015).
    descriptions.extend((!is_form).then(|| EXPECTED_FORM.to_owned()));
    json!({ "detail": invalid, "error": error, "error_description": descriptions.join("; ") })
}

#[cfg(test)]
mod tests {
    use batchscan_model::ClientId;

    use super::*;

    /// Decision 046: the examples in the document are what the service sends.
    #[test]
    fn the_documented_examples_are_the_texts_of_the_service() {
        let document: Value = serde_json::from_str(include_str!("../../openapi.json")).unwrap_or_default();
        let cause = || Cause::new("");
        let client = ClientId::new("bs_a").unwrap();
        for (component, example, error) in [
            ("BadRequest", "body", ApiError::BadRequest(MALFORMED_BODY)),
            ("BadRequest", "host", ApiError::BadRequest(ONE_HOST)),
            ("BadRequest", "authorization", ApiError::BadRequest(ONE_AUTHORIZATION)),
            ("NotImplemented", "encoding", ApiError::UnsupportedTransferEncoding),
            (
                "InvalidClient",
                "wrong",
                ApiError::InvalidClient { by_basic: false, rejected: Rejected::Wrong },
            ),
            ("Unauthorized", "none", ApiError::MissingToken),
            ("Unauthorized", "expired", ApiError::InvalidToken(TokenError::Expired(client))),
            ("Unauthorized", "invalid", ApiError::InvalidToken(TokenError::Invalid)),
            ("NotFound", "unknown", ApiError::NoSuchBatch),
            ("ExportUnauthorized", "none", ApiError::MissingTokenOrSecret),
            (
                "ExportUnauthorized",
                "wrong",
                ApiError::InvalidClient { by_basic: true, rejected: Rejected::Wrong },
            ),
            ("ExportUnauthorized", "invalid", ApiError::InvalidToken(TokenError::Invalid)),
            ("MethodNotAllowed", "method", ApiError::MethodNotAllowed("")),
            ("RequestTimeout", "slow", ApiError::BodyTimeout),
            ("Gone", "gone", ApiError::Gone),
            ("ContentTooLarge", "large", ApiError::BodyTooLarge),
            ("UriTooLong", "long", ApiError::UriTooLong),
            ("TooManyRequests", "many", ApiError::TooManyRequests(1)),
            ("HeadersTooLarge", "large", ApiError::HeadersTooLarge),
            ("InternalServerError", "broken", ApiError::Internal(cause())),
            ("ServiceUnavailable", "unavailable", ApiError::Unavailable(cause())),
        ] {
            let responses = &document["components"]["responses"];
            let value = &responses[component]["content"]["application/json"]["examples"][example]["value"];
            assert_eq!(*value, error.body(error.status_and_detail().1), "{component} {example}");
        }
    }
}
