//! Dumps and loads the whole database.

use std::pin::pin;

use batchscan_model::{OrgId, UtcInstant};
use deadpool_postgres::Transaction;
use futures_util::TryStreamExt;
use tokio_postgres::Row;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};

use super::credentials::{insert, insert_keys, read, read_keys};
use super::operator_tokens;
use super::organisations::delete_org;
use super::rows::params;
use super::store::PostgresStore;
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
    AUDIT_ENTRIES, BATCH_RECORDS, CLEAR_ADMIN, CREDENTIALS_BY_ID, HAS_HISTORY, IMPORTS, INSERT_ORG,
    MOVED_RECORDS, OPERATOR_TOKENS, ORG_RECORDS, VERSION_RECORDS, audit_entry, batch_record, import_entry,
    moved_record, operator_token, org_record, version_record,
};

const ORG_SEQUENCE: &str = "pg_get_serial_sequence('organisation', 'id')";

impl PostgresStore {
    pub(crate) async fn dump(&self, filter: DumpFilter, steps: DumpSender) -> Result<(), AdminError> {
        self.read_slowly(async |snapshot| {
            send(&steps, DumpStep::Shared(read_shared(snapshot).await?)).await?;
            for row in snapshot.query_typed(ORG_RECORDS, &[]).await? {
                let org = org_record(&row)?;
                if filter.includes(org.id) {
                    dump_org(snapshot, org, &steps).await?;
                }
            }
            if filter.includes_admin() {
                let tokens = snapshot.query_typed(OPERATOR_TOKENS, &params![TEXT: None::<&str>]).await?;
                let tokens = tokens.iter().map(operator_token).collect::<Result<_, _>>()?;
                send(&steps, DumpStep::Admin(tokens)).await?;
                let all = (AUDIT_ENTRIES, &[i64::MIN, 0, i64::MAX][..]);
                dump_rows(snapshot, all, audit_entry, DumpStep::Audit, &steps).await?;
                send(&steps, DumpStep::End).await?;
            }
            Ok(())
        })
        .await
    }

    pub(crate) async fn load(&self, mut steps: DumpReceiver) -> Result<(), AdminError> {
        while let Some(step) = steps.recv().await {
            self.change(async |transaction| match step {
                DumpStep::Shared(shared) => load_shared(transaction, &shared).await,
                DumpStep::Org(org) => load_org(transaction, &org, &mut steps).await,
                DumpStep::Admin(tokens) => load_admin(transaction, &tokens, &mut steps).await,
                _ => Err(AdminError::Aborted),
            })
            .await?;
        }
        Ok(())
    }

    pub(crate) async fn has_history(&self) -> Result<bool, AdminError> {
        self.read_slowly(async |snapshot| Ok(snapshot.query_typed_one(HAS_HISTORY, &[]).await?.try_get(0)?))
            .await
    }

    pub(crate) async fn unfinished_copy(&self) -> Result<Option<String>, AdminError> {
        self.read_slowly(async |snapshot| {
            let row = snapshot.query_typed_opt("SELECT source_key FROM unfinished_copy", &[]).await?;
            Ok(row.map(|row| row.try_get(0)).transpose()?)
        })
        .await
    }

    pub(crate) async fn finish_copy(&self) -> Result<(), AdminError> {
        self.change(async |transaction| Ok(transaction.batch_execute("DELETE FROM unfinished_copy").await?))
            .await
    }
}

async fn send(steps: &DumpSender, step: DumpStep) -> Result<(), AdminError> {
    steps.send(step).await.map_err(|_| AdminError::Aborted)
}

async fn read_shared(snapshot: &Transaction<'_>) -> Result<Shared, AdminError> {
    let last = format!("SELECT coalesce(pg_sequence_last_value({ORG_SEQUENCE}), 0)");
    let last_org = snapshot.query_typed_one(&last, &[]).await?.try_get(0)?;
    Ok(Shared { keys: read_keys(snapshot.client()).await?, last_org })
}

async fn dump_org(
    snapshot: &Transaction<'_>,
    mut org: OrgRecord,
    steps: &DumpSender,
) -> Result<(), AdminError> {
    let id = org.id;
    org.credentials = read(snapshot, CREDENTIALS_BY_ID, id).await?;
    send(steps, DumpStep::Org(Box::new(org))).await?;
    let of_org = &[id.0][..];
    dump_rows(snapshot, (BATCH_RECORDS, of_org), batch_record, DumpStep::Batches, steps).await?;
    dump_rows(snapshot, (MOVED_RECORDS, of_org), moved_record, DumpStep::Moved, steps).await?;
    dump_rows(snapshot, (VERSION_RECORDS, of_org), version_record, DumpStep::Versions, steps).await?;
    let all = (IMPORTS, &[id.0, 0, i64::MAX][..]);
    dump_rows(snapshot, all, import_entry, DumpStep::Imports, steps).await?;
    send(steps, DumpStep::End).await
}

/// Sends rows in groups.
async fn dump_rows<T>(
    snapshot: &Transaction<'_>,
    (sql, params): (&str, &[i64]),
    map: fn(&Row) -> Result<T, StoreError>,
    step: fn(Vec<T>) -> DumpStep,
    steps: &DumpSender,
) -> Result<(), AdminError> {
    let params = params.iter().map(|param| (*param, Type::INT8));
    let mut rows = pin!(snapshot.query_typed_raw(sql, params).await?);
    let mut group = Vec::new();
    while let Some(row) = rows.try_next().await? {
        group.push(map(&row)?);
        if group.len() == ROWS_PER_STEP {
            send(steps, step(std::mem::take(&mut group))).await?;
        }
    }
    if group.is_empty() { Ok(()) } else { send(steps, step(group)).await }
}

async fn load_shared(transaction: &Transaction<'_>, shared: &Shared) -> Result<(), AdminError> {
    let clear = "LOCK TABLE service_key IN SHARE ROW EXCLUSIVE MODE;
                 DELETE FROM service_key; DELETE FROM unfinished_copy";
    transaction.batch_execute(clear).await?;
    let mark = "INSERT INTO unfinished_copy (source_key) VALUES ($1)";
    transaction.execute_typed(mark, &params![TEXT: shared.source_key()]).await?;
    insert_keys(transaction, &shared.keys).await?;
    if shared.last_org > 0 {
        let set = format!(
            "SELECT setval({ORG_SEQUENCE}, greatest($1, coalesce(pg_sequence_last_value({ORG_SEQUENCE}), 1)))"
        );
        transaction.query_typed_one(&set, &params![INT8: shared.last_org]).await?;
    }
    Ok(())
}

async fn load_org(
    transaction: &Transaction<'_>,
    org: &OrgRecord,
    steps: &mut DumpReceiver,
) -> Result<(), AdminError> {
    delete_org(transaction, org.id).await?;
    insert_org(transaction, org).await?;
    let mut next = Some(copy_batches(transaction, org.id, steps).await?);
    loop {
        match next {
            Some(DumpStep::Moved(moved)) => insert_moved(transaction, org.id, moved).await?,
            Some(DumpStep::Versions(versions)) => insert_versions(transaction, org.id, &versions).await?,
            Some(DumpStep::Imports(imports)) => insert_imports(transaction, org.id, &imports).await?,
            Some(DumpStep::End) => return Ok(()),
            _ => return Err(AdminError::Aborted),
        }
        next = steps.recv().await;
    }
}

/// Replaces the operator tokens and the audit log.
async fn load_admin(
    transaction: &Transaction<'_>,
    tokens: &[OperatorToken],
    steps: &mut DumpReceiver,
) -> Result<(), AdminError> {
    transaction.batch_execute(CLEAR_ADMIN).await?;
    for token in tokens {
        operator_tokens::write(transaction, token).await?;
    }
    loop {
        match steps.recv().await {
            Some(DumpStep::Audit(entries)) => insert_audit(transaction, &entries).await?,
            Some(DumpStep::End) => return Ok(()),
            _ => return Err(AdminError::Aborted),
        }
    }
}

/// Copies the batches. Returns the step after them.
async fn copy_batches(
    transaction: &Transaction<'_>,
    org: OrgId,
    steps: &mut DumpReceiver,
) -> Result<DumpStep, AdminError> {
    let types = [Type::INT8, Type::INT8, Type::TEXT, Type::TEXT, Type::INT8];
    let table = "batch (org_id, created_at, batch_id, json, version)";
    let mut writer = pin!(copy_in(transaction, table, &types).await?);
    let next = loop {
        match steps.recv().await {
            Some(DumpStep::Batches(batches)) => {
                for BatchRecord { created_at, id, json, version } in &batches {
                    writer.as_mut().write(&[&org.0, created_at, id, json, version]).await?;
                }
            }
            Some(next) => break next,
            None => return Err(AdminError::Aborted),
        }
    };
    writer.as_mut().finish().await?;
    Ok(next)
}

async fn insert_moved(
    transaction: &Transaction<'_>,
    org: OrgId,
    moved: Vec<MovedRecord>,
) -> Result<(), AdminError> {
    let (ids, versions): (Vec<String>, Vec<i64>) =
        moved.into_iter().map(|batch| (batch.id, batch.version)).unzip();
    let insert = "INSERT INTO moved_batch (org_id, batch_id, version)
                  SELECT $1, moved.id, moved.version FROM unnest($2::text[], $3::bigint[]) AS moved (id, version)";
    let params = params![INT8: org.0, TEXT_ARRAY: ids, INT8_ARRAY: versions];
    transaction.execute_typed(insert, &params).await?;
    Ok(())
}

async fn insert_org(transaction: &Transaction<'_>, org: &OrgRecord) -> Result<(), AdminError> {
    let OrgRecord { id, name, created_at, version, moved_version, imported_at, pruned_version, .. } = org;
    let imported_at = imported_at.map(UtcInstant::micros);
    let (created_at, DataVersion { number, mark }) = (created_at.micros(), version);
    let params = params![
        INT8: id.0, TEXT: name, INT8: created_at, INT8: number, INT8: mark, INT8: moved_version, INT8: imported_at,
        INT8: pruned_version,
    ];
    transaction.execute_typed(INSERT_ORG, &params).await?;
    for credential in &org.credentials {
        insert(transaction, credential).await?;
    }
    Ok(())
}

async fn insert_versions(
    transaction: &Transaction<'_>,
    org: OrgId,
    versions: &[VersionRecord],
) -> Result<(), AdminError> {
    let table = "data_version (org_id, version, mark, created_at)";
    let mut writer = pin!(copy_in(transaction, table, &[Type::INT8; 4]).await?);
    for VersionRecord { version: DataVersion { number, mark }, created_at } in versions {
        writer.as_mut().write(&[&org.0, number, mark, created_at]).await?;
    }
    writer.as_mut().finish().await?;
    Ok(())
}

async fn insert_imports(
    transaction: &Transaction<'_>,
    org: OrgId,
    imports: &[ImportEntry],
) -> Result<(), AdminError> {
    const INT8: Type = Type::INT8;
    const TEXT: Type = Type::TEXT;
    let types = [INT8, INT8, INT8, TEXT, TEXT, TEXT, TEXT, Type::BYTEA, INT8, INT8, INT8, INT8, INT8, INT8];
    let table =
        "import (org_id, id, at, actor, source, file, key, hash, added, corrected, unchanged, repeated,
                         warnings, version)";
    let mut writer = pin!(copy_in(transaction, table, &types).await?);
    for ImportEntry { id, at, actor, source, file, key, hash, counts, warnings, version } in imports {
        let [new, corrected, unchanged, repeated, warnings] = &columns(*counts, *warnings);
        let (at, hash) = (&at.micros(), &hash.as_ref().map(<[u8; 32]>::as_slice));
        let row: [&(dyn ToSql + Sync); 14] = [
            &org.0, id, at, actor, source, file, key, hash, new, corrected, unchanged, repeated, warnings,
            version,
        ];
        writer.as_mut().write(&row).await?;
    }
    writer.as_mut().finish().await?;
    Ok(())
}

async fn insert_audit(transaction: &Transaction<'_>, entries: &[AuditEntry]) -> Result<(), AdminError> {
    let types = [&[Type::INT8; 2][..], &[Type::TEXT; 6]].concat();
    let table = "audit (id, at, actor, source, action, org, subject, detail)";
    let mut writer = pin!(copy_in(transaction, table, &types).await?);
    for AuditEntry { id, at, actor, source, action, org, subject, detail } in entries {
        writer.as_mut().write(&[id, &at.micros(), actor, source, action, org, subject, detail]).await?;
    }
    writer.as_mut().finish().await?;
    Ok(())
}

async fn copy_in(
    transaction: &Transaction<'_>,
    table: &str,
    types: &[Type],
) -> Result<BinaryCopyInWriter, AdminError> {
    let sink = transaction.copy_in(&format!("COPY {table} FROM STDIN (FORMAT binary)")).await?;
    Ok(BinaryCopyInWriter::new(sink, types))
}
