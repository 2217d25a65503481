//! Credentials, their secrets' hashes, and the service's keys.

use std::time::Duration;

use batchscan_model::{ClientId, UtcInstant};
use rusqlite::{Connection, Params, Transaction, TransactionBehavior, params};

use super::open::WRITE_LOCK_TIMEOUT;
use super::organisations::org_id;
use super::rows::query_all;
use super::sessions;
use super::store::SqliteStore;
use crate::audit::{Change, keys_changed};
use crate::credentials::{Credential, CredentialLookup, NewCredential, Secret, require_changeable};
use crate::errors::{AdminError, StoreError};
use crate::keys::{self, KeyPurpose, KeyRotation, ServiceKey};
use crate::rows::{
    CREDENTIALS_BY_AGE, INSERT_CREDENTIAL, INSERT_KEY, INSERT_SECRET, SERVICE_KEYS, SET_REVOKED,
    add_credential, select_credentials, service_key,
};
use crate::types::Freshness;

/// How long recording the last use waits for another writer. It is not important.
const USES_LOCK_TIMEOUT: Duration = Duration::from_secs(1);

const BY_CLIENT: &str = select_credentials!("WHERE c.client_id = ?1 ORDER BY s.id");

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
        let created = self.change_audited(now, move |transaction| {
            let mut changes = Vec::new();
            if read_keys(transaction)?.is_empty() {
                let new = keys::create(&KeyPurpose::ALL, now)?;
                insert_keys(transaction, &new)?;
                changes = keys_changed(&new, &[]);
            }
            Ok((read_keys(transaction)?, changes))
        });
        Ok(created.await?)
    }

    pub(crate) async fn rotate_keys(&self, rotation: KeyRotation) -> Result<Vec<ServiceKey>, AdminError> {
        self.change_audited(rotation.now, move |transaction| {
            let new = keys::create(&KeyPurpose::ROTATED, rotation.now)?;
            insert_keys(transaction, &new)?;
            let replaced = keys::replaced_before(&read_keys(transaction)?, rotation.remove_before);
            for kid in &replaced {
                transaction.execute("DELETE FROM service_key WHERE kid = ?1", [kid])?;
            }
            Ok((read_keys(transaction)?, keys_changed(&new, &replaced)))
        })
        .await
    }

    pub(crate) async fn add_credential(&self, org: &str, new: NewCredential) -> Result<(), AdminError> {
        let org = org.to_owned();
        self.change_audited(new.now, move |transaction| {
            let change = Change::of("credential issue", new.client.as_str());
            let org = org_id(transaction, &org)?;
            insert(transaction, &new.for_org(org))?;
            Ok(((), vec![change]))
        })
        .await
    }

    pub(crate) async fn credentials(&self, org: &str) -> Result<Vec<Credential>, AdminError> {
        let org = org.to_owned();
        self.read_slowly(move |connection| {
            let org = org_id(connection, &org)?;
            Ok(read(connection, CREDENTIALS_BY_AGE, [org.0])?)
        })
        .await
    }

    /// Changes a credential that exists and is not revoked.
    pub(crate) async fn change_credential<T: Send + 'static>(
        &self,
        action: &'static str,
        client: &ClientId,
        now: UtcInstant,
        change: impl FnOnce(&mut Credential) -> T + Send + 'static,
    ) -> Result<T, AdminError> {
        let client = client.clone();
        self.change_audited(now, move |transaction| {
            let mut credential = require_changeable(find(transaction, &client)?, &client)?;
            let done = change(&mut credential);
            let revoked_at = credential.revoked_at.map(UtcInstant::micros);
            transaction.execute(SET_REVOKED, params![revoked_at, client.as_str()])?;
            replace_secrets(transaction, &client, &credential.secrets)?;
            if revoked_at.is_some() {
                sessions::remove_all(transaction, &client)?;
            } else if let Some(end) = credential.sessions_end() {
                sessions::shorten_all(transaction, &client, end)?;
            }
            Ok((done, vec![Change::of(action, client.as_str())]))
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
        INSERT_CREDENTIAL,
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
        let (created_at, retires_at) = (created_at.micros(), retires_at.map(UtcInstant::micros));
        transaction.execute(INSERT_SECRET, params![client.as_str(), hash, created_at, retires_at])?;
    }
    Ok(())
}

pub(super) fn read_keys(connection: &Connection) -> Result<Vec<ServiceKey>, StoreError> {
    query_all(&mut connection.prepare(SERVICE_KEYS)?, [], |row| service_key(row))
}

pub(super) fn insert_keys(transaction: &Transaction<'_>, keys: &[ServiceKey]) -> rusqlite::Result<()> {
    for ServiceKey { kid, purpose, bytes, created_at } in keys {
        transaction.execute(INSERT_KEY, params![kid, purpose.name(), bytes, created_at.micros()])?;
    }
    Ok(())
}

fn record_uses(connection: &mut Connection, uses: &[(ClientId, UtcInstant)]) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for (client, at) in uses {
        for update in [
            "UPDATE credential SET last_used_at = ?2
             WHERE client_id = ?1 AND (last_used_at IS NULL OR last_used_at < ?2)",
            "UPDATE operator_token SET last_used_at = ?2
             WHERE id = ?1 AND (last_used_at IS NULL OR last_used_at < ?2)",
        ] {
            transaction.execute(update, params![client.as_str(), at.micros()])?;
        }
    }
    transaction.commit()
}
