//! The whole database, out of the file and into it.

use batchscan_model::{ClientId, OrgId, UtcInstant};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};

use super::credentials::{add_keys, read_keys};
use super::organisations::{instant, maybe_instant};
use super::{SqliteStore, packs};
use crate::dump::ROWS_PER_STEP;
use crate::{
    AdminError, BatchRecord, CredentialRecord, DataVersion, DumpSource, DumpStep, DumpSteps, MovedRecord,
    OrgRecord, SecretRecord, Shared, Which,
};

impl SqliteStore {
    pub(crate) async fn dump(&self, which: Which, steps: DumpSteps) -> Result<(), AdminError> {
        self.read_at_leisure(move |connection| {
            let snapshot = connection.transaction()?;
            send(&steps, DumpStep::Shared(read_shared(&snapshot)?))?;
            let mut orgs = snapshot.prepare(
                "SELECT id, name, created_at, version, version_mark, moved_version FROM organisation ORDER BY id",
            )?;
            let orgs = orgs.query_map([], |row| read_org(&snapshot, row))?.collect::<rusqlite::Result<Vec<_>>>()?;
            for org in orgs.into_iter().filter(|org| which.includes(org.id)) {
                let id = org.id;
                send(&steps, DumpStep::Org(Box::new(org)))?;
                dump_batches(&snapshot, id, &steps)?;
                dump_moved(&snapshot, id, &steps)?;
                send(&steps, DumpStep::OrgEnd)?;
            }
            Ok(())
        })
        .await
    }

    pub(crate) async fn load(&self, mut source: DumpSource) -> Result<(), AdminError> {
        self.write(move |connection| {
            while let Some(step) = source.blocking_recv() {
                match step {
                    DumpStep::Shared(shared) => load_shared(connection, &shared)?,
                    DumpStep::Org(org) => load_org(connection, &org, &mut source)?,
                    DumpStep::Batches(_) | DumpStep::Moved(_) | DumpStep::OrgEnd => {
                        return Err(AdminError::Abandoned);
                    }
                }
            }
            Ok(())
        })
        .await
    }

    pub(crate) async fn unfinished_copy(&self) -> Result<Option<String>, AdminError> {
        self.read_at_leisure(|connection| Ok(unfinished_copy(connection)?)).await
    }

    pub(crate) async fn finish_copy(&self) -> Result<(), AdminError> {
        self.write(|connection| {
            connection.execute("DELETE FROM unfinished_copy", [])?;
            Ok(())
        })
        .await
    }
}

/// Whose copy the database is, if that was not finished.
pub(super) fn unfinished_copy(connection: &Connection) -> rusqlite::Result<Option<String>> {
    connection.query_row("SELECT source_key FROM unfinished_copy", [], |row| row.get(0)).optional()
}

fn send(steps: &DumpSteps, step: DumpStep) -> Result<(), AdminError> {
    steps.blocking_send(step).map_err(|_| AdminError::Abandoned)
}

fn read_shared(snapshot: &Connection) -> Result<Shared, AdminError> {
    let last = "SELECT seq FROM sqlite_sequence WHERE name = 'organisation'";
    let last_org = snapshot.query_row(last, [], |row| row.get(0)).optional()?;
    Ok(Shared { keys: read_keys(snapshot)?, last_org: last_org.unwrap_or(0) })
}

fn read_org(snapshot: &Connection, row: &Row<'_>) -> rusqlite::Result<OrgRecord> {
    let id = OrgId(row.get(0)?);
    let mut all = snapshot.prepare_cached(
        "SELECT client_id, label, created_at, expires_at, revoked_at, last_used_at FROM credential
         WHERE org_id = ?1 ORDER BY client_id",
    )?;
    let credentials = all.query_map([id.0], |row| read_credential(snapshot, row))?;
    Ok(OrgRecord {
        id,
        name: row.get(1)?,
        created_at: instant(row, 2)?,
        version: DataVersion { number: row.get(3)?, mark: row.get(4)? },
        moved_version: row.get(5)?,
        credentials: credentials.collect::<rusqlite::Result<_>>()?,
    })
}

fn read_credential(snapshot: &Connection, row: &Row<'_>) -> rusqlite::Result<CredentialRecord> {
    let id: String = row.get(0)?;
    let mut all = snapshot
        .prepare_cached("SELECT hash, created_at, retires_at FROM secret WHERE client_id = ?1 ORDER BY id")?;
    let secrets = all.query_map([&id], |row| {
        Ok(SecretRecord {
            hash: row.get(0)?,
            created_at: instant(row, 1)?,
            retires_at: maybe_instant(row, 2)?,
        })
    })?;
    Ok(CredentialRecord {
        secrets: secrets.collect::<rusqlite::Result<_>>()?,
        client: ClientId::new(id).ok_or(rusqlite::Error::InvalidQuery)?,
        label: row.get(1)?,
        created_at: instant(row, 2)?,
        expires_at: maybe_instant(row, 3)?,
        revoked_at: maybe_instant(row, 4)?,
        last_used_at: maybe_instant(row, 5)?,
    })
}

fn dump_batches(snapshot: &Connection, org: OrgId, steps: &DumpSteps) -> Result<(), AdminError> {
    let mut all = snapshot.prepare_cached(
        "SELECT created_at, batch_id, json, version FROM batch WHERE org_id = ?1 ORDER BY created_at, batch_id",
    )?;
    let batch = |row: &Row<'_>| {
        let (created_at, id, json) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(BatchRecord { created_at, id, json, version: row.get(3)? })
    };
    dump_rows(all.query_map([org.0], batch)?, steps, DumpStep::Batches)
}

fn dump_moved(snapshot: &Connection, org: OrgId, steps: &DumpSteps) -> Result<(), AdminError> {
    let mut all = snapshot
        .prepare_cached("SELECT batch_id, version FROM moved_batch WHERE org_id = ?1 ORDER BY batch_id")?;
    let moved = |row: &Row<'_>| Ok(MovedRecord { id: row.get(0)?, version: row.get(1)? });
    dump_rows(all.query_map([org.0], moved)?, steps, DumpStep::Moved)
}

/// Sends rows so many at once.
fn dump_rows<T>(
    mut rows: impl Iterator<Item = rusqlite::Result<T>>,
    steps: &DumpSteps,
    step: fn(Vec<T>) -> DumpStep,
) -> Result<(), AdminError> {
    loop {
        let some = rows.by_ref().take(ROWS_PER_STEP).collect::<rusqlite::Result<Vec<T>>>()?;
        if some.is_empty() {
            return Ok(());
        }
        send(steps, step(some))?;
    }
}

fn load_shared(connection: &mut Connection, shared: &Shared) -> Result<(), AdminError> {
    let load = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    load.execute("DELETE FROM unfinished_copy", [])?;
    load.execute("INSERT INTO unfinished_copy (source_key) VALUES (?1)", [shared.source_key()])?;
    load.execute("DELETE FROM service_key", [])?;
    add_keys(&load, &shared.keys)?;
    // The table has no key to conflict on; an organisation that was added and removed makes its row.
    load.execute(
        "INSERT INTO organisation (id, name, created_at) SELECT ?1, '', 0 WHERE ?1 > 0
                  AND NOT EXISTS (SELECT 1 FROM organisation WHERE id = ?1)",
        [shared.last_org],
    )?;
    load.execute("DELETE FROM organisation WHERE id = ?1 AND name = ''", [shared.last_org])?;
    Ok(load.commit()?)
}

/// Loads one organisation in one transaction; what was there of it before is replaced.
fn load_org(connection: &mut Connection, org: &OrgRecord, source: &mut DumpSource) -> Result<(), AdminError> {
    let load = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for part in [
        "DELETE FROM batch WHERE org_id = ?1",
        "DELETE FROM moved_batch WHERE org_id = ?1",
        "DELETE FROM organisation WHERE id = ?1",
    ] {
        load.execute(part, [org.id.0])?;
    }
    packs::drop_all(&load, org.id)?;
    add_org(&load, org)?;
    loop {
        match source.blocking_recv() {
            Some(DumpStep::Batches(batches)) => add_batches(&load, org.id, &batches)?,
            Some(DumpStep::Moved(moved)) => note_moved(&load, org.id, &moved)?,
            Some(DumpStep::OrgEnd) => {
                packs::pack_all(&load, org.id)?;
                return Ok(load.commit()?);
            }
            Some(DumpStep::Shared(_) | DumpStep::Org(_)) | None => return Err(AdminError::Abandoned),
        }
    }
}

fn add_org(load: &Transaction<'_>, org: &OrgRecord) -> Result<(), AdminError> {
    let micros = |at: Option<UtcInstant>| at.map(UtcInstant::micros);
    load.execute(
        "INSERT INTO organisation (id, name, created_at, version, version_mark, moved_version)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![
            org.id.0,
            org.name,
            org.created_at.micros(),
            org.version.number,
            org.version.mark,
            org.moved_version
        ],
    )?;
    for credential in &org.credentials {
        let id = credential.client.as_str();
        load.execute(
            "INSERT INTO credential (client_id, org_id, label, created_at, expires_at, revoked_at, last_used_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![
                id,
                org.id.0,
                credential.label,
                credential.created_at.micros(),
                micros(credential.expires_at),
                micros(credential.revoked_at),
                micros(credential.last_used_at)
            ],
        )?;
        for secret in &credential.secrets {
            let add = "INSERT INTO secret (client_id, hash, created_at, retires_at) VALUES (?1, ?2, ?3, ?4)";
            load.execute(
                add,
                params![id, secret.hash, secret.created_at.micros(), micros(secret.retires_at)],
            )?;
        }
    }
    Ok(())
}

fn add_batches(load: &Transaction<'_>, org: OrgId, batches: &[BatchRecord]) -> Result<(), AdminError> {
    let mut add = load.prepare_cached(
        "INSERT INTO batch (org_id, created_at, batch_id, json, version) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for batch in batches {
        add.execute(params![org.0, batch.created_at, batch.id, batch.json, batch.version])?;
    }
    Ok(())
}

fn note_moved(load: &Transaction<'_>, org: OrgId, moved: &[MovedRecord]) -> Result<(), AdminError> {
    let mut note =
        load.prepare_cached("INSERT INTO moved_batch (org_id, batch_id, version) VALUES (?1, ?2, ?3)")?;
    for batch in moved {
        note.execute(params![org.0, batch.id, batch.version])?;
    }
    Ok(())
}
