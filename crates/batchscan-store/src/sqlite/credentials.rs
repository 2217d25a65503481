//! Credentials, their secrets' hashes, and the service's keys.

use batchscan_model::{ClientId, OrgId, UtcInstant};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};

use super::organisations::{instant, maybe_instant, org_id};
use super::{SqliteStore, WRITE_LOCK_WAIT};
use crate::{
    AdminError, Credential, CredentialInfo, KeyPurpose, KeyRotation, KnownClient, NewCredential, Rotation,
    ServiceKey, StoreError, StoredSecret, keys,
};

/// How long the note that a credential was used waits for another writer: nobody hangs on it.
const USES_LOCK_WAIT: std::time::Duration = std::time::Duration::from_secs(1);

impl SqliteStore {
    pub(crate) async fn credential(&self, client: &ClientId) -> Result<KnownClient, StoreError> {
        let client = client.clone();
        let credential = self.read(move |connection| read_credential(connection, &client)).await?;
        Ok(KnownClient { credential, is_latest: true })
    }

    pub(crate) async fn record_uses(&self, uses: Vec<(ClientId, UtcInstant)>) -> Result<(), StoreError> {
        let recorded = self.write(move |connection| {
            // An import may hold the lock for long, and a service that is told to stop must not wait for that.
            connection.busy_timeout(USES_LOCK_WAIT)?;
            let recorded = record_uses(connection, &uses);
            connection.busy_timeout(WRITE_LOCK_WAIT)?;
            recorded
        });
        recorded.await.map_err(|error| StoreError::Unreachable(error.to_string()))
    }

    pub(crate) async fn keys(&self, now: UtcInstant) -> Result<Vec<ServiceKey>, StoreError> {
        let known = self.read(|connection| read_keys(connection)).await?;
        if !known.is_empty() {
            return Ok(known);
        }
        // The first start: one process makes them, under the write lock; the others find them made.
        let made = self.write(move |connection| {
            let make = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            if read_keys(&make)?.is_empty() {
                add_keys(&make, &keys::made(&KeyPurpose::ALL, now)?)?;
            }
            let keys = read_keys(&make)?;
            make.commit()?;
            Ok(keys)
        });
        made.await.map_err(AdminError::for_a_request)
    }

    pub(crate) async fn rotate_keys(&self, rotation: KeyRotation) -> Result<Vec<ServiceKey>, AdminError> {
        self.write(move |connection| {
            let rotate = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            add_keys(&rotate, &keys::made(&keys::ROTATED, rotation.now)?)?;
            let all = read_keys(&rotate)?;
            for purpose in keys::ROTATED {
                for kid in keys::forgotten(&all, purpose, rotation.forget_before) {
                    rotate.execute("DELETE FROM service_key WHERE kid = ?1", [kid])?;
                }
            }
            let kept = read_keys(&rotate)?;
            rotate.commit()?;
            Ok(kept)
        })
        .await
    }

    pub(crate) async fn add_credential(&self, org: &str, new: NewCredential) -> Result<(), AdminError> {
        let org = org.to_owned();
        self.write(move |connection| {
            let add = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let org = org_id(&add, &org)?;
            add.execute(
                "INSERT INTO credential (client_id, org_id, label, created_at, expires_at) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![
                    new.client.as_str(),
                    org.0,
                    new.label,
                    new.now.micros(),
                    new.expires_at.map(UtcInstant::micros)
                ],
            )?;
            add_secret(&add, &new.client, &new.secret_hash, new.now)?;
            Ok(add.commit()?)
        })
        .await
    }

    pub(crate) async fn credentials(&self, org: &str) -> Result<Vec<CredentialInfo>, AdminError> {
        let org = org.to_owned();
        self.read_at_leisure(move |connection| {
            let org = org_id(connection, &org)?;
            let mut all = connection.prepare(
                "SELECT client_id, label, created_at, expires_at, revoked_at, last_used_at FROM credential
                 WHERE org_id = ?1 ORDER BY created_at, client_id",
            )?;
            let infos = all.query_map([org.0], |row| credential_info(connection, row))?;
            Ok(infos.collect::<rusqlite::Result<Vec<_>>>()?)
        })
        .await
    }

    pub(crate) async fn rotate_credential(
        &self,
        client: &ClientId,
        rotation: Rotation,
    ) -> Result<Option<UtcInstant>, AdminError> {
        let client = client.clone();
        self.write(move |connection| {
            let rotate = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            refuse_unless_alive(&rotate, &client)?;
            let (now, retire) = (rotation.now.micros(), rotation.retire_at.micros());
            let retiring = "SELECT max(retires_at) FROM secret WHERE client_id = ?1 AND retires_at > ?2";
            let ended =
                rotate.query_row(retiring, params![client.as_str(), now], |row| maybe_instant(row, 0))?;
            // Two at once and no more: what was retiring already retires now.
            let end = "DELETE FROM secret WHERE client_id = ?1 AND retires_at IS NOT NULL";
            rotate.execute(end, [client.as_str()])?;
            let retire_last = "UPDATE secret SET retires_at = max(?2, ?3) WHERE client_id = ?1";
            rotate.execute(retire_last, params![client.as_str(), now, retire])?;
            add_secret(&rotate, &client, &rotation.secret_hash, rotation.now)?;
            rotate.commit()?;
            Ok(ended)
        })
        .await
    }

    pub(crate) async fn revoke_credential(
        &self,
        client: &ClientId,
        now: UtcInstant,
    ) -> Result<(), AdminError> {
        let client = client.clone();
        self.write(move |connection| {
            let revoke = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            refuse_unless_alive(&revoke, &client)?;
            let end = "UPDATE credential SET revoked_at = ?2 WHERE client_id = ?1";
            revoke.execute(end, params![client.as_str(), now.micros()])?;
            revoke.execute("DELETE FROM secret WHERE client_id = ?1", [client.as_str()])?;
            Ok(revoke.commit()?)
        })
        .await
    }
}

fn read_credential(connection: &Connection, client: &ClientId) -> rusqlite::Result<Option<Credential>> {
    let mut find = connection.prepare_cached(
        "SELECT c.org_id, c.expires_at, c.revoked_at IS NOT NULL, s.hash, s.retires_at
         FROM credential c LEFT JOIN secret s ON s.client_id = c.client_id WHERE c.client_id = ?1",
    )?;
    let mut rows = find.query([client.as_str()])?;
    let mut found: Option<Credential> = None;
    while let Some(row) = rows.next()? {
        let (org, expires_at, revoked) = (OrgId(row.get(0)?), maybe_instant(row, 1)?, row.get(2)?);
        let credential =
            found.get_or_insert_with(|| Credential { org, expires_at, revoked, secrets: Vec::new() });
        if let Some(hash) = row.get::<_, Option<[u8; 32]>>(3)? {
            credential.secrets.push(StoredSecret { hash, retires_at: maybe_instant(row, 4)? });
        }
    }
    Ok(found)
}

fn credential_info(connection: &Connection, row: &Row<'_>) -> rusqlite::Result<CredentialInfo> {
    let id: String = row.get(0)?;
    let mut secrets =
        connection.prepare_cached("SELECT retires_at FROM secret WHERE client_id = ?1 ORDER BY id")?;
    let retirements =
        secrets.query_map([&id], |row| maybe_instant(row, 0))?.collect::<rusqlite::Result<_>>()?;
    Ok(CredentialInfo {
        client: ClientId::new(id).ok_or(rusqlite::Error::InvalidQuery)?,
        label: row.get(1)?,
        created_at: instant(row, 2)?,
        expires_at: maybe_instant(row, 3)?,
        revoked_at: maybe_instant(row, 4)?,
        last_used_at: maybe_instant(row, 5)?,
        secrets: retirements,
    })
}

fn add_secret(
    change: &Transaction<'_>,
    client: &ClientId,
    hash: &[u8; 32],
    now: UtcInstant,
) -> rusqlite::Result<()> {
    let add = "INSERT INTO secret (client_id, hash, created_at) VALUES (?1, ?2, ?3)";
    change.execute(add, params![client.as_str(), hash, now.micros()]).map(|_| ())
}

fn refuse_unless_alive(change: &Transaction<'_>, client: &ClientId) -> Result<(), AdminError> {
    let find = "SELECT revoked_at IS NOT NULL FROM credential WHERE client_id = ?1";
    match change.query_row(find, [client.as_str()], |row| row.get(0)).optional()? {
        None => Err(AdminError::NoSuchCredential(client.clone())),
        Some(true) => Err(AdminError::Revoked(client.clone())),
        Some(false) => Ok(()),
    }
}

/// The keys, newest first: the first of a purpose is the one in use, the others still verify.
pub(super) fn read_keys(connection: &Connection) -> rusqlite::Result<Vec<ServiceKey>> {
    let mut all = connection
        .prepare("SELECT kid, purpose, bytes, created_at FROM service_key ORDER BY created_at DESC, kid")?;
    let keys = all.query_map([], |row| {
        let purpose: String = row.get(1)?;
        let purpose = KeyPurpose::named(&purpose).ok_or(rusqlite::Error::InvalidQuery)?;
        Ok(ServiceKey { kid: row.get(0)?, purpose, bytes: row.get(2)?, created_at: instant(row, 3)? })
    })?;
    keys.collect()
}

pub(super) fn add_keys(change: &Transaction<'_>, keys: &[ServiceKey]) -> rusqlite::Result<()> {
    let add = "INSERT INTO service_key (kid, purpose, bytes, created_at) VALUES (?1, ?2, ?3, ?4)";
    for key in keys {
        change.execute(add, params![key.kid, key.purpose.name(), key.bytes, key.created_at.micros()])?;
    }
    Ok(())
}

fn record_uses(connection: &mut Connection, uses: &[(ClientId, UtcInstant)]) -> Result<(), AdminError> {
    let record = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for (client, at) in uses {
        let later = "UPDATE credential SET last_used_at = ?2
                     WHERE client_id = ?1 AND (last_used_at IS NULL OR last_used_at < ?2)";
        record.prepare_cached(later)?.execute(params![client.as_str(), at.micros()])?;
    }
    Ok(record.commit()?)
}
