//! Extracts the [`Caller`] from the bearer token or, for exports, from HTTP Basic.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use batchscan_model::ClientId;
use batchscan_store::Caller;

use super::app::App;
use super::authorization::bearer_token;
use super::error::{ApiError, BASIC_CHALLENGE, Cause};
use super::token::{TokenRequest, grant};
use crate::auth::{TokenError, is_issued_id};

/// Who sends a request: its address, and the caller once it is known. Read by other extractors and the access log.
#[derive(Clone, Debug, Default)]
pub(super) struct CallerSlot(Arc<Slots>);

#[derive(Debug, Default)]
struct Slots {
    caller: OnceLock<Caller>,
    /// The client id that was sent with a wrong secret or an expired token, for the log.
    claimed: OnceLock<ClientId>,
    address: Option<IpAddr>,
}

impl CallerSlot {
    pub(super) fn new(address: Option<IpAddr>) -> Self {
        Self(Arc::new(Slots { address, ..Slots::default() }))
    }

    /// The address of the client. `None` in tests without a connection.
    pub(super) fn address(&self) -> Option<IpAddr> {
        self.0.address
    }

    pub(super) fn get(&self) -> Option<&Caller> {
        self.0.caller.get()
    }

    pub(super) fn set(&self, caller: &Caller) {
        let _ = self.0.caller.set(caller.clone());
    }

    /// The client, if only by its own account.
    pub(super) fn client(&self) -> Option<&ClientId> {
        self.get().map(|caller| &caller.client).or(self.0.claimed.get())
    }

    /// Notes the client id of a rejected request. A text that is not one of ours could be a secret in the wrong field.
    pub(super) fn claim(&self, client: &ClientId) {
        if is_issued_id(client.as_str()) {
            let _ = self.0.claimed.set(client.clone());
        }
    }
}

/// Verifies the token and applies the rate limit, once per request.
impl FromRequestParts<App> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let slot = parts.extensions.get::<CallerSlot>().cloned().unwrap_or_default();
        if let Some(caller) = slot.get() {
            return Ok(caller.clone());
        }
        let (token, now) = (bearer_token(&parts.headers).ok_or(ApiError::MissingToken)?, app.clock.now());
        let mut caller = app.keys().ring.verify(token, now);
        if caller == Err(TokenError::UnknownKey) {
            // Another process may have signed it with a key that is new.
            app.refresh_keys().await?;
            caller = app.keys().ring.verify(token, now);
        }
        if let Err(TokenError::Expired(client)) = &caller {
            slot.claim(client);
        }
        let caller = caller.map_err(ApiError::InvalidToken)?;
        slot.set(&caller);
        if let Some(limit) = &app.rate_limit {
            limit.check(&caller.client).map_err(ApiError::TooManyRequests)?;
        }
        fail_on_purpose(app)?;
        Ok(caller)
    }
}

/// The caller of an export: by token, or by client id and secret as user name and password (decision 053).
pub(super) struct BasicOrBearer(pub(super) Caller);

impl FromRequestParts<App> for BasicOrBearer {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Response> {
        let caller = match TokenRequest::from_basic(&parts.headers) {
            Some(request) => {
                let slot = parts.extensions.get::<CallerSlot>().cloned().unwrap_or_default();
                let granted = grant(app, &slot, &request).await;
                granted.and_then(|granted| fail_on_purpose(app).map(|()| granted.caller))
            }
            None => Caller::from_request_parts(parts, app).await,
        };
        caller.map(Self).map_err(with_both_challenges)
    }
}

/// Offers both schemes, so that programs ask for credentials. Not after a bearer token: the browser would interrupt the
/// dashboard with a dialog.
fn with_both_challenges(error: ApiError) -> Response {
    let has_no_token = matches!(error, ApiError::MissingToken | ApiError::InvalidClient { .. });
    let error = if let ApiError::MissingToken = error { ApiError::MissingTokenOrSecret } else { error };
    let mut response = error.into_response();
    if has_no_token {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, BASIC_CHALLENGE);
        response.headers_mut().append(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

fn fail_on_purpose(app: &App) -> Result<(), ApiError> {
    match app.draw_failure() {
        true => Err(ApiError::Unavailable(Cause::new("failed on purpose"))),
        false => Ok(()),
    }
}
