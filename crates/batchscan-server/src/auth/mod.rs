//! Authenticates clients: secrets, tokens, keys. Knows nothing about HTTP.

mod keys;
mod secret;
mod session;
mod token;

pub use keys::{KEY_ACTIVATION_DELAY_SECS, KeyRing, NoKeys, in_use_first};
pub use secret::{Issued, is_issued_id, is_label, issue, new_secret};
pub use session::{IdAndSecret, new_operator_token, new_session};
pub use token::{Signer, Token, TokenError};

use batchscan_model::{ClientId, ClientSecret, UtcInstant};
use batchscan_store::{Caller, Credential, CredentialStatus, Freshness, Secret, Store, StoreError};

/// Compared with the secret of an unknown client, so that it takes as long as a known one.
pub(crate) const DUMMY_HASH: [u8; 32] = [0; 32];

/// A token for an authenticated client.
#[derive(Debug)]
pub struct Granted {
    /// The organisation and credential.
    pub caller: Caller,
    /// The token.
    pub token: Token,
    /// Its lifetime in seconds.
    pub expires_in_secs: i64,
    /// The hash of the secret that was used.
    pub secret_hash: [u8; 32],
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
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Rejected::Wrong => "unknown client id or wrong secret",
            Rejected::Expired => "the credential has expired",
            Rejected::Revoked => "the credential was revoked",
        }
    }
}

/// Exchanges credentials for a token.
///
/// An unknown client takes the same time as a wrong secret (decision 006). Credentials are rejected only by the primary:
/// a standby may not have a new credential yet.
pub async fn authenticate(
    store: &Store,
    keys: &KeyRing,
    client: Option<&ClientId>,
    secret: &ClientSecret,
    token_ttl_secs: i64,
    now: UtcInstant,
) -> Result<Result<Granted, Rejected>, StoreError> {
    // A text that cannot be an id is looked up like an unknown id.
    let unknown = ClientId::new("-");
    let Some(client) = client.or(unknown.as_ref()) else { return Ok(Err(Rejected::Wrong)) };
    let credential = store.credential(client, Freshness::Any).await?;
    // A revocation is final, so a standby cannot be wrong about it.
    let is_revoked = credential.as_ref().is_some_and(|credential| credential.revoked_at.is_some());
    let mut verified = verify(credential, keys, secret, now);
    if verified.is_err() && !is_revoked && store.has_standbys() {
        let credential = store.credential(client, Freshness::Latest).await?;
        verified = verify(credential, keys, secret, now);
    }
    let (credential, secret_hash) = match verified {
        Ok(verified) => verified,
        Err(rejected) => return Ok(Err(rejected)),
    };
    // A token expires no later than its credential.
    let left_secs = credential.expires_at.map_or(i64::MAX, |expiry| expiry.secs() - now.secs());
    let expires_in_secs = token_ttl_secs.min(left_secs).max(1);
    let Some(org) = credential.org else { return Ok(Err(Rejected::Wrong)) };
    let caller = Caller { org, client: client.clone() };
    let token = Token::sign(&keys.token, &caller, now, expires_in_secs);
    Ok(Ok(Granted { caller, token, expires_in_secs, secret_hash }))
}

/// The credential and the hash of the secret, if it is active and the secret is one of its secrets.
fn verify(
    credential: Option<Credential>,
    keys: &KeyRing,
    secret: &ClientSecret,
    now: UtcInstant,
) -> Result<(Credential, [u8; 32]), Rejected> {
    let Some(credential) = credential else {
        keys.is_secret(secret, &DUMMY_HASH);
        return Err(Rejected::Wrong);
    };
    // Every secret is compared, so that the time does not reveal which of two matched.
    let matches = |known: &&Secret| keys.is_secret(secret, &known.hash) & known.is_valid(now);
    let hash = credential.secrets.iter().filter(matches).fold(None, |_, secret| Some(secret.hash));
    match (credential.status(now), hash) {
        (CredentialStatus::Active, Some(hash)) => Ok((credential, hash)),
        // It has no secrets any more.
        (CredentialStatus::Revoked, _) => Err(Rejected::Revoked),
        (CredentialStatus::Expired, Some(_)) => Err(Rejected::Expired),
        (_, None) => Err(Rejected::Wrong),
    }
}
