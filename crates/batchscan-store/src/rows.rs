//! Reads the rows of both databases into types. One mapping for each table.

use batchscan_model::{ClientId, OrgId, UtcInstant};

use crate::credentials::{Credential, Secret};
use crate::dump::{BatchRecord, MovedRecord, OrgRecord};
use crate::errors::StoreError;
use crate::keys::{KeyPurpose, ServiceKey};
use crate::page::DataVersion;
use crate::types::Organisation;

/// A row of either database.
pub(crate) trait Columns {
    fn integer(&self, column: usize) -> Result<Option<i64>, StoreError>;
    fn text(&self, column: usize) -> Result<Option<&str>, StoreError>;
    fn bytes(&self, column: usize) -> Result<Option<&[u8]>, StoreError>;
}

/// Selects organisations for [`organisation`].
pub(crate) const ORGANISATIONS: &str = "
    SELECT id, name, created_at, version, version_mark,
           (SELECT count(*) FROM batch b WHERE b.org_id = o.id),
           (SELECT count(*) FROM credential c WHERE c.org_id = o.id AND c.revoked_at IS NULL)
    FROM organisation o";

pub(crate) fn organisation(row: &impl Columns) -> Result<Organisation, StoreError> {
    Ok(Organisation {
        id: OrgId(integer(row, 0)?),
        name: text(row, 1)?,
        created_at: instant(row, 2)?,
        version: DataVersion { number: integer(row, 3)?, mark: integer(row, 4)? },
        batches: count(row, 5)?,
        credentials: count(row, 6)?,
    })
}

/// Selects organisations for [`org_record`].
pub(crate) const ORG_RECORDS: &str =
    "SELECT id, name, created_at, version, version_mark, moved_version FROM organisation ORDER BY id";

pub(crate) fn org_record(row: &impl Columns) -> Result<OrgRecord, StoreError> {
    Ok(OrgRecord {
        id: OrgId(integer(row, 0)?),
        name: text(row, 1)?,
        created_at: instant(row, 2)?,
        version: DataVersion { number: integer(row, 3)?, mark: integer(row, 4)? },
        moved_version: integer(row, 5)?,
        credentials: Vec::new(),
    })
}

/// Selects credentials with their secrets for [`add_credential`]. `$before` is an optional FROM clause.
macro_rules! select_credentials {
    ($rest:literal) => {
        select_credentials!("", "FROM credential c LEFT JOIN secret s ON s.client_id = c.client_id ", $rest)
    };
    ($columns:literal, $from:literal, $rest:literal) => {
        concat!(
            "SELECT c.client_id, c.org_id, c.label, c.created_at, c.expires_at, c.revoked_at, c.last_used_at,
                    s.hash, s.created_at, s.retires_at ",
            $columns,
            " ",
            $from,
            $rest
        )
    };
}
pub(crate) use select_credentials;

// Both databases accept these: SQLite numbers `$1`, `$2` in the order in which they appear.
pub(crate) const CREDENTIALS_BY_AGE: &str =
    select_credentials!("WHERE c.org_id = $1 ORDER BY c.created_at, c.client_id, s.id");
pub(crate) const CREDENTIALS_BY_ID: &str =
    select_credentials!("WHERE c.org_id = $1 ORDER BY c.client_id, s.id");
pub(crate) const SET_REVOKED: &str = "UPDATE credential SET revoked_at = $1 WHERE client_id = $2";
pub(crate) const INSERT_CREDENTIAL: &str = "
    INSERT INTO credential (client_id, org_id, label, created_at, expires_at, revoked_at, last_used_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7)";
pub(crate) const INSERT_SECRET: &str =
    "INSERT INTO secret (client_id, hash, created_at, retires_at) VALUES ($1, $2, $3, $4)";
pub(crate) const INSERT_KEY: &str =
    "INSERT INTO service_key (kid, purpose, bytes, created_at) VALUES ($1, $2, $3, $4)";
pub(crate) const INSERT_ORG: &str = "
    INSERT INTO organisation (id, name, created_at, version, version_mark, moved_version)
    VALUES ($1, $2, $3, $4, $5, $6)";
/// For [`batch_record`].
pub(crate) const BATCH_RECORDS: &str =
    "SELECT created_at, batch_id, json, version FROM batch WHERE org_id = $1 ORDER BY created_at, batch_id";
/// For [`moved_record`].
pub(crate) const MOVED_RECORDS: &str =
    "SELECT batch_id, version FROM moved_batch WHERE org_id = $1 ORDER BY batch_id";

/// Adds a row to the credentials. The rows of one credential must be adjacent: one for each secret.
pub(crate) fn add_credential(all: &mut Vec<Credential>, row: &impl Columns) -> Result<(), StoreError> {
    let Some(id) = row.text(0)? else { return Ok(()) };
    if all.last().is_none_or(|last| last.client.as_str() != id) {
        all.push(Credential {
            org: OrgId(integer(row, 1)?),
            client: ClientId::new(id).ok_or_else(|| invalid("client id"))?,
            label: text(row, 2)?,
            created_at: instant(row, 3)?,
            expires_at: maybe_instant(row, 4)?,
            revoked_at: maybe_instant(row, 5)?,
            last_used_at: maybe_instant(row, 6)?,
            secrets: Vec::new(),
        });
    }
    if let (Some(last), Some(hash)) = (all.last_mut(), row.bytes(7)?) {
        let hash = hash.try_into().map_err(|_| invalid("secret"))?;
        last.secrets.push(Secret { hash, created_at: instant(row, 8)?, retires_at: maybe_instant(row, 9)? });
    }
    Ok(())
}

/// Selects the keys for [`service_key`], newest first.
pub(crate) const SERVICE_KEYS: &str =
    "SELECT kid, purpose, bytes, created_at FROM service_key ORDER BY created_at DESC, kid";

pub(crate) fn service_key(row: &impl Columns) -> Result<ServiceKey, StoreError> {
    let bytes = row.bytes(2)?.and_then(|bytes| bytes.try_into().ok());
    Ok(ServiceKey {
        kid: text(row, 0)?,
        purpose: KeyPurpose::from_name(&text(row, 1)?).ok_or_else(|| invalid("purpose of a key"))?,
        bytes: bytes.ok_or_else(|| invalid("key"))?,
        created_at: instant(row, 3)?,
    })
}

pub(crate) fn batch_record(row: &impl Columns) -> Result<BatchRecord, StoreError> {
    Ok(BatchRecord {
        created_at: integer(row, 0)?,
        id: text(row, 1)?,
        json: text(row, 2)?,
        version: integer(row, 3)?,
    })
}

pub(crate) fn moved_record(row: &impl Columns) -> Result<MovedRecord, StoreError> {
    Ok(MovedRecord { id: text(row, 0)?, version: integer(row, 1)? })
}

pub(crate) fn count(row: &impl Columns, column: usize) -> Result<u64, StoreError> {
    u64::try_from(integer(row, column)?).map_err(|_| invalid("count"))
}

fn integer(row: &impl Columns, column: usize) -> Result<i64, StoreError> {
    row.integer(column)?.ok_or_else(|| invalid("number"))
}

fn text(row: &impl Columns, column: usize) -> Result<String, StoreError> {
    row.text(column)?.map(str::to_owned).ok_or_else(|| invalid("text"))
}

fn instant(row: &impl Columns, column: usize) -> Result<UtcInstant, StoreError> {
    maybe_instant(row, column)?.ok_or_else(|| invalid("time"))
}

fn maybe_instant(row: &impl Columns, column: usize) -> Result<Option<UtcInstant>, StoreError> {
    let instant = |micros| UtcInstant::from_micros(micros).ok_or_else(|| invalid("time"));
    row.integer(column)?.map(instant).transpose()
}

fn invalid(what: &str) -> StoreError {
    StoreError::Broken(format!("invalid or missing {what}"))
}
