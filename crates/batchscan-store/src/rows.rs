//! Reads the rows of both databases into types. One mapping for each table.

use batchscan_model::{ClientId, OrgId, UtcInstant};

use crate::audit::AuditEntry;
use crate::changes::ChangeKey;
use crate::credentials::{Credential, CredentialStatus, Secret};
use crate::doctor::OrgVersions;
use crate::dump::{BatchRecord, MovedRecord, OrgRecord, VersionRecord};
use crate::errors::StoreError;
use crate::imports::ImportEntry;
use crate::keys::{KeyPurpose, ServiceKey};
use crate::operator_tokens::{OperatorRole, OperatorToken};
use crate::page::{Caller, DataVersion, OrgState};
use crate::sessions::{ActiveSession, Session, SessionRow};
use crate::types::{ImportCounts, OrgOverview, Organisation};

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

/// Selects organisations for [`org_overview`].
pub(crate) const ORG_OVERVIEWS: &str =
    "SELECT id, name, version, version_mark, imported_at FROM organisation";

pub(crate) fn org_overview(row: &impl Columns) -> Result<OrgOverview, StoreError> {
    Ok(OrgOverview {
        id: OrgId(integer(row, 0)?),
        name: text(row, 1)?.into(),
        version: DataVersion { number: integer(row, 2)?, mark: integer(row, 3)? },
        imported_at: maybe_instant(row, 4)?,
    })
}

pub(crate) const COUNT_BATCHES: &str = "SELECT count(*) FROM batch WHERE org_id = $1";

/// Whether a database without organisations was used before. Its own keys and operator tokens do not count.
pub(crate) const HAS_HISTORY: &str = "
    SELECT EXISTS (SELECT 1 FROM batch) OR EXISTS (SELECT 1 FROM audit WHERE org IS NOT NULL)";

/// Selects organisations for [`org_record`].
pub(crate) const ORG_RECORDS: &str = "
    SELECT id, name, created_at, version, version_mark, moved_version, imported_at, pruned_version
    FROM organisation ORDER BY id";

pub(crate) fn org_record(row: &impl Columns) -> Result<OrgRecord, StoreError> {
    Ok(OrgRecord {
        id: OrgId(integer(row, 0)?),
        name: text(row, 1)?,
        created_at: instant(row, 2)?,
        version: DataVersion { number: integer(row, 3)?, mark: integer(row, 4)? },
        moved_version: integer(row, 5)?,
        imported_at: maybe_instant(row, 6)?,
        pruned_version: integer(row, 7)?,
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
    INSERT INTO organisation (id, name, created_at, version, version_mark, moved_version, imported_at,
                              pruned_version)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
/// For [`batch_record`].
pub(crate) const BATCH_RECORDS: &str =
    "SELECT created_at, batch_id, json, version FROM batch WHERE org_id = $1 ORDER BY created_at, batch_id";
/// For [`moved_record`].
pub(crate) const MOVED_RECORDS: &str =
    "SELECT batch_id, version FROM moved_batch WHERE org_id = $1 ORDER BY batch_id";

pub(crate) const NEXT_VERSION: &str = "SELECT version + 1 FROM organisation WHERE id = $1";
/// After an import has created a version.
pub(crate) const SET_IMPORTED: &str = "
    UPDATE organisation SET imported_at = (SELECT created_at FROM data_version WHERE org_id = $1 AND version = $2)
    WHERE id = $1";
pub(crate) const RECORD_MOVED: &str = "
    INSERT INTO moved_batch (org_id, batch_id, version) VALUES ($1, $2, $3)
    ON CONFLICT (org_id, batch_id) DO UPDATE SET version = excluded.version";
/// Whether a version with this mark is known and no removal after the version $4 was deleted. Version 0 has no batches.
pub(crate) const IS_KNOWN: &str = "
    SELECT (EXISTS (SELECT 1 FROM data_version WHERE org_id = $1 AND version = $2 AND mark = $3) OR $2 = 0)
           AND pruned_version <= $4
    FROM organisation WHERE id = $1";
/// Batches in the order of changes, after a change.
pub(crate) const CHANGED_BATCHES: &str = "
    SELECT version, created_at, batch_id, json FROM batch
    WHERE org_id = $1 AND (version, created_at, batch_id) > ($2, $3, $4)
    ORDER BY version, created_at, batch_id LIMIT $5";
/// The same for removed batches. For [`removal`].
pub(crate) const REMOVED_BATCHES: &str = "
    SELECT version, batch_id FROM moved_batch m
    WHERE org_id = $1 AND (version, batch_id) > ($2, $3)
      AND NOT EXISTS (SELECT 1 FROM batch b WHERE b.org_id = m.org_id AND b.batch_id = m.batch_id)
    ORDER BY version, batch_id LIMIT $4";
/// The last version before a time that has removals. Versions that were deleted are older than the others.
pub(crate) const OLD_REMOVALS: &str = "
    SELECT max(version) FROM moved_batch m
    WHERE org_id = $1
      AND version <= coalesce((SELECT max(version) FROM data_version WHERE org_id = $1 AND created_at < $2),
                              (SELECT min(version) - 1 FROM data_version WHERE org_id = $1))
      AND NOT EXISTS (SELECT 1 FROM batch b WHERE b.org_id = m.org_id AND b.batch_id = m.batch_id)";
/// Deletes the removals up to a version.
pub(crate) const PRUNE_REMOVALS: &str = "
    DELETE FROM moved_batch WHERE org_id = $1 AND version <= $2
    AND NOT EXISTS (SELECT 1 FROM batch b WHERE b.org_id = moved_batch.org_id AND b.batch_id = moved_batch.batch_id)";
pub(crate) const SET_PRUNED: &str = "UPDATE organisation SET pruned_version = $1 WHERE id = $2";
/// How many versions of an organisation's batches are kept, so that their clients can continue: two years with a change
/// every minute, in at most 100 MB.
pub(crate) const VERSIONS_MAX: i64 = 1_000_000;
/// Deletes the versions up to one.
pub(crate) const PRUNE_VERSIONS: &str = "DELETE FROM data_version WHERE org_id = $1 AND version <= $2";
/// For [`version_record`].
pub(crate) const VERSION_RECORDS: &str =
    "SELECT version, mark, created_at FROM data_version WHERE org_id = $1 ORDER BY version";
pub(crate) const INSERT_VERSION: &str =
    "INSERT INTO data_version (org_id, version, mark, created_at) VALUES ($1, $2, $3, $4)";

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

/// Adds an entry with the next id. A change of a credential ($6) is one of its organisation.
pub(crate) const INSERT_AUDIT: &str = "
    INSERT INTO audit (id, at, actor, source, action, org, subject, detail)
    SELECT coalesce(max(id), 0) + 1, $1, $2, $3, $4,
           coalesce($5, (SELECT o.name FROM credential c JOIN organisation o ON o.id = c.org_id
                         WHERE c.client_id = $6)),
           $6, $7
    FROM audit";
/// Adds an entry of a copied database.
pub(crate) const COPY_AUDIT: &str = "
    INSERT INTO audit (id, at, actor, source, action, org, subject, detail)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
/// Before a copy is loaded. Entries can be deleted only in an unfinished copy.
pub(crate) const CLEAR_ADMIN: &str = "DELETE FROM operator_token; DELETE FROM audit";
/// For [`audit_entry`].
pub(crate) const AUDIT_ENTRIES: &str = "
    SELECT id, at, actor, source, action, org, subject, detail FROM audit
    WHERE at >= $1 AND id > $2 ORDER BY id LIMIT $3";

pub(crate) fn audit_entry(row: &impl Columns) -> Result<AuditEntry, StoreError> {
    let maybe_text = |column| Ok::<_, StoreError>(row.text(column)?.map(str::to_owned));
    Ok(AuditEntry {
        id: integer(row, 0)?,
        at: instant(row, 1)?,
        actor: text(row, 2)?,
        source: text(row, 3)?,
        action: text(row, 4)?,
        org: maybe_text(5)?,
        subject: maybe_text(6)?,
        detail: maybe_text(7)?,
    })
}

/// Records an import with the next id, and returns that.
pub(crate) const RECORD_IMPORT: &str = "
    INSERT INTO import (org_id, id, at, actor, source, file, key, hash, added, corrected, unchanged, repeated,
                        warnings, version)
    SELECT $1, (SELECT coalesce(max(id), 0) + 1 FROM import WHERE org_id = $1),
           $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, version
    FROM organisation WHERE id = $1
    RETURNING id";
/// Adds the record of an import in a copied database.
pub(crate) const COPY_IMPORT: &str = "
    INSERT INTO import (org_id, id, at, actor, source, file, key, hash, added, corrected, unchanged, repeated,
                        warnings, version)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)";
/// For [`import_entry`].
macro_rules! select_imports {
    ($rest:literal) => {
        concat!(
            "SELECT id, at, actor, source, file, key, hash, added, corrected, unchanged, repeated, warnings, version
             FROM import WHERE org_id = $1 AND ",
            $rest
        )
    };
}
pub(crate) const IMPORT_BY_KEY: &str = select_imports!("key = $2");
/// The first so many after a number.
pub(crate) const IMPORTS: &str = select_imports!("id > $2 ORDER BY id LIMIT $3");

pub(crate) fn import_entry(row: &impl Columns) -> Result<ImportEntry, StoreError> {
    let maybe_text = |column| Ok::<_, StoreError>(row.text(column)?.map(str::to_owned));
    let hash = row.bytes(6)?.map(|bytes| bytes.try_into().map_err(|_| invalid("hash"))).transpose()?;
    let (new, corrected, unchanged) = (count(row, 7)?, count(row, 8)?, count(row, 9)?);
    Ok(ImportEntry {
        id: integer(row, 0)?,
        at: instant(row, 1)?,
        actor: text(row, 2)?,
        source: text(row, 3)?,
        file: maybe_text(4)?,
        key: maybe_text(5)?,
        hash,
        counts: ImportCounts { new, corrected, unchanged, repeated: count(row, 10)? },
        warnings: count(row, 11)?,
        version: integer(row, 12)?,
    })
}

/// Writes a token of the operator API; $3 is the name of its organisation. The one that it replaces differs only in
/// when it was revoked and used.
pub(crate) const WRITE_TOKEN: &str = "
    INSERT INTO operator_token (id, role, org_id, label, hash, created_at, expires_at, revoked_at, last_used_at)
    VALUES ($1, $2, (SELECT id FROM organisation WHERE name = $3), $4, $5, $6, $7, $8, $9)
    ON CONFLICT (id) DO UPDATE SET revoked_at = excluded.revoked_at, last_used_at = excluded.last_used_at";
pub(crate) const REVOKE_TOKEN: &str =
    "UPDATE operator_token SET revoked_at = $1 WHERE id = $2 AND revoked_at IS NULL";
/// For [`operator_token`]. All of them, oldest first, or the one with this id.
pub(crate) const OPERATOR_TOKENS: &str = "
    SELECT t.id, t.role, o.name, t.label, t.hash, t.created_at, t.expires_at, t.revoked_at, t.last_used_at
    FROM operator_token t LEFT JOIN organisation o ON o.id = t.org_id
    WHERE t.id = coalesce($1, t.id) ORDER BY t.created_at, t.id";

pub(crate) fn operator_token(row: &impl Columns) -> Result<OperatorToken, StoreError> {
    let hash = row.bytes(4)?.and_then(|bytes| bytes.try_into().ok());
    Ok(OperatorToken {
        id: ClientId::new(text(row, 0)?).ok_or_else(|| invalid("token id"))?,
        role: OperatorRole::from_name(&text(row, 1)?).ok_or_else(|| invalid("role"))?,
        org: row.text(2)?.map(str::to_owned),
        label: text(row, 3)?,
        hash: hash.ok_or_else(|| invalid("hash"))?,
        created_at: instant(row, 5)?,
        expires_at: maybe_instant(row, 6)?,
        revoked_at: maybe_instant(row, 7)?,
        last_used_at: maybe_instant(row, 8)?,
    })
}

/// Selects sessions for [`session_row`].
macro_rules! select_sessions {
    ($rest:literal) => {
        concat!(
            "SELECT s.id, s.client_id, s.is_link, s.hash, s.previous_hash, s.created_at, s.expires_at, s.last_used_at,
                    c.org_id, o.name, c.expires_at, c.revoked_at,
                    (SELECT max(retires_at) FROM secret WHERE client_id = s.client_id
                     HAVING max(created_at) > s.created_at)
             FROM session s
             JOIN credential c ON c.client_id = s.client_id
             JOIN organisation o ON o.id = c.org_id ",
            $rest
        )
    };
}
pub(crate) use select_sessions;

pub(crate) const SESSIONS_BY_AGE: &str =
    select_sessions!("WHERE c.org_id = $1 AND s.expires_at > $2 ORDER BY s.created_at, s.id");
/// Inserts or updates a session. An update keeps the row, for which a concurrent use may wait.
pub(crate) const WRITE_SESSION: &str = "
    INSERT INTO session (id, client_id, is_link, hash, previous_hash, created_at, expires_at, last_used_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
    ON CONFLICT (id) DO UPDATE SET is_link = excluded.is_link, hash = excluded.hash,
        previous_hash = excluded.previous_hash, created_at = excluded.created_at,
        expires_at = excluded.expires_at, last_used_at = excluded.last_used_at";
pub(crate) const REMOVE_SESSION: &str = "DELETE FROM session WHERE id = $1";
/// The sessions of a credential, or one session.
pub(crate) const REMOVE_SESSIONS: &str = "DELETE FROM session WHERE client_id = $1 OR id = $1";
/// After a rotation: the sessions of a credential end with its old secret.
pub(crate) const SHORTEN_SESSIONS: &str =
    "UPDATE session SET expires_at = $1 WHERE client_id = $2 AND expires_at > $1";
pub(crate) const REMOVE_EXPIRED_SESSIONS: &str = "DELETE FROM session WHERE expires_at <= $1";
/// All but the newest sessions or links of a credential. Both databases need a limit for an offset.
pub(crate) const REMOVE_OLDEST_SESSIONS: &str = "
    DELETE FROM session WHERE id IN
        (SELECT id FROM session WHERE client_id = $1 AND is_link = $2
         ORDER BY created_at DESC, id LIMIT 1000000 OFFSET $3)";
pub(crate) const SESSION_BY_ID: &str = select_sessions!("WHERE s.id = $1");
pub(crate) const HAS_SESSION: &str =
    "SELECT 1 FROM session WHERE id = $1 AND (hash = $2 OR previous_hash = $2)";
pub(crate) const SIGN_OUT: &str = "DELETE FROM session WHERE id = $1 AND (hash = $2 OR previous_hash = $2)";

pub(crate) fn session_row(row: &impl Columns, now: UtcInstant) -> Result<SessionRow, StoreError> {
    let client = ClientId::new(text(row, 1)?).ok_or_else(|| invalid("client id"))?;
    let hash = |column| {
        let bytes = row.bytes(column)?;
        bytes.map(|bytes| bytes.try_into().map_err(|_| invalid("secret"))).transpose()
    };
    let session = Session {
        id: ClientId::new(text(row, 0)?).ok_or_else(|| invalid("session id"))?,
        client: client.clone(),
        is_link: integer(row, 2)? != 0,
        hash: hash(3)?.ok_or_else(|| invalid("secret"))?,
        previous_hash: hash(4)?,
        created_at: instant(row, 5)?,
        expires_at: instant(row, 6)?,
        last_used_at: maybe_instant(row, 7)?,
    };
    let active = ActiveSession {
        caller: Caller { org: OrgId(integer(row, 8)?), client },
        org_name: text(row, 9)?,
        credential_expires_at: maybe_instant(row, 10)?,
        created_at: session.created_at,
        expires_at: session.expires_at,
        is_renewed: false,
    };
    let credential_status = CredentialStatus::new(row.integer(11)?, row.integer(10)?, now);
    Ok(SessionRow { session, active, credential_status, secret_retires_at: maybe_instant(row, 12)? })
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

pub(crate) fn version_record(row: &impl Columns) -> Result<VersionRecord, StoreError> {
    Ok(VersionRecord { version: version(row)?, created_at: integer(row, 2)? })
}

/// For [`crate::doctor::ORG_VERSIONS`].
pub(crate) fn org_versions(row: &impl Columns) -> Result<OrgVersions, StoreError> {
    Ok(OrgVersions {
        id: OrgId(integer(row, 0)?),
        name: text(row, 1)?,
        version: DataVersion { number: integer(row, 2)?, mark: integer(row, 3)? },
        newer: count(row, 4)?,
        recorded: count(row, 5)?,
    })
}

pub(crate) fn version(row: &impl Columns) -> Result<DataVersion, StoreError> {
    Ok(DataVersion { number: integer(row, 0)?, mark: integer(row, 1)? })
}

/// Selects organisations for [`org_state`].
macro_rules! org_states {
    () => {
        "SELECT o.version, o.version_mark, o.id,
                (SELECT count(*) FROM credential c WHERE c.org_id = o.id AND c.revoked_at IS NOT NULL)
         FROM organisation o"
    };
}
pub(crate) use org_states;

pub(crate) fn org_state(row: &impl Columns) -> Result<(OrgId, OrgState), StoreError> {
    Ok((OrgId(integer(row, 2)?), OrgState { version: version(row)?, revoked: integer(row, 3)? }))
}

pub(crate) fn removal(row: &impl Columns) -> Result<ChangeKey, StoreError> {
    Ok(ChangeKey::removed(integer(row, 0)?, text(row, 1)?))
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
