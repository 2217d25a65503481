//! The keys of the service. They come from the store, so that all processes share them.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use batchscan_model::UtcInstant;
use batchscan_store::{Caller, KeyPurpose, SecretKey, ServiceKey};
use foldhash::fast::RandomState;

use super::token::{Grant, Signer, Token, TokenError};

/// A new key verifies at once but signs only after this time (decision 042): by then every node has read it.
pub const KEY_ACTIVATION_DELAY_SECS: i64 = 60;

/// Verified tokens that are kept. Each takes some hundred bytes.
const VERIFIED_MAX: usize = 4_096;

/// The keys in use, and those that only verify: retired keys, and new keys that not every node has yet.
#[derive(Clone, Debug)]
pub struct KeyRing {
    /// Signs tokens.
    pub token: Signer,
    /// Verify tokens only.
    pub token_others: Vec<Signer>,
    /// The first key encrypts cursors, all decrypt them.
    pub cursor: Vec<ServiceKey>,
    /// Hashes secrets.
    pub secret: SecretKey,
    /// Tokens that these keys have verified. Verifying one takes 14,000 instructions, a quarter of a cached page.
    verified: Arc<VerifiedTokens>,
}

/// Tokens and what they say. `Debug` redacts them.
#[derive(Default)]
struct VerifiedTokens(RwLock<HashMap<String, Grant, RandomState>>);

impl VerifiedTokens {
    fn get(&self, token: &str) -> Option<Grant> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(token).cloned()
    }

    fn insert(&self, token: &str, grant: Grant) {
        let mut tokens = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if tokens.len() >= VERIFIED_MAX {
            tokens.clear();
        }
        tokens.insert(token.to_owned(), grant);
    }
}

impl fmt::Debug for VerifiedTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

/// The store has no key for one of the purposes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the database does not contain the service's keys: restore a backup that has them")]
pub struct NoKeys;

impl KeyRing {
    /// From the keys in the store, newest first.
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
            secret: SecretKey::new(&secret.bytes),
            verified: Arc::default(),
        })
    }

    /// The caller that a token was issued to, whichever key signed it.
    pub fn verify(&self, token: &str, now: UtcInstant) -> Result<Caller, TokenError> {
        if let Some(grant) = self.verified.get(token) {
            return grant.caller(now);
        }
        let grant = Token::verify(token, std::iter::once(&self.token).chain(&self.token_others))?;
        let caller = grant.clone().caller(now)?;
        self.verified.insert(token, grant);
        Ok(caller)
    }
}

/// The keys of a purpose. The first is the one in use: the newest that is active, or the oldest if none is.
pub fn in_use_first(keys: &[ServiceKey], purpose: KeyPurpose, now: UtcInstant) -> Vec<ServiceKey> {
    let mut keys: Vec<ServiceKey> = keys.iter().filter(|key| key.purpose == purpose).cloned().collect();
    let is_active = |key: &ServiceKey| key.created_at.plus_secs(KEY_ACTIVATION_DELAY_SECS) <= now;
    let in_use = keys.iter().position(is_active).unwrap_or(keys.len().saturating_sub(1));
    if !keys.is_empty() {
        keys[..=in_use].rotate_right(1);
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;
    use batchscan_model::{ClientId, OrgId};

    fn keys_created_at(times: &[i64]) -> Vec<ServiceKey> {
        let key = |purpose, secs: i64| ServiceKey {
            kid: format!("{secs}"),
            purpose,
            bytes: [u8::try_from(secs % 251).unwrap(); 32],
            created_at: UtcInstant::EPOCH.plus_secs(secs),
        };
        let purposes = [KeyPurpose::Token, KeyPurpose::Cursor, KeyPurpose::Secret];
        purposes.into_iter().flat_map(|purpose| times.iter().map(move |secs| key(purpose, *secs))).collect()
    }

    fn key_in_use(created_at: &[i64], now: i64) -> String {
        let ring = KeyRing::new(&keys_created_at(created_at), UtcInstant::EPOCH.plus_secs(now)).unwrap();
        assert_eq!(ring.cursor.len(), created_at.len(), "all keys are kept");
        ring.cursor[0].kid.clone()
    }

    /// Decision 042.
    #[test]
    fn a_new_key_is_used_only_when_every_node_has_it() {
        assert_eq!(key_in_use(&[100], 100), "100", "the first key is used at once");
        assert_eq!(key_in_use(&[1_000, 100], 1_059), "100");
        assert_eq!(key_in_use(&[1_000, 100], 1_060), "1000");
        assert_eq!(key_in_use(&[1_010, 1_000, 100], 1_060), "1000");
    }

    #[test]
    fn a_token_signed_with_a_key_not_in_use_is_verified() {
        let now = UtcInstant::EPOCH.plus_secs(1_000);
        let caller = Caller { org: OrgId(1), client: ClientId::new("c").unwrap() };
        let one = KeyRing::new(&keys_created_at(&[1_000]), now).unwrap();
        let both = KeyRing::new(&keys_created_at(&[1_000, 100]), now).unwrap();
        let token = Token::sign(&one.token, &caller, now, 60);
        assert_eq!(both.verify(token.reveal(), now), Ok(caller.clone()));
        // Also if it was verified before.
        assert_eq!(both.verify(token.reveal(), now.plus_secs(59)), Ok(caller.clone()));
        assert_eq!(both.verify(token.reveal(), now.plus_secs(60)), Err(TokenError::Expired(caller.client)));
    }
}
