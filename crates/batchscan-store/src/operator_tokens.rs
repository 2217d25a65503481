//! Tokens of the operator API: credentials with a role.

use batchscan_model::{ClientId, UtcInstant};

use crate::access::{Credential, NewCredential, OperatorRole};
use crate::change::Change;
use crate::credentials::{self, credential_row};
use crate::errors::{AdminError, StoreError};
use crate::organisations::lock_org;
use crate::sql::{Columns, invalid, values};
use crate::store::Store;
use crate::types::Freshness;

/// A token of the operator API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorToken {
    /// What it is stored as.
    pub credential: Credential,
    /// What it allows.
    pub role: OperatorRole,
    /// The name of the only organisation that it may import into.
    pub org: Option<String>,
}

impl Store {
    /// Adds a token of the operator API, for one organisation or for all.
    pub async fn add_operator_token(
        &self,
        role: OperatorRole,
        org: Option<&str>,
        new: NewCredential,
    ) -> Result<(), AdminError> {
        let org = org.map(str::to_owned);
        self.change(new.now, async move |sql| {
            let issued = Change::new("token issue", new.client.as_str()).detail(role.name().to_owned());
            let org_id = match &org {
                Some(org) => Some(lock_org(sql, org).await?),
                None => None,
            };
            credentials::insert(sql, &new.issue(org_id, Some(role))).await?;
            Ok(((), vec![Change { org, ..issued }]))
        })
        .await
    }

    /// The tokens of the operator API, oldest first.
    pub async fn operator_tokens(&self) -> Result<Vec<OperatorToken>, AdminError> {
        let all = format!("{} ORDER BY c.created_at, c.client_id", select());
        self.snapshot(async move |sql| sql.all(&all, &[], operator_token).await).await
    }

    /// The token of the operator API with this id, from the primary: a revoked one must not be accepted.
    pub async fn operator_token(&self, id: &ClientId) -> Result<Option<OperatorToken>, StoreError> {
        let find = format!("{} AND c.client_id = $1", select());
        Ok(self.read(Freshness::Latest, &find, values![id], operator_token).await?.pop())
    }

    /// Revokes a token of the operator API.
    pub async fn revoke_operator_token(&self, id: &ClientId, now: UtcInstant) -> Result<(), AdminError> {
        self.revoke("token revoke", id, true, now).await
    }
}

/// An operator's credential has one secret, so each is one row.
fn select() -> String {
    let (columns, tables) = (credentials::COLUMNS, credentials::TABLES);
    format!(
        "SELECT {columns}, o.name FROM {tables} LEFT JOIN organisation o ON o.id = c.org_id WHERE c.role IS NOT NULL"
    )
}

fn operator_token(row: &dyn Columns) -> Result<OperatorToken, StoreError> {
    let credential = credential_row(row)?;
    let role = credential.role.ok_or_else(|| invalid("role"))?;
    Ok(OperatorToken { credential, role, org: row.optional_string(12)? })
}
