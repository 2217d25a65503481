//! Dumps and loads the whole database.

use batchscan_model::{OrgId, UtcInstant};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};

use super::credentials::{insert, insert_keys, read, read_keys};
use super::organisations::delete_org;
use super::rows::query_all;
use super::store::SqliteStore;
use super::{blocks, open};
use crate::dump::{
    BatchRecord, DumpReceiver, DumpSender, DumpStep, MovedRecord, OrgFilter, OrgRecord, ROWS_PER_STEP,
    Shared, VersionRecord,
};
use crate::errors::{AdminError, StoreError};
use crate::page::DataVersion;
use crate::rows::{
    BATCH_RECORDS, CREDENTIALS_BY_ID, INSERT_ORG, INSERT_VERSION, MOVED_RECORDS, ORG_RECORDS,
    VERSION_RECORDS, batch_record, moved_record, org_record, version_record,
};

impl SqliteStore {
    pub(crate) async fn dump(&self, filter: OrgFilter, steps: DumpSender) -> Result<(), AdminError> {
        self.read_slowly(move |connection| {
            let snapshot = connection.transaction()?;
            send(&steps, DumpStep::Shared(read_shared(&snapshot)?))?;
            let orgs = query_all(&mut snapshot.prepare(ORG_RECORDS)?, [], |row| org_record(row))?;
            for mut org in orgs.into_iter().filter(|org| filter.includes(org.id)) {
                let id = org.id;
                org.credentials = read(&snapshot, CREDENTIALS_BY_ID, [id.0])?;
                let mut versions = snapshot.prepare(VERSION_RECORDS)?;
                org.versions = query_all(&mut versions, [id.0], |row| version_record(row))?;
                send(&steps, DumpStep::Org(Box::new(org)))?;
                dump_rows(
                    &snapshot,
                    (BATCH_RECORDS, id),
                    |row| batch_record(row),
                    DumpStep::Batches,
                    &steps,
                )?;
                dump_rows(&snapshot, (MOVED_RECORDS, id), |row| moved_record(row), DumpStep::Moved, &steps)?;
                send(&steps, DumpStep::OrgEnd)?;
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
                    DumpStep::Batches(_) | DumpStep::Moved(_) | DumpStep::OrgEnd => {
                        return Err(AdminError::Aborted);
                    }
                }
                transaction.commit()?;
            }
            Ok(())
        })
        .await
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

fn read_shared(snapshot: &Connection) -> Result<Shared, AdminError> {
    let last = "SELECT seq FROM sqlite_sequence WHERE name = 'organisation'";
    let last_org = snapshot.query_row(last, [], |row| row.get(0)).optional()?;
    Ok(Shared { keys: read_keys(snapshot)?, last_org: last_org.unwrap_or(0) })
}

/// Sends the rows of one organisation in groups.
fn dump_rows<T>(
    snapshot: &Connection,
    (sql, org): (&str, OrgId),
    map: impl Fn(&Row<'_>) -> Result<T, StoreError>,
    step: fn(Vec<T>) -> DumpStep,
    steps: &DumpSender,
) -> Result<(), AdminError> {
    let mut statement = snapshot.prepare_cached(sql)?;
    let mut rows = statement.query([org.0])?;
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
            Some(DumpStep::OrgEnd) => return Ok(blocks::compress_all(transaction, org.id)?),
            Some(DumpStep::Shared(_) | DumpStep::Org(_)) | None => return Err(AdminError::Aborted),
        }
    }
}

fn insert_org(transaction: &Transaction<'_>, org: &OrgRecord) -> Result<(), AdminError> {
    let OrgRecord { id, name, created_at, version, moved_version, imported_at, pruned_version, .. } = org;
    let (created_at, imported_at) = (created_at.micros(), imported_at.map(UtcInstant::micros));
    let DataVersion { number, mark } = version;
    let params = params![id.0, name, created_at, number, mark, moved_version, imported_at, pruned_version];
    transaction.execute(INSERT_ORG, params)?;
    let mut insert_version = transaction.prepare(INSERT_VERSION)?;
    for VersionRecord { version, created_at } in &org.versions {
        insert_version.execute(params![id.0, version.number, version.mark, created_at])?;
    }
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
