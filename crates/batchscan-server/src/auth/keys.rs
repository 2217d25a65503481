//! The service's keys, ready to use. They come from the store, so that every process shares them.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use batchscan_model::{ClientSecret, UtcInstant};
use ring::hmac;

use super::{Token, TokenRefused};
use batchscan_store::{Caller, KeyPurpose, ServiceKey};

/// A new key verifies at once and signs only after this time (decision 042): by then every node has read it.
pub const KEY_SETTLES_SECS: i64 = 60;

/// A key that signs tokens.
#[derive(Clone)]
pub struct Signer {
    /// The first part of every token it signs, which names it.
    pub(super) header: String,
    pub(super) key: hmac::Key,
}

impl Signer {
    /// A signing key under its name.
    pub fn new(kid: &str, bytes: &[u8; 32]) -> Self {
        let header = format!(r#"{{"alg":"HS256","typ":"JWT","kid":"{kid}"}}"#);
        Self { header: URL_SAFE_NO_PAD.encode(header), key: hmac::Key::new(hmac::HMAC_SHA256, bytes) }
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").field("header", &self.header).finish_non_exhaustive()
    }
}

/// The keys in use, and those that only verify: retired ones, and new ones that not every node knows yet.
#[derive(Clone, Debug)]
pub struct KeyRing {
    /// Signs tokens.
    pub token: Signer,
    /// Verify tokens that another one signed.
    pub token_others: Vec<Signer>,
    /// Seal cursors: the first one does, the others open.
    pub cursor: Vec<ServiceKey>,
    secret: hmac::Key,
}

/// A store without one of the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the database lacks the service's keys: restore a backup that has them")]
pub struct NoKeys;

impl KeyRing {
    /// From the store's keys, newest first.
    pub fn new(keys: &[ServiceKey], now: UtcInstant) -> Result<Self, NoKeys> {
        let token = in_use_first(keys, KeyPurpose::Token, now);
        let cursor = in_use_first(keys, KeyPurpose::Cursor, now);
        let secret = in_use_first(keys, KeyPurpose::Secret, now).into_iter().next().ok_or(NoKeys)?;
        if cursor.is_empty() {
            return Err(NoKeys);
        }
        let mut signers = token.iter().map(|key| Signer::new(&key.kid, &key.bytes));
        Ok(Self {
            token: signers.next().ok_or(NoKeys)?,
            token_others: signers.collect(),
            cursor,
            secret: hmac::Key::new(hmac::HMAC_SHA256, &secret.bytes),
        })
    }

    /// Who a token was issued to, whichever of the keys signed it.
    pub fn verify(&self, token: &str, now: UtcInstant) -> Result<Caller, TokenRefused> {
        Token::verify(token, std::iter::once(&self.token).chain(&self.token_others), now)
    }

    /// The keyed hash of a secret: the only form in which one is kept.
    pub fn hash_secret(&self, secret: &ClientSecret) -> [u8; 32] {
        let mut hash = [0u8; 32];
        hash.copy_from_slice(hmac::sign(&self.secret, secret.reveal().as_bytes()).as_ref());
        hash
    }

    /// Whether a secret is the one that was hashed; compared in constant time.
    pub fn is_secret(&self, secret: &ClientSecret, hash: &[u8; 32]) -> bool {
        hmac::verify(&self.secret, secret.reveal().as_bytes(), hash).is_ok()
    }
}

/// The keys of a purpose: first the one in use, which is the newest that has settled, or the oldest if none has.
pub fn in_use_first(keys: &[ServiceKey], purpose: KeyPurpose, now: UtcInstant) -> Vec<ServiceKey> {
    let mut keys: Vec<ServiceKey> = keys.iter().filter(|key| key.purpose == purpose).cloned().collect();
    let has_settled = |key: &ServiceKey| key.created_at.plus_secs(KEY_SETTLES_SECS) <= now;
    let in_use = keys.iter().position(has_settled).unwrap_or(keys.len().saturating_sub(1));
    if !keys.is_empty() {
        keys[..=in_use].rotate_right(1);
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;
    use batchscan_model::{ClientId, OrgId};

    fn keys_made_at(made: &[i64]) -> Vec<ServiceKey> {
        let key = |purpose, secs: i64| ServiceKey {
            kid: format!("{secs}"),
            purpose,
            bytes: [u8::try_from(secs % 251).unwrap(); 32],
            created_at: UtcInstant::EPOCH.plus_secs(secs),
        };
        let of = |purpose| made.iter().map(move |secs| key(purpose, *secs));
        of(KeyPurpose::Token).chain(of(KeyPurpose::Cursor)).chain(of(KeyPurpose::Secret)).collect()
    }

    fn sealing_at(made: &[i64], now: i64) -> String {
        let ring = KeyRing::new(&keys_made_at(made), UtcInstant::EPOCH.plus_secs(now)).unwrap();
        assert_eq!(ring.cursor.len(), made.len(), "none is lost");
        ring.cursor[0].kid.clone()
    }

    /// Decision 042.
    #[test]
    fn a_new_key_signs_only_once_every_node_has_it() {
        assert_eq!(sealing_at(&[100], 100), "100", "the first one has nobody to wait for");
        assert_eq!(sealing_at(&[1_000, 100], 1_059), "100");
        assert_eq!(sealing_at(&[1_000, 100], 1_060), "1000");
        assert_eq!(sealing_at(&[1_010, 1_000, 100], 1_060), "1000");
    }

    #[test]
    fn a_token_of_a_key_that_does_not_sign_is_verified_all_the_same() {
        let now = UtcInstant::EPOCH.plus_secs(1_000);
        let tenant = Caller { org: OrgId(1), client: ClientId::new("c").unwrap() };
        let one = KeyRing::new(&keys_made_at(&[1_000]), now).unwrap();
        let both = KeyRing::new(&keys_made_at(&[1_000, 100]), now).unwrap();
        let token = Token::sign(&one.token, &tenant, now, 60);
        assert_eq!(both.verify(token.reveal(), now), Ok(tenant));
    }
}
