//! Who is calling: secrets, tokens, and the keys behind them. Knows nothing of HTTP.

mod keys;
mod secret;
mod token;

pub use keys::{KEY_SETTLES_SECS, KeyRing, NoKeys, Signer, in_use_first};
pub use secret::{Issued, issue, new_secret};
pub use token::{Token, TokenRefused};

use batchscan_model::{ClientId, ClientSecret, UtcInstant};

use batchscan_store::{Caller, Credential, Freshness, Store, StoreError, StoredSecret};

/// Compared with where there is no credential, for the work of it.
const NOBODYS_HASH: [u8; 32] = [0; 32];

/// What a client is told after it proved itself.
#[derive(Debug)]
pub struct Granted {
    /// Whose batches the token opens, and through which credential.
    pub tenant: Caller,
    /// The token.
    pub token: Token,
    /// How long it lives, in whole seconds.
    pub expires_in_secs: i64,
}

/// Exchanges credentials for a token; `None` if they are wrong, revoked or expired.
///
/// An unknown client costs the same work as a wrong secret (decision 006): the hash is made in either case. A refusal
/// is only given on the store's last word: a standby may not have heard of a new credential yet.
pub async fn authenticate(
    store: &Store,
    keys: &KeyRing,
    client: Option<&ClientId>,
    secret: &ClientSecret,
    token_ttl_secs: i64,
    now: UtcInstant,
) -> Result<Option<Granted>, StoreError> {
    // A text that cannot be an id is looked up like one that is nobody's.
    let nobody = ClientId::new("-");
    let Some(client) = client.or(nobody.as_ref()) else { return Ok(None) };
    let known = store.credential(client, Freshness::Any).await?;
    let mut right = judge(known.credential, keys, secret, now);
    if right.is_none() && !known.is_latest {
        let known = store.credential(client, Freshness::Latest).await?;
        right = judge(known.credential, keys, secret, now);
    }
    let Some(credential) = right else { return Ok(None) };
    // A token never outlives its credential.
    let left = credential.expires_at.map_or(i64::MAX, |expiry| expiry.secs() - now.secs());
    let expires_in_secs = token_ttl_secs.min(left).max(1);
    let tenant = Caller { org: credential.org, client: client.clone() };
    let token = Token::sign(&keys.token, &tenant, now, expires_in_secs);
    Ok(Some(Granted { tenant, token, expires_in_secs }))
}

/// The credential, if it is alive and the secret is one of its own.
fn judge(
    credential: Option<Credential>,
    keys: &KeyRing,
    secret: &ClientSecret,
    now: UtcInstant,
) -> Option<Credential> {
    let Some(credential) = credential else {
        keys.is_secret(secret, &NOBODYS_HASH);
        return None;
    };
    let alive = |until: Option<UtcInstant>| until.is_none_or(|until| now < until);
    // Every secret is compared, so that the time does not tell which of two matched.
    let is_right = |kept: &&StoredSecret| keys.is_secret(secret, &kept.hash) & alive(kept.retires_at);
    let matches = credential.secrets.iter().filter(is_right).count();
    (matches > 0 && !credential.revoked && alive(credential.expires_at)).then_some(credential)
}
