//! The service's keys: what they are for, how they are created, rotated and removed.

use std::fmt;

use batchscan_model::UtcInstant;
use ring::rand::{SecureRandom, SystemRandom};

use crate::change::Change;
use crate::errors::{AdminError, StoreError};
use crate::sql::{Columns, Sql, invalid, values};
use crate::store::Store;
use crate::types::Freshness;

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
    const ALL: [KeyPurpose; 3] = [KeyPurpose::Token, KeyPurpose::Cursor, KeyPurpose::Secret];
    /// The purposes whose keys are rotated. A new key for secrets would invalidate every credential.
    const ROTATED: [KeyPurpose; 2] = [KeyPurpose::Token, KeyPurpose::Cursor];

    /// The name in the database and for operators.
    pub fn name(self) -> &'static str {
        match self {
            KeyPurpose::Token => "token",
            KeyPurpose::Cursor => "cursor",
            KeyPurpose::Secret => "secret",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
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

const SELECT: &str = "SELECT kid, purpose, bytes, created_at FROM service_key ORDER BY created_at DESC, kid";

impl Store {
    /// The service's keys, newest first. Creates them if there are none.
    pub async fn keys(&self, now: UtcInstant) -> Result<Vec<ServiceKey>, StoreError> {
        self.keys_of(Freshness::Any, now).await
    }

    /// The same from the primary: a standby may lack a key that is in use.
    pub async fn latest_keys(&self, now: UtcInstant) -> Result<Vec<ServiceKey>, StoreError> {
        self.keys_of(Freshness::Latest, now).await
    }

    async fn keys_of(&self, freshness: Freshness, now: UtcInstant) -> Result<Vec<ServiceKey>, StoreError> {
        let known = self.read(freshness, SELECT, &[], service_key).await?;
        if !known.is_empty() {
            return Ok(known);
        }
        // At the first start, one process creates them under the lock, and the others find them.
        let created = self.change(now, async move |sql| {
            sql.run(sql.dialect().lock_keys).await?;
            let mut new = Vec::new();
            if read(sql).await?.is_empty() {
                new = create(&KeyPurpose::ALL, now)?;
                insert(sql, &new).await?;
            }
            Ok((read(sql).await?, changes(&new, &[])))
        });
        Ok(created.await?)
    }

    /// Creates new keys for tokens and cursors, and removes old ones.
    pub async fn rotate_keys(&self, rotation: KeyRotation) -> Result<Vec<ServiceKey>, AdminError> {
        self.change(rotation.now, async move |sql| {
            sql.run(sql.dialect().lock_keys).await?;
            let new = create(&KeyPurpose::ROTATED, rotation.now)?;
            insert(sql, &new).await?;
            let replaced = replaced_before(&read(sql).await?, rotation.remove_before);
            for kid in &replaced {
                sql.execute("DELETE FROM service_key WHERE kid = $1", values![kid]).await?;
            }
            Ok((read(sql).await?, changes(&new, &replaced)))
        })
        .await
    }
}

async fn read(sql: &mut dyn Sql) -> Result<Vec<ServiceKey>, AdminError> {
    sql.all(SELECT, &[], service_key).await
}

async fn insert(sql: &mut dyn Sql, keys: &[ServiceKey]) -> Result<(), AdminError> {
    let insert = "INSERT INTO service_key (kid, purpose, bytes, created_at) VALUES ($1, $2, $3, $4)";
    for ServiceKey { kid, purpose, bytes, created_at } in keys {
        sql.execute(insert, values![kid, purpose.name(), bytes, *created_at]).await?;
    }
    Ok(())
}

fn service_key(row: &dyn Columns) -> Result<ServiceKey, StoreError> {
    Ok(ServiceKey {
        kid: row.string(0)?,
        purpose: row.text(1)?.and_then(KeyPurpose::from_name).ok_or_else(|| invalid("purpose of a key"))?,
        bytes: row.hash(2)?,
        created_at: row.instant(3)?,
    })
}

/// For the audit log; `removed` are ids.
fn changes(created: &[ServiceKey], removed: &[String]) -> Vec<Change> {
    let create = |key: &ServiceKey| Change::new("key create", &key.kid).detail(key.purpose.name().to_owned());
    let remove = |id: &String| Change::new("key remove", id);
    created.iter().map(create).chain(removed.iter().map(remove)).collect()
}

/// Creates one key for each purpose.
fn create(purposes: &[KeyPurpose], now: UtcInstant) -> Result<Vec<ServiceKey>, StoreError> {
    let create = |purpose: &KeyPurpose| {
        let kid = format!("{:08x}", u32::from_be_bytes(random()?));
        Ok(ServiceKey { kid, purpose: *purpose, bytes: random()?, created_at: now })
    };
    purposes.iter().map(create).collect()
}

/// The ids of the rotated keys that were replaced before that time. `keys` are ordered from new to old.
fn replaced_before(keys: &[ServiceKey], before: UtcInstant) -> Vec<String> {
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
