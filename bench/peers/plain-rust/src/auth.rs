//! Credentials for a token, and a token for the organisation it was given to.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::rejection::FormRejection;
use axum::extract::{Form, FromRequestParts, State};
use axum::http::header;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Json};
use jsonwebtoken::{DecodingKey, EncodingKey, Header, Validation};
use ring::digest::{SHA256, digest};
use ring::error::Unspecified;
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};

use crate::App;
use crate::error::{ApiError, FieldFault};

/// How long a token lives.
const TOKEN_SECS: u64 = 3_600;

/// Signs and verifies tokens, with a key that lives as long as the process.
pub(crate) struct Tokens {
    signing: EncodingKey,
    verifying: DecodingKey,
    validation: Validation,
}

#[derive(Serialize, Deserialize)]
struct Claims {
    sub: String,
    org: String,
    exp: u64,
}

impl Tokens {
    /// Draws a key.
    pub(crate) fn new() -> Result<Self, Unspecified> {
        let mut secret = [0; 32];
        SystemRandom::new().fill(&mut secret)?;
        let (signing, verifying) = (EncodingKey::from_secret(&secret), DecodingKey::from_secret(&secret));
        Ok(Self { signing, verifying, validation: Validation::default() })
    }

    fn issue(&self, client: String, organisation: String) -> Result<String, ApiError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let claims = Claims { sub: client, org: organisation, exp: now + TOKEN_SECS };
        jsonwebtoken::encode(&Header::default(), &claims, &self.signing)
            .map_err(|error| ApiError::Internal(error.into()))
    }

    fn organisation(&self, token: &str) -> Result<String, ApiError> {
        let decoded = jsonwebtoken::decode::<Claims>(token, &self.verifying, &self.validation);
        decoded.map(|token| token.claims.org).map_err(|_| ApiError::BadToken)
    }
}

/// The form of a token request. What is required is checked by hand, so that all that is missing is told at once.
#[derive(Default, Deserialize)]
pub(crate) struct Credentials {
    client_id: Option<String>,
    client_secret: Option<String>,
    grant_type: Option<String>,
}

impl Credentials {
    fn checked(self) -> Result<(String, String), ApiError> {
        let given = |value: Option<String>| value.filter(|value| !value.is_empty());
        let (id, secret) = (given(self.client_id), given(self.client_secret));
        let missing = |name| FieldFault::new("missing", ["body", name], "Field required");
        let grant = match given(self.grant_type).as_deref() {
            Some("client_credentials") => None,
            Some(_) => {
                let message = "Input should be 'client_credentials'";
                Some(FieldFault::new("literal_error", ["body", "grant_type"], message))
            }
            None => Some(missing("grant_type")),
        };
        match (id, secret, grant) {
            (Some(id), Some(secret), None) => Ok((id, secret)),
            (id, secret, grant) => {
                let faults = [
                    id.is_none().then(|| missing("client_id")),
                    secret.is_none().then(|| missing("client_secret")),
                    grant,
                ];
                Err(ApiError::Invalid(faults.into_iter().flatten().collect()))
            }
        }
    }
}

#[derive(Serialize)]
struct Granted {
    access_token: String,
    token_type: &'static str,
    expires_in: u64,
}

/// `POST /v1/auth` and `POST /v2/auth`.
pub(crate) async fn token(
    State(app): State<Arc<App>>,
    form: Result<Form<Credentials>, FormRejection>,
) -> Result<impl IntoResponse, ApiError> {
    let (id, secret) = form.map(|Form(form)| form).unwrap_or_default().checked()?;
    let client = app.database.client(id.clone()).await?.ok_or(ApiError::WrongCredentials)?;
    let hash = hex(digest(&SHA256, secret.as_bytes()).as_ref());
    // How far two hashes agree tells nothing of the secrets, so that a plain comparison will do.
    if hash != client.secret_hash {
        return Err(ApiError::WrongCredentials);
    }
    let access_token = app.tokens.issue(id, client.organisation)?;
    let granted = Granted { access_token, token_type: "bearer", expires_in: TOKEN_SECS };
    Ok(([(header::CACHE_CONTROL, "no-store")], Json(granted)))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The organisation whose token a request carries.
pub(crate) struct Caller(pub(crate) String);

impl FromRequestParts<Arc<App>> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        let header = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = header.and_then(|value| value.strip_prefix("Bearer ")).ok_or(ApiError::BadToken)?;
        app.tokens.organisation(token).map(Caller)
    }
}
