//! Dumps and loads the whole database.

use batchscan_model::{OrgId, UtcInstant};
use rusqlite::{Connection, OptionalExtension, Row, ToSql, Transaction, TransactionBehavior, params};

use super::credentials::{insert, insert_keys, read, read_keys};
use super::organisations::delete_org;
use super::rows::query_all;
use super::store::SqliteStore;
use super::{blocks, open, operator_tokens};
use crate::audit::AuditEntry;
use crate::dump::{
    BatchRecord, DumpFilter, DumpReceiver, DumpSender, DumpStep, MovedRecord, OrgRecord, ROWS_PER_STEP,
    Shared, VersionRecord,
};
use crate::errors::{AdminError, StoreError};
use crate::imports::{ImportEntry, columns};
use crate::operator_tokens::OperatorToken;
use crate::page::DataVersion;
use crate::rows::{
    AUDIT_ENTRIES, BATCH_RECORDS, CLEAR_ADMIN, COPY_AUDIT, COPY_IMPORT, CREDENTIALS_BY_ID, HAS_HISTORY,
    IMPORTS, INSERT_ORG, INSERT_VERSION, MOVED_RECORDS, OPERATOR_TOKENS, ORG_RECORDS, VERSION_RECORDS,
    audit_entry, batch_record, import_entry, moved_record, operator_token, org_record, version_record,
};

impl SqliteStore {
    pub(crate) async fn dump(&self, filter: DumpFilter, steps: DumpSender) -> Result<(), AdminError> {
        self.read_slowly(move |connection| {
            let snapshot = connection.transaction()?;
            let keys = read_keys(&snapshot)?;
            send(&steps, DumpStep::Shared(Shared { keys, last_org: last_org(&snapshot)? }))?;
            let orgs = query_all(&mut snapshot.prepare(ORG_RECORDS)?, [], |row| org_record(row))?;
            for org in orgs.into_iter().filter(|org| filter.includes(org.id)) {
                dump_org(&snapshot, org, &steps)?;
            }
            if filter.includes_admin() {
                let tokens = &mut snapshot.prepare(OPERATOR_TOKENS)?;
                let tokens = query_all(tokens, [None::<&str>], |row| operator_token(row))?;
                send(&steps, DumpStep::Admin(tokens))?;
                let all = (AUDIT_ENTRIES, params![i64::MIN, 0, i64::MAX]);
                dump_rows(&snapshot, all, |row| audit_entry(row), DumpStep::Audit, &steps)?;
                send(&steps, DumpStep::End)?;
            }
            Ok(())
        })
        .await
    }

    pub(crate) async fn load(&self, mut steps: DumpReceiver) -> Result<(), AdminError> {
        self.write(move |connection| {
            while let Some(step) = steps.blocking_recv() {
                let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
                match step {
                    DumpStep::Shared(shared) => load_shared(&transaction, &shared)?,
                    DumpStep::Org(org) => load_org(&transaction, &org, &mut steps)?,
                    DumpStep::Admin(tokens) => load_admin(&transaction, &tokens, &mut steps)?,
                    _ => return Err(AdminError::Aborted),
                }
                transaction.commit()?;
            }
            Ok(())
        })
        .await
    }

    pub(crate) async fn has_history(&self) -> Result<bool, AdminError> {
        self.read_slowly(|connection| Ok(connection.query_row(HAS_HISTORY, [], |row| row.get(0))?)).await
    }

    pub(crate) async fn unfinished_copy(&self) -> Result<Option<String>, AdminError> {
        self.read_slowly(|connection| Ok(open::unfinished_copy(connection)?)).await
    }

    pub(crate) async fn finish_copy(&self) -> Result<(), AdminError> {
        self.change(|transaction| Ok(transaction.execute_batch("DELETE FROM unfinished_copy")?)).await
    }
}

fn send(steps: &DumpSender, step: DumpStep) -> Result<(), AdminError> {
    steps.blocking_send(step).map_err(|_| AdminError::Aborted)
}

fn last_org(snapshot: &Connection) -> rusqlite::Result<i64> {
    let last = "SELECT seq FROM sqlite_sequence WHERE name = 'organisation'";
    Ok(snapshot.query_row(last, [], |row| row.get(0)).optional()?.unwrap_or(0))
}

fn dump_org(snapshot: &Connection, mut org: OrgRecord, steps: &DumpSender) -> Result<(), AdminError> {
    let id = org.id.0;
    org.credentials = read(snapshot, CREDENTIALS_BY_ID, [id])?;
    send(steps, DumpStep::Org(Box::new(org)))?;
    let of_org = params![id];
    dump_rows(snapshot, (BATCH_RECORDS, of_org), |row| batch_record(row), DumpStep::Batches, steps)?;
    dump_rows(snapshot, (MOVED_RECORDS, of_org), |row| moved_record(row), DumpStep::Moved, steps)?;
    dump_rows(snapshot, (VERSION_RECORDS, of_org), |row| version_record(row), DumpStep::Versions, steps)?;
    let all = (IMPORTS, params![id, 0, i64::MAX]);
    dump_rows(snapshot, all, |row| import_entry(row), DumpStep::Imports, steps)?;
    send(steps, DumpStep::End)
}

/// Sends rows in groups.
fn dump_rows<T>(
    snapshot: &Connection,
    (sql, params): (&str, &[&dyn ToSql]),
    map: impl Fn(&Row<'_>) -> Result<T, StoreError>,
    step: fn(Vec<T>) -> DumpStep,
    steps: &DumpSender,
) -> Result<(), AdminError> {
    let mut statement = snapshot.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    let mut group = Vec::new();
    while let Some(row) = rows.next()? {
        group.push(map(row)?);
        if group.len() == ROWS_PER_STEP {
            send(steps, step(std::mem::take(&mut group)))?;
        }
    }
    if group.is_empty() { Ok(()) } else { send(steps, step(group)) }
}

fn load_shared(transaction: &Transaction<'_>, shared: &Shared) -> Result<(), AdminError> {
    transaction.execute_batch("DELETE FROM unfinished_copy; DELETE FROM service_key")?;
    transaction.execute("INSERT INTO unfinished_copy (source_key) VALUES (?1)", [shared.source_key()])?;
    insert_keys(transaction, &shared.keys)?;
    // SQLite's table of sequences has no unique key. Adding and removing an organisation sets the sequence.
    transaction.execute(
        "INSERT INTO organisation (id, name, created_at)
         SELECT ?1, '', 0 WHERE ?1 > 0 AND NOT EXISTS (SELECT 1 FROM organisation WHERE id = ?1)",
        [shared.last_org],
    )?;
    transaction.execute("DELETE FROM organisation WHERE id = ?1 AND name = ''", [shared.last_org])?;
    Ok(())
}

fn load_org(
    transaction: &Transaction<'_>,
    org: &OrgRecord,
    steps: &mut DumpReceiver,
) -> Result<(), AdminError> {
    delete_org(transaction, org.id)?;
    insert_org(transaction, org)?;
    loop {
        match steps.blocking_recv() {
            Some(DumpStep::Batches(batches)) => insert_batches(transaction, org.id, &batches)?,
            Some(DumpStep::Moved(moved)) => insert_moved(transaction, org.id, &moved)?,
            Some(DumpStep::Versions(versions)) => insert_versions(transaction, org.id, &versions)?,
            Some(DumpStep::Imports(imports)) => insert_imports(transaction, org.id, &imports)?,
            Some(DumpStep::End) => return Ok(blocks::compress_all(transaction, org.id)?),
            _ => return Err(AdminError::Aborted),
        }
    }
}

/// Replaces the operator tokens and the audit log.
fn load_admin(
    transaction: &Transaction<'_>,
    tokens: &[OperatorToken],
    steps: &mut DumpReceiver,
) -> Result<(), AdminError> {
    transaction.execute_batch(CLEAR_ADMIN)?;
    tokens.iter().try_for_each(|token| operator_tokens::write(transaction, token))?;
    loop {
        match steps.blocking_recv() {
            Some(DumpStep::Audit(entries)) => insert_audit(transaction, &entries)?,
            Some(DumpStep::End) => return Ok(()),
            _ => return Err(AdminError::Aborted),
        }
    }
}

fn insert_org(transaction: &Transaction<'_>, org: &OrgRecord) -> Result<(), AdminError> {
    let OrgRecord { id, name, created_at, version, moved_version, imported_at, pruned_version, .. } = org;
    let (created_at, imported_at) = (created_at.micros(), imported_at.map(UtcInstant::micros));
    let DataVersion { number, mark } = version;
    let params = params![id.0, name, created_at, number, mark, moved_version, imported_at, pruned_version];
    transaction.execute(INSERT_ORG, params)?;
    org.credentials.iter().try_for_each(|credential| Ok(insert(transaction, credential)?))
}

fn insert_batches(
    transaction: &Transaction<'_>,
    org: OrgId,
    batches: &[BatchRecord],
) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare_cached(
        "INSERT INTO batch (org_id, created_at, batch_id, json, version) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for BatchRecord { created_at, id, json, version } in batches {
        insert.execute(params![org.0, created_at, id, json, version])?;
    }
    Ok(())
}

fn insert_moved(transaction: &Transaction<'_>, org: OrgId, moved: &[MovedRecord]) -> rusqlite::Result<()> {
    let mut insert = transaction
        .prepare_cached("INSERT INTO moved_batch (org_id, batch_id, version) VALUES (?1, ?2, ?3)")?;
    for MovedRecord { id, version } in moved {
        insert.execute(params![org.0, id, version])?;
    }
    Ok(())
}

fn insert_versions(
    transaction: &Transaction<'_>,
    org: OrgId,
    versions: &[VersionRecord],
) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare_cached(INSERT_VERSION)?;
    for VersionRecord { version: DataVersion { number, mark }, created_at } in versions {
        insert.execute(params![org.0, number, mark, created_at])?;
    }
    Ok(())
}

fn insert_imports(
    transaction: &Transaction<'_>,
    org: OrgId,
    imports: &[ImportEntry],
) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare_cached(COPY_IMPORT)?;
    for ImportEntry { id, at, actor, source, file, key, hash, counts, warnings, version } in imports {
        let (at, [new, corrected, unchanged, repeated, warnings]) =
            (at.micros(), columns(*counts, *warnings));
        insert.execute(params![
            org.0, id, at, actor, source, file, key, hash, new, corrected, unchanged, repeated, warnings,
            version
        ])?;
    }
    Ok(())
}

fn insert_audit(transaction: &Transaction<'_>, entries: &[AuditEntry]) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare_cached(COPY_AUDIT)?;
    for AuditEntry { id, at, actor, source, action, org, subject, detail } in entries {
        insert.execute(params![id, at.micros(), actor, source, action, org, subject, detail])?;
    }
    Ok(())
}
