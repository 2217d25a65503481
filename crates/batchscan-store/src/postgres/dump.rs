//! Dumps and loads the whole database.

use std::pin::pin;

use batchscan_model::{OrgId, UtcInstant};
use deadpool_postgres::Transaction;
use futures_util::TryStreamExt;
use tokio_postgres::Row;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::Type;

use super::credentials::{insert, insert_keys, read, read_keys};
use super::organisations::delete_org;
use super::rows::params;
use super::store::PostgresStore;
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

const ORG_SEQUENCE: &str = "pg_get_serial_sequence('organisation', 'id')";

impl PostgresStore {
    pub(crate) async fn dump(&self, filter: OrgFilter, steps: DumpSender) -> Result<(), AdminError> {
        self.read_slowly(async |snapshot| {
            send(&steps, DumpStep::Shared(read_shared(snapshot).await?)).await?;
            for row in snapshot.query_typed(ORG_RECORDS, &[]).await? {
                let mut org = org_record(&row)?;
                let id = org.id;
                if filter.includes(id) {
                    org.credentials = read(snapshot, CREDENTIALS_BY_ID, id).await?;
                    let versions = snapshot.query_typed(VERSION_RECORDS, &params![INT8: id.0]).await?;
                    org.versions = versions.iter().map(version_record).collect::<Result<_, _>>()?;
                    send(&steps, DumpStep::Org(Box::new(org))).await?;
                    dump_rows(snapshot, (BATCH_RECORDS, id), batch_record, DumpStep::Batches, &steps).await?;
                    dump_rows(snapshot, (MOVED_RECORDS, id), moved_record, DumpStep::Moved, &steps).await?;
                    send(&steps, DumpStep::OrgEnd).await?;
                }
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
                DumpStep::Batches(_) | DumpStep::Moved(_) | DumpStep::OrgEnd => Err(AdminError::Aborted),
            })
            .await?;
        }
        Ok(())
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

/// Sends the rows of one organisation in groups.
async fn dump_rows<T>(
    snapshot: &Transaction<'_>,
    (sql, org): (&str, OrgId),
    map: fn(&Row) -> Result<T, StoreError>,
    step: fn(Vec<T>) -> DumpStep,
    steps: &DumpSender,
) -> Result<(), AdminError> {
    let mut rows = pin!(snapshot.query_typed_raw(sql, [(org.0, Type::INT8)]).await?);
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
    while let Some(DumpStep::Moved(moved)) = next {
        insert_moved(transaction, org.id, moved).await?;
        next = steps.recv().await;
    }
    match next {
        Some(DumpStep::OrgEnd) => Ok(()),
        _ => Err(AdminError::Aborted),
    }
}

/// Copies the batches. Returns the step after them.
async fn copy_batches(
    transaction: &Transaction<'_>,
    org: OrgId,
    steps: &mut DumpReceiver,
) -> Result<DumpStep, AdminError> {
    let copy = "COPY batch (org_id, created_at, batch_id, json, version) FROM STDIN (FORMAT binary)";
    let types = [Type::INT8, Type::INT8, Type::TEXT, Type::TEXT, Type::INT8];
    let mut writer = pin!(BinaryCopyInWriter::new(transaction.copy_in(copy).await?, &types));
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
    for VersionRecord { version: DataVersion { number, mark }, created_at } in &org.versions {
        let params = params![INT8: id.0, INT8: number, INT8: mark, INT8: created_at];
        transaction.execute_typed(INSERT_VERSION, &params).await?;
    }
    for credential in &org.credentials {
        insert(transaction, credential).await?;
    }
    Ok(())
}
