//! Extracts the [`Caller`] from the bearer token or, for exports, from HTTP Basic.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use batchscan_store::Caller;

use super::app::App;
use super::authorization::bearer_token;
use super::caller_cell::CallerCell;
use super::error::{ApiError, BASIC_CHALLENGE};
use super::token::{TokenRequest, grant};
use crate::auth::TokenError;

/// Verifies the token and applies the rate limit, once per request. Whether the credential was revoked since is checked
/// by every read of the store.
impl FromRequestParts<App> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let cell = parts.extensions.get::<CallerCell>().cloned().unwrap_or_default();
        if let Some(caller) = cell.get() {
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
            cell.claim(client);
        }
        let caller = caller.map_err(ApiError::InvalidToken)?;
        cell.set(&caller);
        app.check_rate(&caller.client)?;
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
                let cell = parts.extensions.get::<CallerCell>().cloned().unwrap_or_default();
                let granted = grant(app, &cell, &request).await;
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
        true => Err(ApiError::unavailable("failed on purpose")),
        false => Ok(()),
    }
}
