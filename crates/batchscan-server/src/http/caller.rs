//! Extracts the [`Caller`] from the bearer token.

use std::sync::{Arc, OnceLock};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use batchscan_store::Caller;

use super::app::App;
use super::authorization::bearer_token;
use super::error::{ApiError, Cause};

/// The caller of a request: set once it is known, read by other extractors and the access log.
#[derive(Clone, Debug, Default)]
pub(super) struct CallerSlot(Arc<OnceLock<Caller>>);

impl CallerSlot {
    pub(super) fn get(&self) -> Option<&Caller> {
        self.0.get()
    }

    pub(super) fn set(&self, caller: &Caller) {
        let _ = self.0.set(caller.clone());
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
        let caller = app.keys().ring.verify(token, now).map_err(ApiError::InvalidToken)?;
        slot.set(&caller);
        if let Some(limit) = &app.rate_limit {
            limit.check(&caller.client, now).map_err(ApiError::TooManyRequests)?;
        }
        if app.draw_failure() {
            return Err(ApiError::Unavailable(Cause::new("failed on purpose")));
        }
        Ok(caller)
    }
}
