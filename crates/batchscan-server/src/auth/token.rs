//! Signs and verifies access tokens: JSON Web Tokens with HS256.
//!
//! The header of a token is compared with the header that this service writes, byte for byte, and never parsed. So an
//! attacker cannot choose the algorithm, and nothing in a token is parsed before its signature is verified.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use batchscan_model::{ClientId, OrgId, UtcInstant};
use batchscan_store::Caller;
use ring::hmac;
use serde::{Deserialize, Serialize};

/// Our tokens are not longer, unless an id is.
const TOKEN_BYTES_TYPICAL: usize = 256;
/// A longer text is rejected without hashing it.
const TOKEN_BYTES_MAX: usize = 1_024;

/// The start of every header, up to the id of the key.
const HEADER_START: &str = r#"{"alg":"HS256","typ":"JWT","kid":""#;

/// A key that signs tokens.
#[derive(Clone)]
pub struct Signer {
    /// The first part of every token that it signs: it contains the id of the key.
    header: String,
    key: hmac::Key,
}

impl Signer {
    /// The signing key with this id.
    pub fn new(kid: &str, bytes: &[u8; 32]) -> Self {
        let header = format!("{HEADER_START}{kid}\"}}");
        Self { header: URL_SAFE_NO_PAD.encode(header), key: hmac::Key::new(hmac::HMAC_SHA256, bytes) }
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").field("header", &self.header).finish_non_exhaustive()
    }
}

/// An access token. `Debug` redacts it.
#[derive(Clone)]
pub struct Token(String);

/// Why a token is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenError {
    /// It was not issued by this service.
    Invalid,
    /// It names a key that this process does not have, or has not read yet.
    UnknownKey,
    /// Its lifetime is over. It was issued to this client.
    Expired(ClientId),
}

#[derive(Serialize, Deserialize)]
struct Claims<'a> {
    /// The client id.
    sub: &'a str,
    org: i64,
    iat: i64,
    exp: i64,
}

impl Token {
    /// Signs a token.
    pub fn sign(key: &Signer, caller: &Caller, now: UtcInstant, ttl_secs: i64) -> Self {
        let claims = Claims {
            sub: caller.client.as_str(),
            org: caller.org.0,
            iat: now.secs(),
            exp: now.secs().saturating_add(ttl_secs),
        };
        let mut text = String::with_capacity(TOKEN_BYTES_TYPICAL);
        text.push_str(&key.header);
        text.push('.');
        URL_SAFE_NO_PAD.encode_string(serde_json::to_vec(&claims).unwrap_or_default(), &mut text);
        let signature = hmac::sign(&key.key, text.as_bytes());
        text.push('.');
        URL_SAFE_NO_PAD.encode_string(signature, &mut text);
        Self(text)
    }

    /// What a token says, if one of the keys signed it.
    pub fn verify<'k>(text: &str, keys: impl IntoIterator<Item = &'k Signer>) -> Result<Grant, TokenError> {
        let (signed, signature) = text.rsplit_once('.').ok_or(TokenError::Invalid)?;
        let (head, payload) = signed.split_once('.').ok_or(TokenError::Invalid)?;
        if text.len() > TOKEN_BYTES_MAX {
            return Err(TokenError::Invalid);
        }
        let key = keys.into_iter().find(|key| key.header == head).ok_or_else(|| unknown_key(head))?;
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| TokenError::Invalid)?;
        hmac::verify(&key.key, signed.as_bytes(), &signature).map_err(|_| TokenError::Invalid)?;
        let payload = URL_SAFE_NO_PAD.decode(payload).map_err(|_| TokenError::Invalid)?;
        let claims: Claims<'_> = serde_json::from_slice(&payload).map_err(|_| TokenError::Invalid)?;
        let client = ClientId::new(claims.sub).ok_or(TokenError::Invalid)?;
        Ok(Grant { caller: Caller { org: OrgId(claims.org), client }, expires_secs: claims.exp })
    }

    /// The token as text.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

/// What a token says: to whom it was issued, and until when.
#[derive(Clone, Debug)]
pub struct Grant {
    caller: Caller,
    expires_secs: i64,
}

impl Grant {
    /// The caller, until the token expires. There is no leeway (decision 008).
    pub fn caller(self, now: UtcInstant) -> Result<Caller, TokenError> {
        match now.secs() < self.expires_secs {
            true => Ok(self.caller),
            false => Err(TokenError::Expired(self.caller.client)),
        }
    }
}

/// A header like ours means that another process may have the key.
fn unknown_key(header: &str) -> TokenError {
    let is_like_ours = |text: Vec<u8>| text.starts_with(HEADER_START.as_bytes());
    if URL_SAFE_NO_PAD.decode(header).is_ok_and(is_like_ours) {
        TokenError::UnknownKey
    } else {
        TokenError::Invalid
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(kid: &str, byte: u8) -> Signer {
        Signer::new(kid, &[byte; 32])
    }

    fn caller() -> Caller {
        Caller { org: OrgId(7), client: ClientId::new("bs_a").unwrap() }
    }

    fn at(secs: i64) -> UtcInstant {
        UtcInstant::EPOCH.plus_secs(secs)
    }

    fn verify(text: &str, keys: &[Signer], now: UtcInstant) -> Result<Caller, TokenError> {
        Token::verify(text, keys)?.caller(now)
    }

    /// Decision 008: no leeway.
    #[test]
    fn a_token_verifies_as_its_caller_until_the_second_of_its_expiry() {
        let keys = [key("k1", 1)];
        let token = Token::sign(&keys[0], &caller(), at(100), 60);
        for (secs, expected) in
            [(100, Ok(caller())), (159, Ok(caller())), (160, Err(TokenError::Expired(caller().client)))]
        {
            assert_eq!(verify(token.reveal(), &keys, at(secs)), expected);
        }
    }

    #[test]
    fn a_retired_key_still_verifies_and_an_unknown_one_does_not() {
        let old = Token::sign(&key("k1", 1), &caller(), at(0), 60);
        assert!(verify(old.reveal(), &[key("k2", 2), key("k1", 1)], at(1)).is_ok());
        for (key, error) in [(key("k1", 2), TokenError::Invalid), (key("k2", 1), TokenError::UnknownKey)] {
            assert_eq!(verify(old.reveal(), &[key], at(1)), Err(error));
        }
    }

    /// Decision 009.
    #[test]
    fn another_algorithm_is_never_accepted() {
        let keys = [key("k1", 1)];
        let token = Token::sign(&keys[0], &caller(), at(0), 60);
        let payload = token.reveal().split('.').nth(1).unwrap();
        for alg in ["none", "None", "HS384", "RS256", ""] {
            let head = URL_SAFE_NO_PAD.encode(format!(r#"{{"alg":"{alg}","typ":"JWT","kid":"k1"}}"#));
            let signed = format!("{head}.{payload}");
            let signature = URL_SAFE_NO_PAD.encode(hmac::sign(&keys[0].key, signed.as_bytes()));
            for text in [format!("{signed}."), format!("{signed}.{signature}")] {
                assert_eq!(verify(&text, &keys, at(1)), Err(TokenError::Invalid), "{alg}");
            }
        }
    }

    proptest! {
        /// Decision 009.
        #[test]
        fn a_modified_token_is_rejected(index in 0usize..200, to in "[A-Za-z0-9_.-]") {
            let keys = [key("k1", 1)];
            let token = Token::sign(&keys[0], &caller(), at(0), 60);
            let mut forged: Vec<char> = token.reveal().chars().collect();
            let index = index % forged.len();
            forged[index] = to.chars().next().unwrap();
            let forged: String = forged.into_iter().collect();
            prop_assume!(forged != token.reveal());
            prop_assert!(verify(&forged, &keys, at(1)).is_err());
        }

        #[test]
        fn no_text_causes_a_panic(text in "(?s).{0,80}|[A-Za-z0-9_-]{0,40}\\.[A-Za-z0-9_-]{0,40}\\.[A-Za-z0-9_-]{0,44}") {
            prop_assert!(verify(&text, &[key("k1", 1)], at(1)).is_err());
        }
    }
}
