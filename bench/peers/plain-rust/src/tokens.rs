//! Signs and verifies access tokens. Knows nothing about HTTP.

use std::time::{SystemTime, UNIX_EPOCH};

use jsonwebtoken::{DecodingKey, EncodingKey, Header, Validation, errors};
use ring::error::Unspecified;
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};

/// Lifetime of a token.
pub(crate) const TOKEN_SECS: u64 = 3_600;

/// The signing key, which lives as long as the process.
pub(crate) struct Tokens {
    signing: EncodingKey,
    verifying: DecodingKey,
    validation: Validation,
}

#[derive(Serialize, Deserialize)]
struct Claims {
    sub: String,
    org: String,
    exp: u64,
}

impl Tokens {
    /// Generates a key.
    pub(crate) fn new() -> Result<Self, Unspecified> {
        let mut secret = [0; 32];
        SystemRandom::new().fill(&mut secret)?;
        let (signing, verifying) = (EncodingKey::from_secret(&secret), DecodingKey::from_secret(&secret));
        Ok(Self { signing, verifying, validation: Validation::default() })
    }

    /// Issues a token for a client of an organisation.
    pub(crate) fn issue(&self, client: String, organisation: String) -> errors::Result<String> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let claims = Claims { sub: client, org: organisation, exp: now + TOKEN_SECS };
        jsonwebtoken::encode(&Header::default(), &claims, &self.signing)
    }

    /// The organisation of a valid token.
    pub(crate) fn verify(&self, token: &str) -> errors::Result<String> {
        let decoded = jsonwebtoken::decode::<Claims>(token, &self.verifying, &self.validation);
        decoded.map(|token| token.claims.org)
    }
}
