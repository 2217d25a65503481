//! Encrypts what clients keep for the service: cursors and positions in the changes. Knows nothing about HTTP and keeps no
//! state.
//!
//! Encrypted and authenticated with ChaCha20-Poly1305, with the organisation as associated data: what one organisation
//! has is invalid for another. The nonce is a keyed hash of the content, so equal contents have equal texts on every node,
//! and no nonce is used for two contents.

use std::marker::PhantomData;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use batchscan_model::OrgId;
use batchscan_store::ServiceKey;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;

/// Texts are shorter than this (decision 022); a longer one is rejected without decoding it.
const TEXT_BYTES_MAX: usize = 512;

/// What can be encrypted.
pub trait Content: Sized {
    /// Its name, from which keys are derived.
    const NAME: &str;

    /// As bytes.
    fn encode(&self) -> Vec<u8>;

    /// From bytes, if they are valid.
    fn decode(content: &[u8]) -> Option<Self>;
}

/// Encrypts and decrypts contents of one kind.
pub struct Cipher<C> {
    keys: Vec<CipherKey>,
    content: PhantomData<C>,
}

struct CipherKey {
    aead: LessSafeKey,
    nonces: hmac::Key,
}

impl<C: Content> Cipher<C> {
    /// The first key encrypts, all keys decrypt.
    pub fn new(keys: &[ServiceKey]) -> Self {
        let cipher_key = |key: &ServiceKey| {
            // One stored key, several purposes: derive a key for each.
            let root = hmac::Key::new(hmac::HMAC_SHA256, &key.bytes);
            let derive = |what| hmac::sign(&root, format!("batchscan {} {what}", C::NAME).as_bytes());
            let aead = UnboundKey::new(&CHACHA20_POLY1305, derive("sealing").as_ref()).ok()?;
            Some(CipherKey {
                aead: LessSafeKey::new(aead),
                nonces: hmac::Key::new(hmac::HMAC_SHA256, derive("nonces").as_ref()),
            })
        };
        Self { keys: keys.iter().filter_map(cipher_key).collect(), content: PhantomData }
    }

    /// The content as URL-safe text.
    pub fn encrypt(&self, org: OrgId, content: &C) -> Option<String> {
        let key = self.keys.first()?;
        let mut content = content.encode();
        let org = org.0.to_be_bytes();
        let mut nonce = [0u8; NONCE_LEN];
        let digest = hmac::sign(&key.nonces, &[&org, content.as_slice()].concat());
        nonce.copy_from_slice(&digest.as_ref()[..NONCE_LEN]);
        let unique = Nonce::assume_unique_for_key(nonce);
        key.aead.seal_in_place_append_tag(unique, Aad::from(org), &mut content).ok()?;
        Some(URL_SAFE_NO_PAD.encode([nonce.as_slice(), &content].concat()))
    }

    /// The content, if the text was encrypted with one of the keys for this organisation.
    pub fn decrypt(&self, org: OrgId, text: &str) -> Option<C> {
        if text.len() >= TEXT_BYTES_MAX {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (nonce, encrypted) = bytes.split_first_chunk::<NONCE_LEN>()?;
        self.keys.iter().find_map(|key| {
            let mut content = encrypted.to_vec();
            let org = Aad::from(org.0.to_be_bytes());
            let nonce = Nonce::assume_unique_for_key(*nonce);
            C::decode(key.aead.open_in_place(nonce, org, &mut content).ok()?)
        })
    }
}

impl<C> std::fmt::Debug for Cipher<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cipher").field("keys", &self.keys.len()).finish()
    }
}
