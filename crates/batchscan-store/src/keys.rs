//! The service's keys: what they are for, how they are created and when they are removed.

use std::fmt;

use batchscan_model::UtcInstant;
use ring::rand::{SecureRandom, SystemRandom};

use crate::errors::StoreError;

/// What a key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyPurpose {
    /// Signs access tokens.
    Token,
    /// Encrypts cursors.
    Cursor,
    /// Hashes client secrets.
    Secret,
}

impl KeyPurpose {
    pub(crate) const ALL: [KeyPurpose; 3] = [KeyPurpose::Token, KeyPurpose::Cursor, KeyPurpose::Secret];
    /// The purposes whose keys are rotated. A new key for secrets would invalidate every credential.
    pub(crate) const ROTATED: [KeyPurpose; 2] = [KeyPurpose::Token, KeyPurpose::Cursor];

    /// The name in the database and for operators.
    pub fn name(self) -> &'static str {
        match self {
            KeyPurpose::Token => "token",
            KeyPurpose::Cursor => "cursor",
            KeyPurpose::Secret => "secret",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|purpose| purpose.name() == name)
    }
}

/// A key shared by all processes on the database.
#[derive(Clone)]
pub struct ServiceKey {
    /// The key id.
    pub kid: String,
    /// What it is for.
    pub purpose: KeyPurpose,
    /// The key.
    pub bytes: [u8; 32],
    /// When it was created.
    pub created_at: UtcInstant,
}

impl fmt::Debug for ServiceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kid, purpose, .. } = self;
        f.debug_struct("ServiceKey").field("kid", kid).field("purpose", purpose).finish_non_exhaustive()
    }
}

/// A rotation of the service's keys.
#[derive(Clone, Copy, Debug)]
pub struct KeyRotation {
    /// The current time.
    pub now: UtcInstant,
    /// Keys that were replaced before this time are removed.
    pub remove_before: UtcInstant,
}

/// Creates one key for each purpose.
pub(crate) fn create(purposes: &[KeyPurpose], now: UtcInstant) -> Result<Vec<ServiceKey>, StoreError> {
    let create = |purpose: &KeyPurpose| {
        let kid = format!("{:08x}", u32::from_be_bytes(random()?));
        Ok(ServiceKey { kid, purpose: *purpose, bytes: random()?, created_at: now })
    };
    purposes.iter().map(create).collect()
}

/// The ids of the rotated keys that were replaced before that time. `keys` are ordered from new to old.
pub(crate) fn replaced_before(keys: &[ServiceKey], before: UtcInstant) -> Vec<String> {
    let mut replaced = Vec::new();
    for purpose in KeyPurpose::ROTATED {
        let keys: Vec<&ServiceKey> = keys.iter().filter(|key| key.purpose == purpose).collect();
        let pairs = keys.windows(2).filter(|pair| pair[0].created_at < before);
        replaced.extend(pairs.map(|pair| pair[1].kid.clone()));
    }
    replaced
}

/// A random number for [`crate::DataVersion::mark`].
pub(crate) fn random_mark() -> Result<i64, StoreError> {
    random().map(i64::from_be_bytes)
}

fn random<const N: usize>() -> Result<[u8; N], StoreError> {
    let mut bytes = [0u8; N];
    let failed = |_| StoreError::Broken("the system's random number generator failed".into());
    SystemRandom::new().fill(&mut bytes).map_err(failed)?;
    Ok(bytes)
}
