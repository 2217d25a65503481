//! Credentials, their secrets' hashes, and the service's keys.

use std::time::Duration;

use batchscan_model::{ClientId, OrgId, UtcInstant};
use deadpool_postgres::{ClientWrapper, Transaction};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};

use super::PostgresStore;
use super::failure::Failure;
use super::organisations::{instant, lock_org, maybe_instant, org_id};
use crate::{
    AdminError, Credential, CredentialInfo, Freshness, KeyPurpose, KeyRotation, KnownClient, NewCredential,
    Rotation, ServiceKey, StoreError, StoredSecret, keys,
};

/// How long the note that a credential was used may take: nobody hangs on it, and the next one brings it too.
const USES_WAIT: Duration = Duration::from_secs(2);

impl PostgresStore {
    pub(crate) async fn credential(
        &self,
        client: &ClientId,
        freshness: Freshness,
    ) -> Result<KnownClient, StoreError> {
        let mut route = self.hosts.route(freshness);
        loop {
            let lease = route.next().await?;
            let outcome = lease.during(read_credential(&lease, client)).await;
            if let Some(known) = route.settle(lease, outcome)? {
                return Ok(known);
            }
        }
    }

    pub(crate) async fn record_uses(&self, uses: Vec<(ClientId, UtcInstant)>) -> Result<(), StoreError> {
        let (clients, instants): (Vec<String>, Vec<i64>) =
            uses.into_iter().map(|(client, at)| (client.as_str().to_owned(), at.micros())).unzip();
        // In the order of their ids, so that two nodes do not wait for each other.
        let later = "UPDATE credential SET last_used_at = later.at
                     FROM (SELECT c.client_id, used.at FROM unnest($1::text[], $2::bigint[]) AS used (id, at)
                           JOIN credential c ON c.client_id = used.id
                           WHERE c.last_used_at IS NULL OR c.last_used_at < used.at
                           ORDER BY c.client_id FOR NO KEY UPDATE OF c) AS later
                     WHERE credential.client_id = later.client_id";
        let recorded = async {
            let lease = self.hosts.route(Freshness::Latest).next().await?;
            let params: [(&(dyn ToSql + Sync), Type); 2] =
                [(&clients, Type::TEXT_ARRAY), (&instants, Type::INT8_ARRAY)];
            lease.execute_typed(later, &params).await.map_err(Failure::from)?;
            lease.end();
            Ok(())
        };
        let late = || StoreError::Unreachable("no primary took the note in time".into());
        tokio::time::timeout(USES_WAIT, recorded).await.map_err(|_| late())?
    }

    pub(crate) async fn keys(
        &self,
        now: UtcInstant,
        freshness: Freshness,
    ) -> Result<Vec<ServiceKey>, StoreError> {
        let known = self.read(freshness, async |connection: &ClientWrapper| read_keys(connection).await);
        match known.await? {
            none if none.is_empty() => self.make_keys(now).await,
            known => Ok(known),
        }
    }

    /// The first start: one process makes them, under a lock; the others find them made.
    async fn make_keys(&self, now: UtcInstant) -> Result<Vec<ServiceKey>, StoreError> {
        let made = self.change_keys(async |make| {
            if read_keys(make.client()).await?.is_empty() {
                add_keys(make, &keys::made(&KeyPurpose::ALL, now)?).await?;
            }
            Ok(())
        });
        made.await.map_err(AdminError::for_a_request)
    }

    pub(crate) async fn rotate_keys(&self, rotation: KeyRotation) -> Result<Vec<ServiceKey>, AdminError> {
        self.change_keys(async |rotate| {
            add_keys(rotate, &keys::made(&keys::ROTATED, rotation.now)?).await?;
            let all = read_keys(rotate.client()).await?;
            for purpose in keys::ROTATED {
                let gone = keys::forgotten(&all, purpose, rotation.forget_before);
                let forget = "DELETE FROM service_key WHERE kid = ANY ($1)";
                rotate.execute_typed(forget, &[(&gone, Type::TEXT_ARRAY)]).await?;
            }
            Ok(())
        })
        .await
    }

    async fn change_keys(
        &self,
        change: impl AsyncFnOnce(&Transaction<'_>) -> Result<(), AdminError>,
    ) -> Result<Vec<ServiceKey>, AdminError> {
        self.change(async |transaction| {
            transaction.batch_execute("LOCK TABLE service_key IN SHARE ROW EXCLUSIVE MODE").await?;
            change(transaction).await?;
            Ok(read_keys(transaction.client()).await?)
        })
        .await
    }

    pub(crate) async fn add_credential(&self, org: &str, new: NewCredential) -> Result<(), AdminError> {
        self.change(async |add| {
            let org = lock_org(add, org).await?;
            let insert = "INSERT INTO credential (client_id, org_id, label, created_at, expires_at)
                          VALUES ($1, $2, $3, $4, $5)";
            let expiry = new.expires_at.map(UtcInstant::micros);
            let params: [(&(dyn ToSql + Sync), Type); 5] = [
                (&new.client.as_str(), Type::TEXT),
                (&org.0, Type::INT8),
                (&new.label, Type::TEXT),
                (&new.now.micros(), Type::INT8),
                (&expiry, Type::INT8),
            ];
            add.execute_typed(insert, &params).await?;
            add_secret(add, &new.client, &new.secret_hash, new.now).await
        })
        .await
    }

    pub(crate) async fn credentials(&self, org: &str) -> Result<Vec<CredentialInfo>, AdminError> {
        self.look(async |read| {
            let org = org_id(read, org).await?;
            let all = "SELECT client_id, label, created_at, expires_at, revoked_at, last_used_at,
                              ARRAY(SELECT retires_at FROM secret s WHERE s.client_id = c.client_id ORDER BY id)
                       FROM credential c WHERE org_id = $1 ORDER BY created_at, client_id";
            let rows = read.query_typed(all, &[(&org.0, Type::INT8)]).await?;
            rows.iter().map(credential_info).collect()
        })
        .await
    }

    pub(crate) async fn rotate_credential(
        &self,
        client: &ClientId,
        rotation: Rotation,
    ) -> Result<Option<UtcInstant>, AdminError> {
        self.change(async |rotate| {
            lock_alive(rotate, client).await?;
            let id = client.as_str();
            let (now, retire) = (rotation.now.micros(), rotation.retire_at.max(rotation.now).micros());
            let retiring = "SELECT max(retires_at) FROM secret WHERE client_id = $1 AND retires_at > $2";
            let row = rotate.query_typed_one(retiring, &[(&id, Type::TEXT), (&now, Type::INT8)]).await?;
            let ended = maybe_instant(&row, 0)?;
            // Two at once and no more: what was retiring already retires now.
            let end = "DELETE FROM secret WHERE client_id = $1 AND retires_at IS NOT NULL";
            rotate.execute_typed(end, &[(&id, Type::TEXT)]).await?;
            let retire_last = "UPDATE secret SET retires_at = $2 WHERE client_id = $1";
            rotate.execute_typed(retire_last, &[(&id, Type::TEXT), (&retire, Type::INT8)]).await?;
            add_secret(rotate, client, &rotation.secret_hash, rotation.now).await?;
            Ok(ended)
        })
        .await
    }

    pub(crate) async fn revoke_credential(
        &self,
        client: &ClientId,
        now: UtcInstant,
    ) -> Result<(), AdminError> {
        self.change(async |revoke| {
            lock_alive(revoke, client).await?;
            let (id, now) = (client.as_str(), now.micros());
            let end = "UPDATE credential SET revoked_at = $2 WHERE client_id = $1";
            revoke.execute_typed(end, &[(&id, Type::TEXT), (&now, Type::INT8)]).await?;
            revoke.execute_typed("DELETE FROM secret WHERE client_id = $1", &[(&id, Type::TEXT)]).await?;
            Ok(())
        })
        .await
    }
}

/// One row in any case: it also tells whether this host's word is the last one.
const CREDENTIAL: &str = "
    SELECT pg_is_in_recovery(), c.org_id, c.expires_at, c.revoked_at IS NOT NULL, s.hash, s.retires_at
    FROM (SELECT) AS one
    LEFT JOIN credential c ON c.client_id = $1
    LEFT JOIN secret s ON s.client_id = c.client_id
    ORDER BY s.id";

async fn read_credential(connection: &Client, client: &ClientId) -> Result<KnownClient, Failure> {
    let rows = connection.query_typed(CREDENTIAL, &[(&client.as_str(), Type::TEXT)]).await?;
    let first = rows.first().ok_or_else(|| Failure::Broken("no answer about a credential".into()))?;
    let is_standby: bool = first.try_get(0)?;
    let Some(org) = first.try_get::<_, Option<i64>>(1)? else {
        return Ok(KnownClient { credential: None, is_latest: !is_standby });
    };
    let mut secrets = Vec::new();
    for row in &rows {
        if let Some(hash) = row.try_get::<_, Option<&[u8]>>(4)? {
            let hash = hash.try_into().map_err(|_| Failure::Broken("a hash has the wrong length".into()))?;
            secrets.push(StoredSecret { hash, retires_at: maybe_instant(row, 5)? });
        }
    }
    let expires_at = maybe_instant(first, 2)?;
    let revoked = first.try_get(3)?;
    let credential = Credential { org: OrgId(org), expires_at, revoked, secrets };
    // What is revoked stays so: here a standby cannot be wrong.
    Ok(KnownClient { credential: Some(credential), is_latest: !is_standby || revoked })
}

fn credential_info(row: &Row) -> Result<CredentialInfo, AdminError> {
    let retirements: Vec<Option<i64>> = row.try_get(6)?;
    let id: String = row.try_get(0)?;
    let unsound = || StoreError::Broken("a client id is not one".into());
    Ok(CredentialInfo {
        client: ClientId::new(id).ok_or_else(unsound)?,
        label: row.try_get(1)?,
        created_at: instant(row, 2)?,
        expires_at: maybe_instant(row, 3)?,
        revoked_at: maybe_instant(row, 4)?,
        last_used_at: maybe_instant(row, 5)?,
        secrets: retirements.into_iter().map(|at| at.and_then(UtcInstant::from_micros)).collect(),
    })
}

async fn add_secret(
    change: &Transaction<'_>,
    client: &ClientId,
    hash: &[u8; 32],
    now: UtcInstant,
) -> Result<(), AdminError> {
    let add = "INSERT INTO secret (client_id, hash, created_at) VALUES ($1, $2, $3)";
    let params: [(&(dyn ToSql + Sync), Type); 3] =
        [(&client.as_str(), Type::TEXT), (&hash.as_slice(), Type::BYTEA), (&now.micros(), Type::INT8)];
    change.execute_typed(add, &params).await?;
    Ok(())
}

/// Refuses a dead credential; whoever else wants to change it waits until this transaction ends.
async fn lock_alive(change: &Transaction<'_>, client: &ClientId) -> Result<(), AdminError> {
    let find = "SELECT revoked_at IS NOT NULL FROM credential WHERE client_id = $1 FOR UPDATE";
    match change.query_typed_opt(find, &[(&client.as_str(), Type::TEXT)]).await? {
        None => Err(AdminError::NoSuchCredential(client.clone())),
        Some(row) if row.try_get(0)? => Err(AdminError::Revoked(client.clone())),
        Some(_) => Ok(()),
    }
}

/// The keys, newest first.
pub(super) async fn read_keys(connection: &Client) -> Result<Vec<ServiceKey>, Failure> {
    let all = "SELECT kid, purpose, bytes, created_at FROM service_key ORDER BY created_at DESC, kid";
    let rows = connection.query_typed(all, &[]).await?;
    rows.iter().map(service_key).collect()
}

fn service_key(row: &Row) -> Result<ServiceKey, Failure> {
    let unsound = || Failure::Broken("a service key is not one".into());
    let purpose = KeyPurpose::named(row.try_get(1)?).ok_or_else(unsound)?;
    let bytes = row.try_get::<_, &[u8]>(2)?.try_into().map_err(|_| unsound())?;
    Ok(ServiceKey { kid: row.try_get(0)?, purpose, bytes, created_at: instant(row, 3)? })
}

pub(super) async fn add_keys(change: &Transaction<'_>, keys: &[ServiceKey]) -> Result<(), AdminError> {
    let add = "INSERT INTO service_key (kid, purpose, bytes, created_at) VALUES ($1, $2, $3, $4)";
    for key in keys {
        let params: [(&(dyn ToSql + Sync), Type); 4] = [
            (&key.kid, Type::TEXT),
            (&key.purpose.name(), Type::TEXT),
            (&key.bytes.as_slice(), Type::BYTEA),
            (&key.created_at.micros(), Type::INT8),
        ];
        change.execute_typed(add, &params).await?;
    }
    Ok(())
}
