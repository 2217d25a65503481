//! The token of a request to the operator API, and what it allows.

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use batchscan_model::ClientId;
use batchscan_store::{Actor, CredentialStatus, OperatorRole, OperatorToken, Store};

use super::super::app::App;
use super::super::authorization::bearer_token;
use super::super::caller::CallerSlot;
use super::super::error::ApiError;
use crate::auth::IdAndSecret;

const ADMIN_ONLY: &str = "This needs a token with the role admin";
const OTHER_ORGANISATION: &str = "The token is for another organisation";

/// The sender of a request, whose token is valid.
pub(super) struct Operator {
    token: OperatorToken,
    /// Records the changes as this operator's.
    pub(super) store: Store,
}

impl Operator {
    pub(super) fn require_admin(&self) -> Result<(), ApiError> {
        match self.token.role {
            OperatorRole::Admin => Ok(()),
            OperatorRole::Ingest => Err(ApiError::Refused(StatusCode::FORBIDDEN, ADMIN_ONLY)),
        }
    }

    /// Whether the token is still valid after a long request.
    pub(super) async fn require_valid(&self, app: &App) -> Result<(), ApiError> {
        let token = app.store.operator_token(&self.token.id).await?;
        let is_valid = token.is_some_and(|token| token.status(app.clock.now()) == CredentialStatus::Active);
        is_valid.then_some(()).ok_or(ApiError::InvalidOperatorToken)
    }

    /// Whether the token may deliver batches to this organisation.
    pub(super) fn require_delivery_to(&self, org: &str) -> Result<(), ApiError> {
        match &self.token.org {
            Some(own) if own != org => Err(ApiError::Refused(StatusCode::FORBIDDEN, OTHER_ORGANISATION)),
            _ => Ok(()),
        }
    }
}

impl FromRequestParts<App> for Operator {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let slot = parts.extensions.get::<CallerSlot>().cloned().unwrap_or_default();
        let text = bearer_token(&parts.headers).ok_or(ApiError::MissingToken)?;
        let IdAndSecret { id, secret } = IdAndSecret::parse(text).ok_or(ApiError::InvalidOperatorToken)?;
        let id = ClientId::new(id).ok_or(ApiError::InvalidOperatorToken)?;
        slot.claim(&id);
        let now = app.clock.now();
        let token = app.store.operator_token(&id).await?.ok_or(ApiError::InvalidOperatorToken)?;
        if !app.keys().ring.is_secret(&secret, &token.hash) || token.status(now) != CredentialStatus::Active {
            return Err(ApiError::InvalidOperatorToken);
        }
        app.note_use(id.clone(), now);
        let name = match &*token.label {
            "" => id.to_string(),
            label => format!("{id} ({label})"),
        };
        let source = slot.address().map_or_else(|| "unknown".into(), |address| address.to_string());
        Ok(Self { token, store: app.store.acting_as(Actor { name, source }) })
    }
}
