//! `POST /v1/auth` and `POST /v2/auth`, and the caller of a request.

use std::sync::Arc;

use axum::extract::rejection::FormRejection;
use axum::extract::{Form, FromRequestParts, State};
use axum::http::header;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Json};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::error::{ApiError, FieldError};
use crate::tokens::TOKEN_SECS;

/// The form of a token request. Required fields are checked by hand, to report all missing ones at once.
#[derive(Default, Deserialize)]
pub(crate) struct TokenRequest {
    client_id: Option<String>,
    client_secret: Option<String>,
    grant_type: Option<String>,
}

impl TokenRequest {
    /// The client id and secret.
    fn validate(self) -> Result<(String, String), ApiError> {
        let non_empty = |value: Option<String>| value.filter(|value| !value.is_empty());
        let (id, secret) = (non_empty(self.client_id), non_empty(self.client_secret));
        let missing = |name| FieldError::new("missing", ["body", name], "Field required");
        let grant_error = match non_empty(self.grant_type).as_deref() {
            Some("client_credentials") => None,
            Some(_) => {
                let message = "Input should be 'client_credentials'";
                Some(FieldError::new("literal_error", ["body", "grant_type"], message))
            }
            None => Some(missing("grant_type")),
        };
        match (id, secret, grant_error) {
            (Some(id), Some(secret), None) => Ok((id, secret)),
            (id, secret, grant_error) => {
                let errors = [
                    id.is_none().then(|| missing("client_id")),
                    secret.is_none().then(|| missing("client_secret")),
                    grant_error,
                ];
                Err(ApiError::Invalid(errors.into_iter().flatten().collect()))
            }
        }
    }
}

#[derive(Serialize)]
struct TokenResponse {
    access_token: String,
    token_type: &'static str,
    expires_in: u64,
}

/// `POST /v1/auth` and `POST /v2/auth`.
pub(crate) async fn issue_token(
    State(app): State<Arc<App>>,
    form: Result<Form<TokenRequest>, FormRejection>,
) -> Result<impl IntoResponse, ApiError> {
    let (id, secret) = form.map(|Form(form)| form).unwrap_or_default().validate()?;
    let client = app.database.client(id.clone()).await?.ok_or(ApiError::WrongCredentials)?;
    let hash = hex(digest(&SHA256, secret.as_bytes()).as_ref());
    // The time of comparing two hashes reveals nothing about the secrets.
    if hash != client.secret_hash {
        return Err(ApiError::WrongCredentials);
    }
    let access_token =
        app.tokens.issue(id, client.organisation).map_err(|error| ApiError::Internal(error.into()))?;
    let response = TokenResponse { access_token, token_type: "bearer", expires_in: TOKEN_SECS };
    Ok(([(header::CACHE_CONTROL, "no-store")], Json(response)))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The organisation that sent a request, from its token.
pub(crate) struct Caller(pub(crate) String);

impl FromRequestParts<Arc<App>> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        let header = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = header.and_then(|value| value.strip_prefix("Bearer ")).ok_or(ApiError::BadToken)?;
        app.tokens.verify(token).map(Caller).map_err(|_| ApiError::BadToken)
    }
}
