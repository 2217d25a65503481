//! The token of a request to the operator API, and what it allows.

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use batchscan_store::{Actor, Credential, CredentialStatus, IdAndSecret, OperatorRole, OperatorToken, Store};
use serde::de::DeserializeOwned;

use super::request::read_json;
use crate::http::App;
use crate::http::authorization::bearer_token;
use crate::http::caller_cell::CallerCell;
use crate::http::error::ApiError;
use crate::http::token::in_time;

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

    /// The small JSON body of an admin's request.
    pub(super) async fn read_json<T: DeserializeOwned>(&self, body: Body) -> Result<T, ApiError> {
        self.require_admin()?;
        read_json(body).await
    }

    /// Whether the token is still valid after a long upload. The transaction of a change checks it once more.
    pub(super) async fn require_valid(&self, app: &App) -> Result<(), ApiError> {
        let token = app.store.operator_token(&self.token.credential.client).await?;
        let is_valid =
            token.is_some_and(|token| token.credential.status(app.clock.now()) == CredentialStatus::Active);
        is_valid.then_some(()).ok_or(ApiError::InvalidOperatorToken)
    }

    /// Whether the token may import batches of this organisation.
    pub(super) fn require_import_to(&self, org: &str) -> Result<(), ApiError> {
        match &self.token.org {
            Some(own) if own != org => Err(ApiError::Refused(StatusCode::FORBIDDEN, OTHER_ORGANISATION)),
            _ => Ok(()),
        }
    }
}

impl FromRequestParts<App> for Operator {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let cell = parts.extensions.get::<CallerCell>().cloned().unwrap_or_default();
        let text = bearer_token(&parts.headers).ok_or(ApiError::MissingToken)?;
        let sent = IdAndSecret::parse(text);
        let id = sent.as_ref().map(|sent| sent.id.clone());
        let Some(token) = valid_token(app, &cell, sent).await? else {
            app.count_wrong_secret(id.as_ref(), cell.address()).await?;
            return Err(ApiError::InvalidOperatorToken);
        };
        let Credential { client: id, label, .. } = &token.credential;
        app.note_use(id.clone(), app.clock.now());
        let name = match &**label {
            "" => id.to_string(),
            label => format!("{id} ({label})"),
        };
        let source = cell.address().map_or_else(|| "unknown".into(), |address| address.to_string());
        let store = app.store.with_actor(Actor { name, source, token: Some(id.clone()) });
        Ok(Self { token, store })
    }
}

/// `None` if the token is wrong, revoked or expired.
async fn valid_token(
    app: &App,
    cell: &CallerCell,
    sent: Option<IdAndSecret>,
) -> Result<Option<OperatorToken>, ApiError> {
    let Some(IdAndSecret { id, secret }) = sent else { return Ok(None) };
    cell.claim(&id);
    let token = in_time(app.store.operator_token(&id)).await??;
    let credential = token.as_ref().map(|token| &token.credential);
    let verified = Credential::verify(credential, &secret, &app.keys().ring.secret, app.clock.now());
    Ok(token.filter(|_| verified.is_ok()))
}
