//! The state of the whole database for operators, in one snapshot.

use batchscan_model::UtcInstant;

use crate::access::Credential;
use crate::credentials;
use crate::errors::AdminError;
use crate::imports::{self, ImportEntry};
use crate::organisations::{self, Organisation};
use crate::sql::{Sql, values};
use crate::store::Store;
use crate::watchers::{self, Watcher};

/// The state of a database.
#[derive(Clone, Debug)]
pub struct Status {
    /// Its size.
    pub database_bytes: u64,
    /// When the newest key that signs tokens was created.
    pub key_created_at: Option<UtcInstant>,
    /// When it was last backed up by `batchscan backup`.
    pub backed_up_at: Option<UtcInstant>,
    /// The organisations, by name.
    pub orgs: Vec<OrgStatus>,
}

/// The state of an organisation.
#[derive(Clone, Debug)]
pub struct OrgStatus {
    /// The organisation.
    pub org: Organisation,
    /// When its newest batch was created.
    pub newest_batch_at: Option<UtcInstant>,
    /// The last import that was not rejected.
    pub last_import: Option<ImportEntry>,
    /// The last file with errors.
    pub last_rejected: Option<ImportEntry>,
    /// Rejected files and those with warnings that were not imported again since, nor acknowledged; newest first.
    pub open_imports: Vec<ImportEntry>,
    /// Its watched folders.
    pub watchers: Vec<Watcher>,
    /// Its credentials, oldest first.
    pub credentials: Vec<Credential>,
}

impl Store {
    /// The state of the database and of each organisation.
    pub async fn status(&self) -> Result<Status, AdminError> {
        self.snapshot(async |sql| {
            let instant = |micros: Option<i64>| micros.and_then(UtcInstant::from_micros);
            let key = "SELECT max(created_at) FROM service_key WHERE purpose = 'token'";
            let backup = "SELECT max(at) FROM audit WHERE action = 'backup'";
            let database_bytes = sql.count(sql.dialect().database_bytes, &[]).await?;
            let (key, backup) = (sql.integer(key, &[]).await?, sql.integer(backup, &[]).await?);
            let mut orgs = Vec::new();
            for org in organisations::all(sql).await? {
                orgs.push(org_status(sql, org).await?);
            }
            Ok(Status { database_bytes, key_created_at: instant(key), backed_up_at: instant(backup), orgs })
        })
        .await
    }
}

async fn org_status(sql: &mut dyn Sql, org: Organisation) -> Result<OrgStatus, AdminError> {
    let newest = "SELECT max(created_at) FROM batch WHERE org_id = $1";
    let newest = sql.integer(newest, values![org.id]).await?;
    Ok(OrgStatus {
        newest_batch_at: newest.and_then(UtcInstant::from_micros),
        last_import: imports::last(sql, org.id, false).await?,
        last_rejected: imports::last(sql, org.id, true).await?,
        open_imports: imports::open(sql, org.id).await?,
        watchers: watchers::all(sql, org.id).await?,
        credentials: credentials::all(sql, Some(org.id)).await?,
        org,
    })
}
