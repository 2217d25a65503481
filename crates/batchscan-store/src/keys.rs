//! The service's keys as a store makes and names them.

use batchscan_model::UtcInstant;
use ring::rand::{SecureRandom, SystemRandom};

use crate::{KeyPurpose, ServiceKey, StoreError};

const PURPOSES: [(KeyPurpose, &str); 3] =
    [(KeyPurpose::Token, "token"), (KeyPurpose::Cursor, "cursor"), (KeyPurpose::Secret, "secret")];

/// Keys that may be followed by new ones. The one that hashes secrets may not: it would end every credential.
pub(super) const ROTATED: [KeyPurpose; 2] = [KeyPurpose::Token, KeyPurpose::Cursor];

impl KeyPurpose {
    /// All of them.
    pub(super) const ALL: [KeyPurpose; 3] = [KeyPurpose::Token, KeyPurpose::Cursor, KeyPurpose::Secret];

    /// What it is called in the database, and to operators.
    pub fn name(self) -> &'static str {
        PURPOSES.iter().find(|(purpose, _)| *purpose == self).map_or("", |(_, name)| *name)
    }

    /// The purpose of that name.
    pub(super) fn named(name: &str) -> Option<Self> {
        PURPOSES.iter().find(|(_, known)| *known == name).map(|(purpose, _)| *purpose)
    }
}

/// A new key of each purpose.
pub(super) fn made(purposes: &[KeyPurpose], now: UtcInstant) -> Result<Vec<ServiceKey>, StoreError> {
    let make = |purpose: &KeyPurpose| {
        let (name, bytes) = (random::<4>()?, random::<32>()?);
        let kid = format!("{:08x}", u32::from_be_bytes(name));
        Ok(ServiceKey { kid, purpose: *purpose, bytes, created_at: now })
    };
    purposes.iter().map(make).collect()
}

/// The names of the keys of a purpose that were followed by another before that instant. The newest stays in any case.
pub(super) fn forgotten(keys: &[ServiceKey], purpose: KeyPurpose, before: UtcInstant) -> Vec<String> {
    let of_purpose: Vec<&ServiceKey> = keys.iter().filter(|key| key.purpose == purpose).collect();
    let follows =
        |(newer, older): (&&ServiceKey, &&ServiceKey)| (newer.created_at < before).then(|| older.kid.clone());
    of_purpose.iter().zip(of_purpose.iter().skip(1)).filter_map(follows).collect()
}

/// A number that no version had before.
pub(super) fn new_mark() -> Result<i64, StoreError> {
    random::<8>().map(i64::from_be_bytes)
}

fn random<const N: usize>() -> Result<[u8; N], StoreError> {
    let mut bytes = [0u8; N];
    let no_randomness = |_| StoreError::Broken("the system gives no random numbers".into());
    SystemRandom::new().fill(&mut bytes).map_err(no_randomness)?;
    Ok(bytes)
}
