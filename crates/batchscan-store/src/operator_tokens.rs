//! Tokens of the operator API: credentials with a role.

use batchscan_model::{ClientId, UtcInstant};

use crate::access::{CredentialStatus, NewCredential, OperatorRole};
use crate::change::Change;
use crate::credentials;
use crate::errors::{AdminError, StoreError};
use crate::organisations::lock_org;
use crate::sql::{Columns, invalid, values};
use crate::store::Store;
use crate::types::Freshness;

/// A token of the operator API. Only the hash of its secret is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorToken {
    /// Its id.
    pub id: ClientId,
    /// What it allows.
    pub role: OperatorRole,
    /// The name of the only organisation that it may import into.
    pub org: Option<String>,
    /// The operator's note.
    pub label: String,
    /// HMAC-SHA-256 of the secret; zeros once it is revoked.
    pub hash: [u8; 32],
    /// When it was issued.
    pub created_at: UtcInstant,
    /// When it expires.
    pub expires_at: Option<UtcInstant>,
    /// When it was revoked.
    pub revoked_at: Option<UtcInstant>,
    /// When it was last used.
    pub last_used_at: Option<UtcInstant>,
}

impl OperatorToken {
    /// Whether it can be used.
    pub fn status(&self, now: UtcInstant) -> CredentialStatus {
        CredentialStatus::new(self.revoked_at, self.expires_at, now)
    }
}

const SELECT: &str = "
    SELECT c.client_id, c.role, o.name, c.label, s.hash, c.created_at, c.expires_at, c.revoked_at, c.last_used_at
    FROM credential c
    LEFT JOIN secret s ON s.client_id = c.client_id
    LEFT JOIN organisation o ON o.id = c.org_id
    WHERE c.role IS NOT NULL ";

impl Store {
    /// Adds a token of the operator API.
    pub async fn add_operator_token(&self, token: OperatorToken) -> Result<(), AdminError> {
        self.change(token.created_at, async move |sql| {
            let OperatorToken { id, role, org, label, hash, created_at, expires_at, .. } = token;
            let issued = Change::new("token issue", id.as_str()).detail(role.name().to_owned());
            let org_id = match &org {
                Some(org) => Some(lock_org(sql, org).await?),
                None => None,
            };
            let new = NewCredential { client: id, label, expires_at, secret_hash: hash, now: created_at };
            credentials::insert(sql, &new.issue(org_id, Some(role))).await?;
            Ok(((), vec![Change { org, ..issued }]))
        })
        .await
    }

    /// The tokens of the operator API, oldest first.
    pub async fn operator_tokens(&self) -> Result<Vec<OperatorToken>, AdminError> {
        let all = format!("{SELECT} ORDER BY c.created_at, c.client_id");
        self.snapshot(async move |sql| sql.all(&all, &[], operator_token).await).await
    }

    /// The token of the operator API with this id, from the primary: a revoked one must not be accepted.
    pub async fn operator_token(&self, id: &ClientId) -> Result<Option<OperatorToken>, StoreError> {
        let find = format!("{SELECT} AND c.client_id = $1");
        Ok(self.read(Freshness::Latest, &find, values![id], operator_token).await?.pop())
    }

    /// Revokes a token of the operator API.
    pub async fn revoke_operator_token(&self, id: &ClientId, now: UtcInstant) -> Result<(), AdminError> {
        self.revoke("token revoke", id, true, now).await
    }
}

fn operator_token(row: &dyn Columns) -> Result<OperatorToken, StoreError> {
    Ok(OperatorToken {
        id: row.client(0)?,
        role: row.text(1)?.and_then(OperatorRole::from_name).ok_or_else(|| invalid("role"))?,
        org: row.optional_string(2)?,
        label: row.string(3)?,
        hash: row.optional_hash(4)?.unwrap_or_default(),
        created_at: row.instant(5)?,
        expires_at: row.optional_instant(6)?,
        revoked_at: row.optional_instant(7)?,
        last_used_at: row.optional_instant(8)?,
    })
}
