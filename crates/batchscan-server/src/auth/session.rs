//! Sessions of the dashboard, sign-in links (decision 051) and operator tokens: an id and a secret in one text.

use batchscan_model::{ClientId, ClientSecret, UtcInstant};
use batchscan_store::{OperatorRole, OperatorToken, Session};

use super::keys::KeyRing;
use super::secret::{new_secret, new_token_id, random_text};

/// An id and its secret, as in cookies, links and operator tokens: `ID.SECRET`.
#[derive(Debug)]
pub struct IdAndSecret {
    /// The id. It has the alphabet of a client id (decision 004), so that no other text reaches the store.
    pub id: ClientId,
    /// Its current secret.
    pub secret: ClientSecret,
}

impl IdAndSecret {
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

/// A new session or link, to be stored, and its secret; `None` if the random number generator failed.
pub fn new_session(
    keys: &KeyRing,
    client: ClientId,
    is_link: bool,
    expires_at: UtcInstant,
    now: UtcInstant,
) -> Option<(Session, IdAndSecret)> {
    let secret = IdAndSecret { id: ClientId::new(random_text::<12>()?)?, secret: new_secret()? };
    let session = Session {
        id: secret.id.clone(),
        client,
        is_link,
        hash: keys.hash_secret(&secret.secret),
        previous_hash: None,
        created_at: now,
        expires_at,
        last_used_at: (!is_link).then_some(now),
    };
    Some((session, secret))
}

/// A new token of the operator API, to be stored, and its secret; `None` if the random number generator failed.
pub fn new_operator_token(
    keys: &KeyRing,
    (role, org): (OperatorRole, Option<String>),
    label: String,
    expires_at: Option<UtcInstant>,
    now: UtcInstant,
) -> Option<(OperatorToken, IdAndSecret)> {
    let secret = IdAndSecret { id: ClientId::new(new_token_id()?)?, secret: new_secret()? };
    let token = OperatorToken {
        id: secret.id.clone(),
        role,
        org,
        label,
        hash: keys.hash_secret(&secret.secret),
        created_at: now,
        expires_at,
        revoked_at: None,
        last_used_at: None,
    };
    Some((token, secret))
}
