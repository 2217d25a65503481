//! Issues and verifies access tokens: JSON Web Tokens signed with HS256.
//!
//! The header of a token is compared with the one this service writes, byte for byte, and never interpreted. So
//! there is no algorithm to choose and none to confuse, which is where JWT libraries have gone wrong; and nothing
//! of a token is parsed before its signature is found good.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use batchscan_model::{ClientId, OrgId, UtcInstant};
use ring::hmac;
use serde::{Deserialize, Serialize};

use super::Signer;
use batchscan_store::Caller;

/// Ours are some 250 bytes. A longer text is not hashed at all.
const TOKEN_BYTES_MAX: usize = 1_024;

/// An access token. `Debug` hides it.
#[derive(Clone)]
pub struct Token(String);

/// Why a token is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenRefused {
    /// Not a token of this service.
    Invalid,
    /// It was one.
    Expired,
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
    pub fn sign(key: &Signer, tenant: &Caller, now: UtcInstant, lives_secs: i64) -> Self {
        let claims = Claims {
            sub: tenant.client.as_str(),
            org: tenant.org.0,
            iat: now.secs(),
            exp: now.secs().saturating_add(lives_secs),
        };
        let mut text = key.header.clone();
        text.push('.');
        URL_SAFE_NO_PAD.encode_string(serde_json::to_vec(&claims).unwrap_or_default(), &mut text);
        let signature = hmac::sign(&key.key, text.as_bytes());
        text.push('.');
        URL_SAFE_NO_PAD.encode_string(signature, &mut text);
        Self(text)
    }

    /// Who a token was issued to, if it is ours and has not expired. No leeway (decision 008).
    pub fn verify<'k>(
        text: &str,
        keys: impl IntoIterator<Item = &'k Signer>,
        now: UtcInstant,
    ) -> Result<Caller, TokenRefused> {
        let (signed, signature) = text.rsplit_once('.').ok_or(TokenRefused::Invalid)?;
        let (head, payload) = signed.split_once('.').ok_or(TokenRefused::Invalid)?;
        if text.len() > TOKEN_BYTES_MAX {
            return Err(TokenRefused::Invalid);
        }
        let key = keys.into_iter().find(|key| key.header == head).ok_or(TokenRefused::Invalid)?;
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| TokenRefused::Invalid)?;
        hmac::verify(&key.key, signed.as_bytes(), &signature).map_err(|_| TokenRefused::Invalid)?;
        let payload = URL_SAFE_NO_PAD.decode(payload).map_err(|_| TokenRefused::Invalid)?;
        let claims: Claims<'_> = serde_json::from_slice(&payload).map_err(|_| TokenRefused::Invalid)?;
        if now.secs() >= claims.exp {
            return Err(TokenRefused::Expired);
        }
        let client = ClientId::new(claims.sub).ok_or(TokenRefused::Invalid)?;
        Ok(Caller { org: OrgId(claims.org), client })
    }

    /// The token itself: for the client it is issued to.
    pub fn reveal(&self) -> &str {
        &self.0
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

    fn tenant() -> Caller {
        Caller { org: OrgId(7), client: ClientId::new("bs_a").unwrap() }
    }

    fn at(secs: i64) -> UtcInstant {
        UtcInstant::EPOCH.plus_secs(secs)
    }

    #[test]
    fn a_token_opens_what_it_was_issued_for() {
        let keys = [key("k1", 1)];
        let token = Token::sign(&keys[0], &tenant(), at(100), 60);
        assert_eq!(Token::verify(token.reveal(), &keys, at(100)), Ok(tenant()));
    }

    /// Decision 008: no leeway.
    #[test]
    fn a_token_is_dead_in_the_second_of_its_expiry() {
        let keys = [key("k1", 1)];
        let token = Token::sign(&keys[0], &tenant(), at(100), 60);
        assert!(Token::verify(token.reveal(), &keys, at(159)).is_ok());
        assert_eq!(Token::verify(token.reveal(), &keys, at(160)), Err(TokenRefused::Expired));
    }

    #[test]
    fn a_retired_key_still_verifies_and_a_foreign_one_does_not() {
        let old = Token::sign(&key("k1", 1), &tenant(), at(0), 60);
        assert!(Token::verify(old.reveal(), &[key("k2", 2), key("k1", 1)], at(1)).is_ok());
        for keys in [[key("k1", 2)], [key("k2", 1)]] {
            assert_eq!(Token::verify(old.reveal(), &keys, at(1)), Err(TokenRefused::Invalid));
        }
    }

    /// Decision 009.
    #[test]
    fn another_algorithm_or_none_is_never_accepted() {
        let keys = [key("k1", 1)];
        let token = Token::sign(&keys[0], &tenant(), at(0), 60);
        let payload = token.reveal().split('.').nth(1).unwrap();
        for alg in ["none", "None", "HS384", "RS256", ""] {
            let head = URL_SAFE_NO_PAD.encode(format!(r#"{{"alg":"{alg}","typ":"JWT","kid":"k1"}}"#));
            let signed = format!("{head}.{payload}");
            let signature = URL_SAFE_NO_PAD.encode(hmac::sign(&keys[0].key, signed.as_bytes()));
            for text in [format!("{signed}."), format!("{signed}.{signature}")] {
                assert_eq!(Token::verify(&text, &keys, at(1)), Err(TokenRefused::Invalid), "{alg}");
            }
        }
    }

    proptest! {
        /// Decision 009.
        #[test]
        fn a_token_changed_anywhere_is_refused(place in 0usize..200, to in "[A-Za-z0-9_.-]") {
            let keys = [key("k1", 1)];
            let token = Token::sign(&keys[0], &tenant(), at(0), 60);
            let mut forged: Vec<char> = token.reveal().chars().collect();
            let place = place % forged.len();
            forged[place] = to.chars().next().unwrap();
            let forged: String = forged.into_iter().collect();
            prop_assume!(forged != token.reveal());
            prop_assert_eq!(Token::verify(&forged, &keys, at(1)), Err(TokenRefused::Invalid));
        }

        #[test]
        fn no_text_makes_it_panic(text in "(?s).{0,80}|[A-Za-z0-9_-]{0,40}\\.[A-Za-z0-9_-]{0,40}\\.[A-Za-z0-9_-]{0,44}") {
            prop_assert!(Token::verify(&text, &[key("k1", 1)], at(1)).is_err());
        }
    }
}
