//! Credentials: issued, looked up, rotated, revoked. Their rules are in [`crate::access`].

use std::sync::LazyLock;

use batchscan_model::{ClientId, OrgId, UtcInstant};

use crate::access::{Credential, NewCredential, OperatorRole, Rotation, Secret};
use crate::change::Change;
use crate::errors::{AdminError, StoreError};
use crate::organisations::{find_org, lock_org};
use crate::sessions;
use crate::sql::{Columns, Sql, invalid, values};
use crate::store::{End, Store};
use crate::types::Freshness;

/// How many uses are recorded in one transaction.
const USES_PER_TRANSACTION: usize = 50;

/// What [`credential_row`] reads, a row for each secret.
pub(crate) const COLUMNS: &str =
    "c.client_id, c.org_id, c.role, c.label, c.created_at, c.expires_at, c.revoked_at, c.last_used_at,
     s.hash, s.created_at, s.retires_at, c.last_rejected_at";
pub(crate) const TABLES: &str = "credential c LEFT JOIN secret s ON s.client_id = c.client_id";

impl Store {
    /// Looks up a client's credential for authentication.
    pub async fn credential(
        &self,
        client: &ClientId,
        freshness: Freshness,
    ) -> Result<Option<Credential>, StoreError> {
        static FIND: LazyLock<String> = LazyLock::new(|| {
            format!("SELECT {COLUMNS} FROM {TABLES} WHERE c.client_id = $1 AND c.role IS NULL ORDER BY s.id")
        });
        let rows = self.read(freshness, &FIND, values![client], credential_row).await?;
        Ok(merge_secrets(rows).pop())
    }

    /// Records when credentials were last used. Gives up early if the database is locked.
    pub async fn record_uses(&self, uses: Vec<(ClientId, UtcInstant)>) -> Result<(), StoreError> {
        let update = "UPDATE credential SET last_used_at = $2
                      WHERE client_id = $1 AND (last_used_at IS NULL OR last_used_at < $2)";
        self.record_times(uses, update).await
    }

    /// Records when credentials that had ended were last tried. Gives up early if the database is locked.
    pub async fn record_rejections(&self, tries: Vec<(ClientId, UtcInstant)>) -> Result<(), StoreError> {
        let update = "UPDATE credential SET last_rejected_at = $2
                      WHERE client_id = $1 AND (last_rejected_at IS NULL OR last_rejected_at < $2)";
        self.record_times(tries, update).await
    }

    async fn record_times(
        &self,
        mut uses: Vec<(ClientId, UtcInstant)>,
        update: &'static str,
    ) -> Result<(), StoreError> {
        // Ordered, so that two nodes do not deadlock.
        uses.sort_unstable_by(|(a, _), (b, _)| a.as_str().cmp(b.as_str()));
        let mut result = Ok(());
        for uses in uses.chunks(USES_PER_TRANSACTION).map(<[_]>::to_vec) {
            let record = async move |sql: &mut (dyn Sql + '_)| {
                for (client, at) in &uses {
                    sql.execute(update, values![client, *at]).await?;
                }
                Ok(End::Commit(()))
            };
            result = self.change_quickly(record).await.map_err(StoreError::from).and(result);
        }
        result
    }

    /// Adds a client's credential with its first secret.
    pub async fn add_credential(&self, org: &str, new: NewCredential) -> Result<(), AdminError> {
        let org = org.to_owned();
        self.change(new.now, async move |sql| {
            let change = Change::new("credential issue", new.client.as_str());
            let org = lock_org(sql, &org).await?;
            insert(sql, &new.issue(Some(org), None)).await?;
            Ok(((), vec![change]))
        })
        .await
    }

    /// The clients' credentials of an organisation, or of all, oldest first.
    pub async fn credentials(&self, org: Option<&str>) -> Result<Vec<Credential>, AdminError> {
        let org = org.map(str::to_owned);
        self.snapshot(async move |sql| {
            let org = find_org(sql, org.as_deref()).await?;
            all(sql, org).await
        })
        .await
    }

    /// Adds a secret. The current one retires later; one that was already retiring ends now, and the time until which it
    /// would have worked is returned. Sessions and sign-in links end with the current secret at the latest.
    pub async fn rotate_credential(
        &self,
        client: &ClientId,
        rotation: Rotation,
    ) -> Result<Option<UtcInstant>, AdminError> {
        let client = client.clone();
        self.change(rotation.now, async move |sql| {
            let mut credential = lock(sql, &client, false).await?;
            let ended = credential.rotate(&rotation);
            replace_secrets(sql, &credential).await?;
            if let Some(end) = ended {
                sessions::end_of_retired(sql, &client, end).await?;
            }
            if let Some(end) = credential.sessions_end() {
                sessions::end_by(sql, &client, end).await?;
            }
            Ok((ended, vec![Change::new("credential rotate", client.as_str())]))
        })
        .await
    }

    /// Revokes a client's credential. Its sessions and sign-in links end.
    pub async fn revoke_credential(&self, client: &ClientId, now: UtcInstant) -> Result<(), AdminError> {
        self.revoke("credential revoke", client, false, now).await
    }

    /// Revokes a credential of a client or an operator.
    pub(crate) async fn revoke(
        &self,
        action: &'static str,
        client: &ClientId,
        is_operator: bool,
        now: UtcInstant,
    ) -> Result<(), AdminError> {
        let client = client.clone();
        self.change(now, async move |sql| {
            lock(sql, &client, is_operator).await?;
            let revoke = "UPDATE credential SET revoked_at = $1 WHERE client_id = $2";
            sql.execute(revoke, values![now, &client]).await?;
            sql.execute("DELETE FROM secret WHERE client_id = $1", values![&client]).await?;
            sessions::end_all(sql, client.as_str()).await?;
            Ok(((), vec![Change::new(action, client.as_str())]))
        })
        .await
    }
}

/// The clients' credentials of an organisation, or of all, oldest first.
pub(crate) async fn all(sql: &mut dyn Sql, org: Option<OrgId>) -> Result<Vec<Credential>, AdminError> {
    let by_age = format!(
        "SELECT {COLUMNS} FROM {TABLES} WHERE (c.org_id = $1 OR $1 IS NULL) AND c.role IS NULL
         ORDER BY c.created_at, c.client_id, s.id"
    );
    Ok(merge_secrets(sql.all(&by_age, values![org], credential_row).await?))
}

/// A credential that can be changed, locked until the end of the transaction.
async fn lock(sql: &mut dyn Sql, client: &ClientId, is_operator: bool) -> Result<Credential, AdminError> {
    // The secrets are read after the wait for the lock.
    let lock = format!("SELECT org_id FROM credential WHERE client_id = $1 {}", sql.dialect().for_update);
    sql.all(&lock, values![client], |_| Ok(())).await?;
    let query = format!("SELECT {COLUMNS} FROM {TABLES} WHERE c.client_id = $1 ORDER BY s.id");
    let found = merge_secrets(sql.all(&query, values![client], credential_row).await?).pop();
    match found.filter(|credential| credential.role.is_some() == is_operator) {
        None if is_operator => Err(AdminError::TokenNotFound(client.to_string())),
        None => Err(AdminError::CredentialNotFound(client.clone())),
        Some(Credential { revoked_at: Some(_), .. }) if is_operator => {
            Err(AdminError::TokenNotFound(client.to_string()))
        }
        Some(Credential { revoked_at: Some(_), .. }) => Err(AdminError::Revoked(client.clone())),
        Some(credential) => Ok(credential),
    }
}

pub(crate) async fn insert(sql: &mut dyn Sql, credential: &Credential) -> Result<(), AdminError> {
    let Credential { client, org, role, label, created_at, expires_at, .. } = credential;
    let insert = "INSERT INTO credential (client_id, org_id, role, label, created_at, expires_at)
                  VALUES ($1, $2, $3, $4, $5, $6)";
    let role = role.map(OperatorRole::name);
    sql.execute(insert, values![client, *org, role, label, *created_at, *expires_at]).await?;
    replace_secrets(sql, credential).await
}

async fn replace_secrets(sql: &mut dyn Sql, credential: &Credential) -> Result<(), AdminError> {
    let client = &credential.client;
    sql.execute("DELETE FROM secret WHERE client_id = $1", values![client]).await?;
    let insert = "INSERT INTO secret (client_id, hash, created_at, retires_at) VALUES ($1, $2, $3, $4)";
    for Secret { hash, created_at, retires_at } in &credential.secrets {
        sql.execute(insert, values![client, hash, *created_at, *retires_at]).await?;
    }
    Ok(())
}

/// A credential with one of its secrets.
pub(crate) fn credential_row(row: &dyn Columns) -> Result<Credential, StoreError> {
    let role = |name: &str| OperatorRole::from_name(name).ok_or_else(|| invalid("role"));
    let secret = match row.optional_hash(8)? {
        Some(hash) => {
            let (created_at, retires_at) = (row.instant(9)?, row.optional_instant(10)?);
            Some(Secret { hash, created_at, retires_at })
        }
        None => None,
    };
    Ok(Credential {
        client: row.client(0)?,
        org: row.integer(1)?.map(OrgId),
        role: row.text(2)?.map(role).transpose()?,
        label: row.string(3)?,
        created_at: row.instant(4)?,
        expires_at: row.optional_instant(5)?,
        revoked_at: row.optional_instant(6)?,
        last_used_at: row.optional_instant(7)?,
        last_rejected_at: row.optional_instant(11)?,
        secrets: secret.into_iter().collect(),
    })
}

/// Joins the rows of one credential, which are adjacent.
fn merge_secrets(rows: impl IntoIterator<Item = Credential>) -> Vec<Credential> {
    let mut all: Vec<Credential> = Vec::new();
    for row in rows {
        match all.last_mut() {
            Some(last) if last.client == row.client => last.secrets.extend(row.secrets),
            _ => all.push(row),
        }
    }
    all
}
