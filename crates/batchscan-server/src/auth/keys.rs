//! The service's keys, ready to use. They come from the store, so that every process shares them.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use batchscan_model::{ClientSecret, UtcInstant};
use ring::hmac;

use super::{Token, TokenRefused};
use crate::store::{KeyPurpose, ServiceKey, Tenant};

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

/// The keys in use, and the retired ones that still verify.
#[derive(Clone, Debug)]
pub struct KeyRing {
    /// Signs tokens.
    pub token: Signer,
    /// Signed tokens that may still be out.
    pub token_retired: Vec<Signer>,
    /// Seal cursors: the newest first, the others open.
    pub cursor: Vec<ServiceKey>,
    secret: hmac::Key,
}

/// A store without one of the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the database lacks the service's keys: restore a backup that has them")]
pub struct NoKeys;

impl KeyRing {
    /// From the store's keys, newest first.
    pub fn new(keys: &[ServiceKey]) -> Result<Self, NoKeys> {
        let of = |purpose| keys.iter().filter(move |key| key.purpose == purpose);
        let mut token = of(KeyPurpose::Token).map(|key| Signer::new(&key.kid, &key.bytes));
        let cursor: Vec<ServiceKey> = of(KeyPurpose::Cursor).cloned().collect();
        let secret = of(KeyPurpose::Secret).next().ok_or(NoKeys)?;
        if cursor.is_empty() {
            return Err(NoKeys);
        }
        Ok(Self {
            token: token.next().ok_or(NoKeys)?,
            token_retired: token.collect(),
            cursor,
            secret: hmac::Key::new(hmac::HMAC_SHA256, &secret.bytes),
        })
    }

    /// Who a token was issued to, whichever of the keys signed it.
    pub fn verify(&self, token: &str, now: UtcInstant) -> Result<Tenant, TokenRefused> {
        Token::verify(token, std::iter::once(&self.token).chain(&self.token_retired), now)
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
