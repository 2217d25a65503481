//! Credentials, their secrets' hashes, and the service's keys.

use std::time::Duration;

use batchscan_model::{ClientId, UtcInstant};
use rusqlite::{Connection, Params, Transaction, TransactionBehavior, params};

use super::open::WRITE_LOCK_TIMEOUT;
use super::organisations::org_id;
use super::rows::query_all;
use super::store::SqliteStore;
use crate::credentials::{Credential, CredentialLookup, NewCredential, Rotation, Secret, require_changeable};
use crate::errors::{AdminError, StoreError};
use crate::keys::{self, KeyPurpose, KeyRotation, ServiceKey};
use crate::rows::{SERVICE_KEYS, add_credential, select_credentials, service_key};
use crate::types::Freshness;

/// How long recording the last use waits for another writer. It is not important.
const USES_LOCK_TIMEOUT: Duration = Duration::from_secs(1);

const BY_CLIENT: &str = select_credentials!("WHERE c.client_id = ?1 ORDER BY s.id");
const BY_ORG: &str = select_credentials!("WHERE c.org_id = ?1 ORDER BY c.created_at, c.client_id, s.id");

impl SqliteStore {
    pub(crate) async fn credential(&self, client: &ClientId) -> Result<CredentialLookup, StoreError> {
        let client = client.clone();
        let credential = self.read(move |connection| find(connection, &client)).await?;
        Ok(CredentialLookup { credential, is_latest: true })
    }

    pub(crate) async fn record_uses(&self, uses: Vec<(ClientId, UtcInstant)>) -> Result<(), StoreError> {
        let recorded = self.write(move |connection| {
            // An import can hold the lock for long, and a shutdown must not wait for that.
            connection.busy_timeout(USES_LOCK_TIMEOUT)?;
            let recorded = record_uses(connection, &uses);
            connection.busy_timeout(WRITE_LOCK_TIMEOUT)?;
            Ok(recorded?)
        });
        recorded.await.map_err(|error| StoreError::Unreachable(error.to_string()))
    }

    pub(crate) async fn keys(&self, now: UtcInstant, _: Freshness) -> Result<Vec<ServiceKey>, StoreError> {
        let known = self.read(|connection| read_keys(connection)).await?;
        if !known.is_empty() {
            return Ok(known);
        }
        // At the first start, one process creates them under the write lock, and the others find them.
        let created = self.change(move |transaction| {
            if read_keys(transaction)?.is_empty() {
                insert_keys(transaction, &keys::create(&KeyPurpose::ALL, now)?)?;
            }
            Ok(read_keys(transaction)?)
        });
        Ok(created.await?)
    }

    pub(crate) async fn rotate_keys(&self, rotation: KeyRotation) -> Result<Vec<ServiceKey>, AdminError> {
        self.change(move |transaction| {
            insert_keys(transaction, &keys::create(&KeyPurpose::ROTATED, rotation.now)?)?;
            for kid in keys::replaced_before(&read_keys(transaction)?, rotation.remove_before) {
                transaction.execute("DELETE FROM service_key WHERE kid = ?1", [kid])?;
            }
            Ok(read_keys(transaction)?)
        })
        .await
    }

    pub(crate) async fn add_credential(&self, org: &str, new: NewCredential) -> Result<(), AdminError> {
        let org = org.to_owned();
        self.change(move |transaction| {
            let org = org_id(transaction, &org)?;
            Ok(insert(transaction, &new.for_org(org))?)
        })
        .await
    }

    pub(crate) async fn credentials(&self, org: &str) -> Result<Vec<Credential>, AdminError> {
        let org = org.to_owned();
        self.read_slowly(move |connection| {
            let org = org_id(connection, &org)?;
            Ok(read(connection, BY_ORG, [org.0])?)
        })
        .await
    }

    pub(crate) async fn rotate_credential(
        &self,
        client: &ClientId,
        rotation: Rotation,
    ) -> Result<Option<UtcInstant>, AdminError> {
        let client = client.clone();
        self.change(move |transaction| {
            let mut credential = require_changeable(find(transaction, &client)?, &client)?;
            let ended = credential.old_secret_until(rotation.now);
            credential.rotate(&rotation);
            replace_secrets(transaction, &client, &credential.secrets)?;
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
        self.change(move |transaction| {
            require_changeable(find(transaction, &client)?, &client)?;
            let revoke = "UPDATE credential SET revoked_at = ?2 WHERE client_id = ?1";
            transaction.execute(revoke, params![client.as_str(), now.micros()])?;
            Ok(replace_secrets(transaction, &client, &[])?)
        })
        .await
    }
}

/// Reads credentials selected with [`select_credentials`].
pub(super) fn read(
    connection: &Connection,
    sql: &str,
    params: impl Params,
) -> Result<Vec<Credential>, StoreError> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        add_credential(&mut all, row)?;
    }
    Ok(all)
}

fn find(connection: &Connection, client: &ClientId) -> Result<Option<Credential>, StoreError> {
    Ok(read(connection, BY_CLIENT, [client.as_str()])?.pop())
}

pub(super) fn insert(transaction: &Transaction<'_>, credential: &Credential) -> rusqlite::Result<()> {
    let micros = |at: Option<UtcInstant>| at.map(UtcInstant::micros);
    let Credential { org, client, label, created_at, expires_at, revoked_at, last_used_at, secrets } =
        credential;
    transaction.execute(
        "INSERT INTO credential (client_id, org_id, label, created_at, expires_at, revoked_at, last_used_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            client.as_str(),
            org.0,
            label,
            created_at.micros(),
            micros(*expires_at),
            micros(*revoked_at),
            micros(*last_used_at)
        ],
    )?;
    replace_secrets(transaction, client, secrets)
}

fn replace_secrets(
    transaction: &Transaction<'_>,
    client: &ClientId,
    secrets: &[Secret],
) -> rusqlite::Result<()> {
    transaction.execute("DELETE FROM secret WHERE client_id = ?1", [client.as_str()])?;
    for Secret { hash, created_at, retires_at } in secrets {
        transaction.execute(
            "INSERT INTO secret (client_id, hash, created_at, retires_at) VALUES (?1, ?2, ?3, ?4)",
            params![client.as_str(), hash, created_at.micros(), retires_at.map(UtcInstant::micros)],
        )?;
    }
    Ok(())
}

pub(super) fn read_keys(connection: &Connection) -> Result<Vec<ServiceKey>, StoreError> {
    query_all(&mut connection.prepare(SERVICE_KEYS)?, [], |row| service_key(row))
}

pub(super) fn insert_keys(transaction: &Transaction<'_>, keys: &[ServiceKey]) -> rusqlite::Result<()> {
    for ServiceKey { kid, purpose, bytes, created_at } in keys {
        transaction.execute(
            "INSERT INTO service_key (kid, purpose, bytes, created_at) VALUES (?1, ?2, ?3, ?4)",
            params![kid, purpose.name(), bytes, created_at.micros()],
        )?;
    }
    Ok(())
}

fn record_uses(connection: &mut Connection, uses: &[(ClientId, UtcInstant)]) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for (client, at) in uses {
        transaction.execute(
            "UPDATE credential SET last_used_at = ?2
             WHERE client_id = ?1 AND (last_used_at IS NULL OR last_used_at < ?2)",
            params![client.as_str(), at.micros()],
        )?;
    }
    transaction.commit()
}
