//! Tokens of the operator API.

use batchscan_model::{ClientId, UtcInstant};
use rusqlite::{Transaction, params};

use super::organisations::org_id;
use super::rows::query_all;
use super::store::SqliteStore;
use crate::audit::{Change, token_issued};
use crate::errors::{AdminError, StoreError};
use crate::operator_tokens::OperatorToken;
use crate::rows::{OPERATOR_TOKENS, REVOKE_TOKEN, WRITE_TOKEN, operator_token};

impl SqliteStore {
    pub(crate) async fn add_operator_token(&self, token: OperatorToken) -> Result<(), AdminError> {
        self.change_audited(token.created_at, move |transaction| {
            if let Some(org) = &token.org {
                org_id(transaction, org)?;
            }
            write(transaction, &token)?;
            Ok(((), vec![token_issued(&token)]))
        })
        .await
    }

    /// All tokens, or the one with this id.
    pub(crate) async fn operator_tokens(
        &self,
        id: Option<ClientId>,
    ) -> Result<Vec<OperatorToken>, StoreError> {
        self.read(move |connection| {
            let mut select = connection.prepare_cached(OPERATOR_TOKENS)?;
            query_all(&mut select, [id.as_ref().map(ClientId::as_str)], |row| operator_token(row))
        })
        .await
    }

    pub(crate) async fn revoke_operator_token(
        &self,
        id: &ClientId,
        now: UtcInstant,
    ) -> Result<(), AdminError> {
        let id = id.clone();
        self.change_audited(now, move |transaction| {
            if transaction.execute(REVOKE_TOKEN, params![now.micros(), id.as_str()])? == 0 {
                return Err(AdminError::TokenNotFound(id.to_string()));
            }
            Ok(((), vec![Change::of("token revoke", id.as_str())]))
        })
        .await
    }
}

pub(super) fn write(transaction: &Transaction<'_>, token: &OperatorToken) -> rusqlite::Result<()> {
    let micros = |at: Option<UtcInstant>| at.map(UtcInstant::micros);
    let OperatorToken { id, role, org, label, hash, created_at, .. } = token;
    let (expires_at, revoked_at) = (micros(token.expires_at), micros(token.revoked_at));
    let (created_at, last_used_at) = (created_at.micros(), micros(token.last_used_at));
    let (id, role) = (id.as_str(), role.name());
    let params = params![id, role, org, label, hash, created_at, expires_at, revoked_at, last_used_at];
    transaction.execute(WRITE_TOKEN, params).map(drop)
}
