//! Credentials of clients and operators: validity, rotation, revocation. An operator token is a credential with a role.

use std::fmt;

use batchscan_model::{ClientId, ClientSecret, OrgId, UtcInstant};

use super::secret::{SecretHash, SecretKey};

/// Compared with the secret of an unknown client, so that it takes as long as a known one.
const DUMMY_HASH: SecretHash = [0; 32];

/// What a token allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperatorRole {
    /// Everything.
    Admin,
    /// To import batches.
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

/// A credential of an organisation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// Its id.
    pub client: ClientId,
    /// Its organisation; `None` for an operator of all.
    pub org: Option<OrgId>,
    /// What an operator may do; `None` for a client.
    pub role: Option<OperatorRole>,
    /// The operator's note.
    pub label: String,
    /// When it was issued.
    pub created_at: UtcInstant,
    /// When it expires.
    pub expires_at: Option<UtcInstant>,
    /// When it was revoked.
    pub revoked_at: Option<UtcInstant>,
    /// When it was last used.
    pub last_used_at: Option<UtcInstant>,
    /// When it was last tried after it had ended.
    pub last_rejected_at: Option<UtcInstant>,
    /// Its secrets, oldest first.
    pub secrets: Vec<Secret>,
}

impl Credential {
    /// Whether it can be used.
    pub fn status(&self, now: UtcInstant) -> CredentialStatus {
        CredentialStatus::new(self.revoked_at, self.expires_at, now)
    }

    /// The hash of the secret, if the credential is active and the secret is one of its secrets. An unknown credential takes
    /// as long as a wrong secret (decision 006).
    pub fn verify(
        found: Option<&Self>,
        secret: &ClientSecret,
        key: &SecretKey,
        now: UtcInstant,
    ) -> Result<SecretHash, Rejected> {
        let Some(credential) = found else {
            key.is_hash_of(&DUMMY_HASH, secret);
            return Err(Rejected::Wrong);
        };
        // Every secret is compared, so that the time does not reveal which of two matched.
        let matches = |known: &&Secret| key.is_hash_of(&known.hash, secret) & known.is_valid(now);
        let hash = credential.secrets.iter().filter(matches).fold(None, |_, secret| Some(secret.hash));
        match (credential.status(now), hash) {
            (CredentialStatus::Active, Some(hash)) => Ok(hash),
            // It has no secrets any more.
            (CredentialStatus::Revoked, _) => Err(Rejected::Revoked),
            (CredentialStatus::Expired, Some(_)) => Err(Rejected::Expired),
            (_, None) => Err(Rejected::Wrong),
        }
    }

    /// When the older of two valid secrets stops working.
    pub fn old_secret_until(&self, now: UtcInstant) -> Option<UtcInstant> {
        self.secrets.iter().filter_map(|secret| secret.retires_at).filter(|at| *at > now).max()
    }

    /// After a rotation: when the old secret retires. Sessions end then, since they may be a thief's.
    pub(crate) fn sessions_end(&self) -> Option<UtcInstant> {
        self.secrets.iter().filter_map(|secret| secret.retires_at).max()
    }

    /// Replaces the current secret. It keeps working until `retire_at`. A secret that was already retiring ends now; the
    /// time until which it would have worked is returned.
    pub(crate) fn rotate(&mut self, rotation: &Rotation) -> Option<UtcInstant> {
        let ended = self.old_secret_until(rotation.now);
        let retires_at = Some(rotation.retire_at.max(rotation.now));
        self.secrets.retain(|secret| secret.retires_at.is_none());
        self.secrets.iter_mut().for_each(|secret| secret.retires_at = retires_at);
        self.secrets.push(Secret { hash: rotation.secret_hash, created_at: rotation.now, retires_at: None });
        ended
    }
}

/// Whether a credential can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CredentialStatus {
    /// It can.
    Active,
    /// Its expiry has passed.
    Expired,
    /// It was revoked.
    Revoked,
}

impl CredentialStatus {
    pub(super) fn new(
        revoked_at: Option<UtcInstant>,
        expires_at: Option<UtcInstant>,
        now: UtcInstant,
    ) -> Self {
        Self::from_micros(revoked_at.map(UtcInstant::micros), expires_at.map(UtcInstant::micros), now)
    }

    /// From the stored columns.
    pub(crate) fn from_micros(revoked_at: Option<i64>, expires_at: Option<i64>, now: UtcInstant) -> Self {
        if revoked_at.is_some() {
            CredentialStatus::Revoked
        } else if expires_at.is_some_and(|expiry| expiry <= now.micros()) {
            CredentialStatus::Expired
        } else {
            CredentialStatus::Active
        }
    }

    /// As shown to operators.
    pub fn name(self) -> &'static str {
        match self {
            CredentialStatus::Active => "active",
            CredentialStatus::Expired => "expired",
            CredentialStatus::Revoked => "revoked",
        }
    }
}

/// Why credentials were rejected. Only operators learn this (decision 006).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejected {
    /// The id is unknown, or the secret is wrong.
    Wrong,
    /// The credential has expired.
    Expired,
    /// The credential was revoked.
    Revoked,
}

impl Rejected {
    /// For the log.
    pub fn reason(self) -> &'static str {
        match self {
            Rejected::Wrong => "unknown client id or wrong secret",
            Rejected::Expired => "the credential has expired",
            Rejected::Revoked => "the credential was revoked",
        }
    }
}

/// A client secret, stored as a keyed hash.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    /// HMAC-SHA-256 of the secret.
    pub hash: SecretHash,
    /// When it was created.
    pub created_at: UtcInstant,
    /// When it stops working after a rotation.
    pub retires_at: Option<UtcInstant>,
}

impl Secret {
    /// Whether it still works.
    pub fn is_valid(&self, now: UtcInstant) -> bool {
        self.retires_at.is_none_or(|until| now < until)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret").field("retires_at", &self.retires_at).finish_non_exhaustive()
    }
}

/// A credential to be added.
#[derive(Clone, Debug)]
pub struct NewCredential {
    /// Its id.
    pub client: ClientId,
    /// The operator's note.
    pub label: String,
    /// When it expires.
    pub expires_at: Option<UtcInstant>,
    /// The hash of its first secret.
    pub secret_hash: SecretHash,
    /// The current time.
    pub now: UtcInstant,
}

impl NewCredential {
    pub(crate) fn issue(self, org: Option<OrgId>, role: Option<OperatorRole>) -> Credential {
        let secret = Secret { hash: self.secret_hash, created_at: self.now, retires_at: None };
        Credential {
            client: self.client,
            org,
            role,
            label: self.label,
            created_at: self.now,
            expires_at: self.expires_at,
            revoked_at: None,
            last_used_at: None,
            last_rejected_at: None,
            secrets: vec![secret],
        }
    }
}

/// A new secret for a credential.
#[derive(Clone, Debug)]
pub struct Rotation {
    /// The hash of the new secret.
    pub secret_hash: SecretHash,
    /// When the current secret stops working.
    pub retire_at: UtcInstant,
    /// The current time.
    pub now: UtcInstant,
}
