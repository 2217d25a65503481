//! Ids and secrets: made, hashed and compared. Random bytes in an alphabet that needs no escaping (decision 004).

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use batchscan_model::{ClientId, ClientSecret};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

const CLIENT_PREFIX: &str = "bs_";
const OPERATOR_PREFIX: &str = "op_";
/// 96 random bits make ids unique without a lookup.
const ID_BYTES: usize = 12;
/// A prefix, and the bytes as base64.
const ID_CHARS: usize = CLIENT_PREFIX.len() + 16;
/// The longest label of a credential or token.
const LABEL_CHARS_MAX: usize = 100;

/// HMAC-SHA-256 of a secret. Only this is stored.
pub type SecretHash = [u8; 32];

/// Hashes secrets.
#[derive(Clone)]
pub struct SecretKey(hmac::Key);

impl SecretKey {
    /// From the bytes of a service key.
    pub fn new(bytes: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, bytes))
    }

    /// The keyed hash of a secret.
    pub fn hash(&self, secret: &ClientSecret) -> SecretHash {
        let mut hash = [0u8; 32];
        hash.copy_from_slice(hmac::sign(&self.0, secret.reveal().as_bytes()).as_ref());
        hash
    }

    /// Compares in constant time.
    pub fn is_hash_of(&self, hash: &SecretHash, secret: &ClientSecret) -> bool {
        hmac::verify(&self.0, secret.reveal().as_bytes(), hash).is_ok()
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

/// An id and its secret. In cookies, links and operator tokens they are one text: `ID.SECRET`.
#[derive(Debug)]
pub struct IdAndSecret {
    /// The id. It has the alphabet of a client id (decision 004), so that no other text reaches the store.
    pub id: ClientId,
    /// Its current secret, shown only once.
    pub secret: ClientSecret,
}

impl IdAndSecret {
    /// New ones of a client; `None` if the random number generator failed.
    pub fn of_client() -> Option<Self> {
        Self::random(CLIENT_PREFIX)
    }

    /// New ones of an operator; `None` if the random number generator failed.
    pub fn of_operator() -> Option<Self> {
        Self::random(OPERATOR_PREFIX)
    }

    pub(super) fn random(prefix: &str) -> Option<Self> {
        let id = format!("{prefix}{}", random_text::<ID_BYTES>()?);
        Some(Self { id: ClientId::new(id)?, secret: new_secret()? })
    }

    /// From the text; `None` if the id cannot be one of ours.
    pub fn parse(text: &str) -> Option<Self> {
        let (id, secret) = text.split_once('.')?;
        Some(Self { id: ClientId::new(id)?, secret: ClientSecret::new(secret) })
    }

    /// The text.
    pub fn reveal(&self) -> String {
        format!("{}.{}", self.id, self.secret.reveal())
    }
}

/// A new secret of 256 random bits; `None` if the random number generator failed.
pub fn new_secret() -> Option<ClientSecret> {
    random_text::<32>().map(ClientSecret::new)
}

fn random_text<const BYTES: usize>() -> Option<String> {
    let mut bytes = [0u8; BYTES];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(URL_SAFE_NO_PAD.encode(bytes))
}

/// Whether a text has the form of our client ids and operator tokens' ids, which no secret has.
pub fn is_issued_id(text: &str) -> bool {
    text.len() == ID_CHARS && (text.starts_with(CLIENT_PREFIX) || text.starts_with(OPERATOR_PREFIX))
}

/// Whether a text can be a label.
pub fn is_label(text: &str) -> bool {
    text.chars().count() <= LABEL_CHARS_MAX && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decision 004.
    #[test]
    fn issued_ids_and_secrets_need_no_escaping() {
        let is_plain =
            |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
        for _ in 0..100 {
            let issued = IdAndSecret::of_client().unwrap();
            assert!(is_plain(issued.id.as_str()) && is_plain(issued.secret.reveal()));
            assert_eq!(issued.secret.reveal().len(), 43, "256 bits");
        }
    }
}
