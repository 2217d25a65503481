//! Tokens of the operator API, and what they allow.

use batchscan_model::{ClientId, UtcInstant};

use crate::credentials::CredentialStatus;

/// What a token allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperatorRole {
    /// Everything.
    Admin,
    /// To deliver batches.
    Ingest,
}

impl OperatorRole {
    /// Every role.
    pub const ALL: [Self; 2] = [Self::Admin, Self::Ingest];

    /// As stored and shown.
    pub fn name(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Ingest => "ingest",
        }
    }

    /// By its name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }
}

/// A token of the operator API. Only the hash of its secret is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorToken {
    /// Its id.
    pub id: ClientId,
    /// What it allows.
    pub role: OperatorRole,
    /// The name of the only organisation that it may deliver to.
    pub org: Option<String>,
    /// The operator's note.
    pub label: String,
    /// HMAC-SHA-256 of the secret.
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
        let micros = |at: Option<UtcInstant>| at.map(UtcInstant::micros);
        CredentialStatus::new(micros(self.revoked_at), micros(self.expires_at), now)
    }
}
