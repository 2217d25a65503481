//! Tokens of the operator API.

use batchscan_model::{ClientId, UtcInstant};
use deadpool_postgres::Transaction;

use super::organisations::org_id;
use super::rows::params;
use super::store::{PostgresStore, on_any_host};
use crate::audit::{Change, token_issued};
use crate::errors::{AdminError, StoreError};
use crate::operator_tokens::OperatorToken;
use crate::rows::{OPERATOR_TOKENS, REVOKE_TOKEN, WRITE_TOKEN, operator_token};
use crate::types::Freshness;

impl PostgresStore {
    pub(crate) async fn add_operator_token(&self, token: OperatorToken) -> Result<(), AdminError> {
        self.change_audited(token.created_at, async |transaction| {
            if let Some(org) = &token.org {
                org_id(transaction, org).await?;
            }
            write(transaction, &token).await?;
            Ok(((), vec![token_issued(&token)]))
        })
        .await
    }

    /// All tokens, or the one with this id, from the primary: a revoked one must not be accepted.
    pub(crate) async fn operator_tokens(
        &self,
        id: Option<ClientId>,
    ) -> Result<Vec<OperatorToken>, StoreError> {
        let id = id.as_ref().map(ClientId::as_str);
        // One token is for a request, all of them are for a command, which has more time.
        let route = match id {
            Some(_) => self.hosts.route(Freshness::Latest),
            None => self.hosts.command_route(Freshness::Latest),
        };
        let rows = on_any_host!(route, |client| async {
            Ok(client.query_typed(OPERATOR_TOKENS, &params![TEXT: id]).await?)
        });
        rows.iter().map(operator_token).collect()
    }

    pub(crate) async fn revoke_operator_token(
        &self,
        id: &ClientId,
        now: UtcInstant,
    ) -> Result<(), AdminError> {
        self.change_audited(now, async |transaction| {
            let params = params![INT8: now.micros(), TEXT: id.as_str()];
            if transaction.execute_typed(REVOKE_TOKEN, &params).await? == 0 {
                return Err(AdminError::TokenNotFound(id.to_string()));
            }
            Ok(((), vec![Change::of("token revoke", id.as_str())]))
        })
        .await
    }
}

pub(super) async fn write(transaction: &Transaction<'_>, token: &OperatorToken) -> Result<(), AdminError> {
    let micros = |at: Option<UtcInstant>| at.map(UtcInstant::micros);
    let OperatorToken { id, role, org, label, hash, created_at, .. } = token;
    let (expires_at, revoked_at) = (micros(token.expires_at), micros(token.revoked_at));
    let params = params![
        TEXT: id.as_str(), TEXT: role.name(), TEXT: org, TEXT: label, BYTEA: hash.as_slice(),
        INT8: created_at.micros(), INT8: expires_at, INT8: revoked_at, INT8: micros(token.last_used_at),
    ];
    transaction.execute_typed(WRITE_TOKEN, &params).await?;
    Ok(())
}
