//! Credentials, their secrets' hashes, and the service's keys.

use std::time::Duration;

use batchscan_model::{ClientId, OrgId, UtcInstant};
use deadpool_postgres::Transaction;
use tokio_postgres::{Client, Row};

use super::failure::Failure;
use super::organisations::{lock_org, org_id};
use super::rows::params;
use super::sessions;
use super::store::{PostgresStore, on_any_host};
use crate::audit::{Change, keys_changed};
use crate::credentials::{Credential, CredentialLookup, NewCredential, Secret, require_changeable};
use crate::errors::{AdminError, StoreError};
use crate::keys::{self, KeyPurpose, KeyRotation, ServiceKey};
use crate::rows::{
    self, CREDENTIALS_BY_AGE, INSERT_CREDENTIAL, INSERT_KEY, INSERT_SECRET, SERVICE_KEYS, SET_REVOKED,
    select_credentials,
};
use crate::types::Freshness;

/// How long recording the last use may take. It is not important, and the next use is recorded again.
const USES_TIMEOUT: Duration = Duration::from_secs(2);

/// Always returns a row, which says whether this host is a standby.
const LOOKUP: &str = select_credentials!(
    ", pg_is_in_recovery()",
    "FROM (SELECT) AS one LEFT JOIN credential c ON c.client_id = $1
     LEFT JOIN secret s ON s.client_id = c.client_id ",
    "ORDER BY s.id"
);
/// Locks the credential until the end of the transaction.
const LOCK: &str = select_credentials!("WHERE c.client_id = $1 ORDER BY s.id FOR UPDATE OF c");

impl PostgresStore {
    pub(crate) async fn credential(
        &self,
        client: &ClientId,
        freshness: Freshness,
    ) -> Result<CredentialLookup, StoreError> {
        Ok(on_any_host!(self, freshness, |connection| look_up(connection, client)))
    }

    pub(crate) async fn record_uses(&self, uses: Vec<(ClientId, UtcInstant)>) -> Result<(), StoreError> {
        let (clients, times): (Vec<String>, Vec<i64>) =
            uses.into_iter().map(|(client, at)| (client.as_str().to_owned(), at.micros())).unzip();
        // Ordered by id, so that two nodes do not deadlock.
        let update = "UPDATE credential SET last_used_at = later.at
                      FROM (SELECT c.client_id, used.at FROM unnest($1::text[], $2::bigint[]) AS used (id, at)
                            JOIN credential c ON c.client_id = used.id
                            WHERE c.last_used_at IS NULL OR c.last_used_at < used.at
                            ORDER BY c.client_id FOR NO KEY UPDATE OF c) AS later
                      WHERE credential.client_id = later.client_id";
        let update_tokens = "UPDATE operator_token SET last_used_at = later.at
             FROM (SELECT t.id, used.at FROM unnest($1::text[], $2::bigint[]) AS used (id, at)
                   JOIN operator_token t ON t.id = used.id
                   WHERE t.last_used_at IS NULL OR t.last_used_at < used.at
                   ORDER BY t.id FOR NO KEY UPDATE OF t) AS later
             WHERE operator_token.id = later.id";
        let record = async {
            let lease = self.hosts.route(Freshness::Latest).next().await?;
            for update in [update, update_tokens] {
                let params = params![TEXT_ARRAY: clients, INT8_ARRAY: times];
                lease.execute_typed(update, &params).await.map_err(Failure::from)?;
            }
            lease.release();
            Ok(())
        };
        let timed_out = |_| StoreError::Unreachable("timed out recording the last use".into());
        tokio::time::timeout(USES_TIMEOUT, record).await.map_err(timed_out)?
    }

    pub(crate) async fn keys(
        &self,
        now: UtcInstant,
        freshness: Freshness,
    ) -> Result<Vec<ServiceKey>, StoreError> {
        let known = on_any_host!(self, freshness, |connection| read_keys(connection));
        if !known.is_empty() {
            return Ok(known);
        }
        // At the first start, one process creates them under a lock, and the others find them.
        let created = self.change_keys(now, async |transaction| {
            if read_keys(transaction.client()).await?.is_empty() {
                let new = keys::create(&KeyPurpose::ALL, now)?;
                insert_keys(transaction, &new).await?;
                return Ok(keys_changed(&new, &[]));
            }
            Ok(Vec::new())
        });
        Ok(created.await?)
    }

    pub(crate) async fn rotate_keys(&self, rotation: KeyRotation) -> Result<Vec<ServiceKey>, AdminError> {
        self.change_keys(rotation.now, async |transaction| {
            let new = keys::create(&KeyPurpose::ROTATED, rotation.now)?;
            insert_keys(transaction, &new).await?;
            let all = read_keys(transaction.client()).await?;
            let replaced = keys::replaced_before(&all, rotation.remove_before);
            let delete = "DELETE FROM service_key WHERE kid = ANY ($1)";
            transaction.execute_typed(delete, &params![TEXT_ARRAY: replaced]).await?;
            Ok(keys_changed(&new, &replaced))
        })
        .await
    }

    async fn change_keys(
        &self,
        now: UtcInstant,
        change: impl AsyncFnOnce(&Transaction<'_>) -> Result<Vec<Change>, AdminError>,
    ) -> Result<Vec<ServiceKey>, AdminError> {
        self.change_audited(now, async |transaction| {
            transaction.batch_execute("LOCK TABLE service_key IN SHARE ROW EXCLUSIVE MODE").await?;
            let changes = change(transaction).await?;
            Ok((read_keys(transaction.client()).await?, changes))
        })
        .await
    }

    pub(crate) async fn add_credential(&self, org: &str, new: NewCredential) -> Result<(), AdminError> {
        self.change_audited(new.now, async |transaction| {
            let change = Change::of("credential issue", new.client.as_str());
            let org = lock_org(transaction, org).await?;
            insert(transaction, &new.for_org(org)).await?;
            Ok(((), vec![change]))
        })
        .await
    }

    pub(crate) async fn credentials(&self, org: &str) -> Result<Vec<Credential>, AdminError> {
        self.read_slowly(async |snapshot| {
            let org = org_id(snapshot, org).await?;
            read(snapshot, CREDENTIALS_BY_AGE, org).await
        })
        .await
    }

    /// Changes a credential that exists and is not revoked.
    pub(crate) async fn change_credential<T>(
        &self,
        action: &'static str,
        client: &ClientId,
        now: UtcInstant,
        change: impl FnOnce(&mut Credential) -> T,
    ) -> Result<T, AdminError> {
        self.change_audited(now, async |transaction| {
            let rows = transaction.query_typed(LOCK, &params![TEXT: client.as_str()]).await?;
            let mut credential = require_changeable(collect(&rows)?.pop(), client)?;
            let done = change(&mut credential);
            let revoked_at = credential.revoked_at.map(UtcInstant::micros);
            let params = params![INT8: revoked_at, TEXT: client.as_str()];
            transaction.execute_typed(SET_REVOKED, &params).await?;
            replace_secrets(transaction, client, &credential.secrets).await?;
            if revoked_at.is_some() {
                sessions::remove_all(transaction, client).await?;
            } else if let Some(end) = credential.sessions_end() {
                sessions::shorten_all(transaction, client, end).await?;
            }
            Ok((done, vec![Change::of(action, client.as_str())]))
        })
        .await
    }
}

async fn look_up(connection: &Client, client: &ClientId) -> Result<CredentialLookup, Failure> {
    let rows = connection.query_typed(LOOKUP, &params![TEXT: client.as_str()]).await?;
    let first = rows.first().ok_or_else(|| Failure::Broken("no row for a credential".into()))?;
    let is_standby: bool = first.try_get(10)?;
    let credential = collect(&rows)?.pop();
    // A revocation is final, so a standby cannot be wrong about it.
    let is_revoked = credential.as_ref().is_some_and(|credential| credential.revoked_at.is_some());
    Ok(CredentialLookup { credential, is_latest: !is_standby || is_revoked })
}

/// Reads the credentials of an organisation, selected with [`select_credentials`].
pub(super) async fn read(
    snapshot: &Transaction<'_>,
    sql: &str,
    org: OrgId,
) -> Result<Vec<Credential>, AdminError> {
    Ok(collect(&snapshot.query_typed(sql, &params![INT8: org.0]).await?)?)
}

fn collect(rows: &[Row]) -> Result<Vec<Credential>, StoreError> {
    let mut all = Vec::new();
    rows.iter().try_for_each(|row| rows::add_credential(&mut all, row))?;
    Ok(all)
}

pub(super) async fn insert(transaction: &Transaction<'_>, credential: &Credential) -> Result<(), AdminError> {
    let micros = |at: Option<UtcInstant>| at.map(UtcInstant::micros);
    let Credential { org, client, label, created_at, expires_at, revoked_at, last_used_at, secrets } =
        credential;
    let (id, created_at) = (client.as_str(), created_at.micros());
    let (expires_at, revoked_at, used_at) = (micros(*expires_at), micros(*revoked_at), micros(*last_used_at));
    let params = params![TEXT: id, INT8: org.0, TEXT: label, INT8: created_at, INT8: expires_at, INT8: revoked_at, INT8: used_at];
    transaction.execute_typed(INSERT_CREDENTIAL, &params).await?;
    replace_secrets(transaction, client, secrets).await
}

async fn replace_secrets(
    transaction: &Transaction<'_>,
    client: &ClientId,
    secrets: &[Secret],
) -> Result<(), AdminError> {
    let id = client.as_str();
    transaction.execute_typed("DELETE FROM secret WHERE client_id = $1", &params![TEXT: id]).await?;
    for Secret { hash, created_at, retires_at } in secrets {
        let (created_at, retires_at) = (created_at.micros(), retires_at.map(UtcInstant::micros));
        let params = params![TEXT: id, BYTEA: hash.as_slice(), INT8: created_at, INT8: retires_at];
        transaction.execute_typed(INSERT_SECRET, &params).await?;
    }
    Ok(())
}

pub(super) async fn read_keys(connection: &Client) -> Result<Vec<ServiceKey>, Failure> {
    let rows = connection.query_typed(SERVICE_KEYS, &[]).await?;
    Ok(rows.iter().map(rows::service_key).collect::<Result<_, _>>()?)
}

pub(super) async fn insert_keys(
    transaction: &Transaction<'_>,
    keys: &[ServiceKey],
) -> Result<(), AdminError> {
    for ServiceKey { kid, purpose, bytes, created_at } in keys {
        let (purpose, bytes, created_at) = (purpose.name(), bytes.as_slice(), created_at.micros());
        let params = params![TEXT: kid, TEXT: purpose, BYTEA: bytes, INT8: created_at];
        transaction.execute_typed(INSERT_KEY, &params).await?;
    }
    Ok(())
}
