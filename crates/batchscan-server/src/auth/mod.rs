//! Exchanges credentials for tokens, and verifies tokens. The rules of credentials are in the store. Knows nothing about HTTP.

mod keys;
mod token;

pub use keys::{KEY_ACTIVATION_DELAY_SECS, KeyRing, NoKeys, in_use_first};
pub use token::{Signer, Token, TokenError};

use batchscan_model::{ClientId, ClientSecret, UtcInstant};
use batchscan_store::{Caller, Credential, Freshness, Rejected, SecretHash, Store, StoreError};

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
    pub secret_hash: SecretHash,
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
    let mut credential = store.credential(client, Freshness::Any).await?;
    // A revocation is final, so a standby cannot be wrong about it.
    let is_revoked = credential.as_ref().is_some_and(|credential| credential.revoked_at.is_some());
    let mut verified = Credential::verify(credential.as_ref(), secret, &keys.secret, now);
    if verified.is_err() && !is_revoked && store.has_standbys() {
        credential = store.credential(client, Freshness::Latest).await?;
        verified = Credential::verify(credential.as_ref(), secret, &keys.secret, now);
    }
    let (credential, secret_hash) = match (credential, verified) {
        (Some(credential), Ok(secret_hash)) => (credential, secret_hash),
        (_, verified) => return Ok(Err(verified.err().unwrap_or(Rejected::Wrong))),
    };
    // A token expires no later than its credential.
    let left_secs = credential.expires_at.map_or(i64::MAX, |expiry| expiry.secs() - now.secs());
    let expires_in_secs = token_ttl_secs.min(left_secs).max(1);
    let Some(org) = credential.org else { return Ok(Err(Rejected::Wrong)) };
    let caller = Caller { org, client: client.clone() };
    let token = Token::sign(&keys.token, &caller, now, expires_in_secs);
    Ok(Ok(Granted { caller, token, expires_in_secs, secret_hash }))
}
