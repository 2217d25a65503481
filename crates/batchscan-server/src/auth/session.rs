//! Sessions of the dashboard and sign-in links (decision 051): an id and a secret in one text.

use batchscan_model::{ClientId, ClientSecret, UtcInstant};
use batchscan_store::Session;

use super::keys::KeyRing;
use super::secret::{new_secret, random_text};

/// The id and the secret of a session, as in the cookie and in links: `ID.SECRET`.
#[derive(Debug)]
pub struct SessionSecret {
    /// The id of the session.
    pub id: String,
    /// Its current secret.
    pub secret: ClientSecret,
}

impl SessionSecret {
    /// From the text.
    pub fn parse(text: &str) -> Option<Self> {
        let (id, secret) = text.split_once('.')?;
        Some(Self { id: id.to_owned(), secret: ClientSecret::new(secret.to_owned()) })
    }

    /// The text.
    pub fn reveal(&self) -> String {
        format!("{}.{}", self.id, self.secret.reveal())
    }
}

/// A new session or link, to be stored, and its secret; `None` if the system has no random numbers.
pub fn new_session(
    keys: &KeyRing,
    client: ClientId,
    is_link: bool,
    expires_at: UtcInstant,
    now: UtcInstant,
) -> Option<(Session, SessionSecret)> {
    let secret = SessionSecret { id: random_text::<12>()?, secret: new_secret()? };
    let session = Session {
        id: secret.id.clone(),
        client,
        is_link,
        hash: keys.hash_secret(&secret.secret),
        previous_hash: None,
        created_at: now,
        expires_at,
        last_used_at: None,
    };
    Some((session, secret))
}
