//! Maps every error to a response.

use axum::extract::rejection::QueryRejection;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Json, Response};
use serde::Serialize;
use serde_json::json;

use crate::database::DatabaseError;

/// What can go wrong with a request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    #[error("wrong client_id or client_secret")]
    WrongCredentials,
    #[error("missing or invalid bearer token")]
    BadToken,
    #[error("invalid request")]
    Invalid(Vec<FieldError>),
    #[error("not found")]
    NotFound,
    #[error("method not allowed")]
    MethodNotAllowed,
    #[error("the database is unreachable")]
    Unavailable,
    #[error("internal error")]
    Internal(#[source] anyhow::Error),
}

/// An invalid field.
#[derive(Debug, Serialize)]
pub(crate) struct FieldError {
    #[serde(rename = "type")]
    kind: &'static str,
    loc: [&'static str; 2],
    msg: &'static str,
}

impl FieldError {
    pub(crate) fn new(kind: &'static str, loc: [&'static str; 2], msg: &'static str) -> Self {
        Self { kind, loc, msg }
    }
}

impl From<DatabaseError> for ApiError {
    fn from(error: DatabaseError) -> Self {
        match error {
            DatabaseError::Busy => Self::Unavailable,
            other => Self::Internal(other.into()),
        }
    }
}

impl From<QueryRejection> for ApiError {
    fn from(_: QueryRejection) -> Self {
        Self::Invalid(vec![FieldError::new(
            "value_error",
            ["query", ""],
            "Value error, invalid query string",
        )])
    }
}

impl IntoResponse for ApiError {
    #[expect(clippy::print_stderr, reason = "the cause is logged, never sent to the client")]
    fn into_response(self) -> Response {
        let detail = self.to_string();
        let body = Json(json!({ "detail": detail }));
        match self {
            Self::Invalid(errors) => {
                (StatusCode::UNPROCESSABLE_ENTITY, Json(json!({ "detail": errors }))).into_response()
            }
            Self::WrongCredentials => (StatusCode::UNAUTHORIZED, body).into_response(),
            Self::BadToken => {
                (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer")], body).into_response()
            }
            Self::NotFound => (StatusCode::NOT_FOUND, body).into_response(),
            Self::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, body).into_response(),
            Self::Unavailable => {
                (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "3")], body).into_response()
            }
            Self::Internal(cause) => {
                eprintln!("{cause:#}");
                (StatusCode::INTERNAL_SERVER_ERROR, body).into_response()
            }
        }
    }
}
