//! The whole database, out of the cluster and into it.

use std::pin::pin;

use batchscan_model::{ClientId, OrgId, UtcInstant};
use deadpool_postgres::Transaction;
use futures_util::TryStreamExt;
use futures_util::stream::{Stream, TryChunksError};
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Error, Row};

use super::PostgresStore;
use super::credentials::{add_keys, read_keys};
use super::organisations::{instant, maybe_instant, remove};
use crate::dump::ROWS_PER_STEP;
use crate::{
    AdminError, BatchRecord, CredentialRecord, DataVersion, DumpSource, DumpStep, DumpSteps, MovedRecord,
    OrgRecord, SecretRecord, Shared, StoreError, Which,
};

/// The sequence that gives organisations their numbers.
const NUMBERS: &str = "pg_get_serial_sequence('organisation', 'id')";

impl PostgresStore {
    pub(crate) async fn dump(&self, which: Which, steps: DumpSteps) -> Result<(), AdminError> {
        self.look(async |snapshot| {
            send(&steps, DumpStep::Shared(read_shared(snapshot).await?)).await?;
            let orgs = "SELECT id, name, created_at, version, version_mark, moved_version
                        FROM organisation ORDER BY id";
            for row in snapshot.query_typed(orgs, &[]).await? {
                let id = OrgId(row.try_get(0)?);
                if which.includes(id) {
                    send(&steps, DumpStep::Org(Box::new(read_org(snapshot, &row).await?))).await?;
                    dump_batches(snapshot, id, &steps).await?;
                    dump_moved(snapshot, id, &steps).await?;
                    send(&steps, DumpStep::OrgEnd).await?;
                }
            }
            Ok(())
        })
        .await
    }

    pub(crate) async fn load(&self, mut source: DumpSource) -> Result<(), AdminError> {
        while let Some(step) = source.recv().await {
            self.change(async |load| match step {
                DumpStep::Shared(shared) => load_shared(load, &shared).await,
                DumpStep::Org(org) => load_org(load, &org, &mut source).await,
                DumpStep::Batches(_) | DumpStep::Moved(_) | DumpStep::OrgEnd => Err(AdminError::Abandoned),
            })
            .await?;
        }
        Ok(())
    }

    /// Whose copy the database is, if that was not finished.
    pub(crate) async fn unfinished_copy(&self) -> Result<Option<String>, AdminError> {
        self.look(async |read| {
            let row = read.query_typed_opt("SELECT source_key FROM unfinished_copy", &[]).await?;
            Ok(row.map(|row| row.try_get(0)).transpose()?)
        })
        .await
    }

    pub(crate) async fn finish_copy(&self) -> Result<(), AdminError> {
        self.change(async |finish| Ok(finish.batch_execute("DELETE FROM unfinished_copy").await?)).await
    }
}

async fn send(steps: &DumpSteps, step: DumpStep) -> Result<(), AdminError> {
    steps.send(step).await.map_err(|_| AdminError::Abandoned)
}

async fn read_shared(snapshot: &Transaction<'_>) -> Result<Shared, AdminError> {
    let last = format!("SELECT coalesce(pg_sequence_last_value({NUMBERS}), 0)");
    let last_org = snapshot.query_typed_one(&last, &[]).await?.try_get(0)?;
    Ok(Shared { keys: read_keys(snapshot.client()).await?, last_org })
}

async fn read_org(snapshot: &Transaction<'_>, row: &Row) -> Result<OrgRecord, AdminError> {
    let id: i64 = row.try_get(0)?;
    let all = "SELECT client_id, label, created_at, expires_at, revoked_at, last_used_at FROM credential
               WHERE org_id = $1 ORDER BY client_id";
    let mut credentials = Vec::new();
    for row in snapshot.query_typed(all, &[(&id, Type::INT8)]).await? {
        credentials.push(read_credential(snapshot, &row).await?);
    }
    Ok(OrgRecord {
        id: OrgId(id),
        name: row.try_get(1)?,
        created_at: instant(row, 2)?,
        version: DataVersion { number: row.try_get(3)?, mark: row.try_get(4)? },
        moved_version: row.try_get(5)?,
        credentials,
    })
}

async fn read_credential(snapshot: &Transaction<'_>, row: &Row) -> Result<CredentialRecord, AdminError> {
    let id: String = row.try_get(0)?;
    let all = "SELECT hash, created_at, retires_at FROM secret WHERE client_id = $1 ORDER BY id";
    let rows = snapshot.query_typed(all, &[(&id, Type::TEXT)]).await?;
    let unsound = || StoreError::Broken("a credential is not one".into());
    let secret = |row: &Row| {
        let hash = row.try_get::<_, &[u8]>(0)?.try_into().map_err(|_| unsound())?;
        Ok(SecretRecord { hash, created_at: instant(row, 1)?, retires_at: maybe_instant(row, 2)? })
    };
    Ok(CredentialRecord {
        secrets: rows.iter().map(secret).collect::<Result<_, AdminError>>()?,
        client: ClientId::new(id).ok_or_else(unsound)?,
        label: row.try_get(1)?,
        created_at: instant(row, 2)?,
        expires_at: maybe_instant(row, 3)?,
        revoked_at: maybe_instant(row, 4)?,
        last_used_at: maybe_instant(row, 5)?,
    })
}

async fn dump_batches(snapshot: &Transaction<'_>, org: OrgId, steps: &DumpSteps) -> Result<(), AdminError> {
    let all = "SELECT created_at, batch_id, json, version FROM batch WHERE org_id = $1 ORDER BY created_at, batch_id";
    let batch = |row: Row| {
        let (created_at, id, json) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        Ok(BatchRecord { created_at, id, json, version: row.try_get(3)? })
    };
    let rows = snapshot.query_typed_raw(all, [(org.0, Type::INT8)]).await?;
    dump_rows(rows.and_then(async |row| batch(row)), steps, DumpStep::Batches).await
}

async fn dump_moved(snapshot: &Transaction<'_>, org: OrgId, steps: &DumpSteps) -> Result<(), AdminError> {
    let all = "SELECT batch_id, version FROM moved_batch WHERE org_id = $1 ORDER BY batch_id";
    let moved = |row: Row| Ok(MovedRecord { id: row.try_get(0)?, version: row.try_get(1)? });
    let rows = snapshot.query_typed_raw(all, [(org.0, Type::INT8)]).await?;
    dump_rows(rows.and_then(async |row| moved(row)), steps, DumpStep::Moved).await
}

/// Sends rows so many at once.
async fn dump_rows<T>(
    rows: impl Stream<Item = Result<T, Error>>,
    steps: &DumpSteps,
    step: fn(Vec<T>) -> DumpStep,
) -> Result<(), AdminError> {
    let mut rows = pin!(rows.try_chunks(ROWS_PER_STEP));
    while let Some(some) = rows.try_next().await.map_err(|TryChunksError(_, error)| error)? {
        send(steps, step(some)).await?;
    }
    Ok(())
}

async fn load_shared(load: &Transaction<'_>, shared: &Shared) -> Result<(), AdminError> {
    load.batch_execute(
        "LOCK TABLE service_key IN SHARE ROW EXCLUSIVE MODE; DELETE FROM service_key; DELETE FROM unfinished_copy",
    )
    .await?;
    let mark = "INSERT INTO unfinished_copy (source_key) VALUES ($1)";
    load.execute_typed(mark, &[(&shared.source_key(), Type::TEXT)]).await?;
    add_keys(load, &shared.keys).await?;
    if shared.last_org > 0 {
        let go_on =
            format!("SELECT setval({NUMBERS}, greatest($1, coalesce(pg_sequence_last_value({NUMBERS}), 1)))");
        load.query_typed_one(&go_on, &[(&shared.last_org, Type::INT8)]).await?;
    }
    Ok(())
}

/// Loads one organisation; what was there of it before is replaced.
async fn load_org(
    load: &Transaction<'_>,
    org: &OrgRecord,
    source: &mut DumpSource,
) -> Result<(), AdminError> {
    remove(load, org.id).await?;
    add_org(load, org).await?;
    let after = copy_batches(load, org.id, source).await?;
    let mut next = Some(after);
    while let Some(DumpStep::Moved(moved)) = next {
        note_moved(load, org.id, moved).await?;
        next = source.recv().await;
    }
    match next {
        Some(DumpStep::OrgEnd) => Ok(()),
        _ => Err(AdminError::Abandoned),
    }
}

/// Copies the batches that come. Gives the step after them.
async fn copy_batches(
    load: &Transaction<'_>,
    org: OrgId,
    source: &mut DumpSource,
) -> Result<DumpStep, AdminError> {
    let types = [Type::INT8, Type::INT8, Type::TEXT, Type::TEXT, Type::INT8];
    let sink =
        load.copy_in("COPY batch (org_id, created_at, batch_id, json, version) FROM STDIN (FORMAT binary)");
    let mut copy = pin!(BinaryCopyInWriter::new(sink.await?, &types));
    let after = loop {
        match source.recv().await {
            Some(DumpStep::Batches(batches)) => {
                for BatchRecord { created_at, id, json, version } in &batches {
                    copy.as_mut().write(&[&org.0, created_at, id, json, version]).await?;
                }
            }
            Some(after) => break after,
            None => return Err(AdminError::Abandoned),
        }
    };
    copy.as_mut().finish().await?;
    Ok(after)
}

async fn note_moved(load: &Transaction<'_>, org: OrgId, moved: Vec<MovedRecord>) -> Result<(), AdminError> {
    let (ids, versions): (Vec<String>, Vec<i64>) =
        moved.into_iter().map(|batch| (batch.id, batch.version)).unzip();
    let note = "INSERT INTO moved_batch (org_id, batch_id, version)
                SELECT $1, moved.id, moved.version FROM unnest($2::text[], $3::bigint[]) AS moved (id, version)";
    let params: [(&(dyn ToSql + Sync), Type); 3] =
        [(&org.0, Type::INT8), (&ids, Type::TEXT_ARRAY), (&versions, Type::INT8_ARRAY)];
    load.execute_typed(note, &params).await?;
    Ok(())
}

async fn add_org(load: &Transaction<'_>, org: &OrgRecord) -> Result<(), AdminError> {
    let insert = "INSERT INTO organisation (id, name, created_at, version, version_mark, moved_version)
                  VALUES ($1, $2, $3, $4, $5, $6)";
    let params: [(&(dyn ToSql + Sync), Type); 6] = [
        (&org.id.0, Type::INT8),
        (&org.name, Type::TEXT),
        (&org.created_at.micros(), Type::INT8),
        (&org.version.number, Type::INT8),
        (&org.version.mark, Type::INT8),
        (&org.moved_version, Type::INT8),
    ];
    load.execute_typed(insert, &params).await?;
    for credential in &org.credentials {
        add_credential(load, org.id, credential).await?;
    }
    Ok(())
}

async fn add_credential(
    load: &Transaction<'_>,
    org: OrgId,
    credential: &CredentialRecord,
) -> Result<(), AdminError> {
    let micros = |at: Option<UtcInstant>| at.map(UtcInstant::micros);
    let id = credential.client.as_str();
    let insert = "INSERT INTO credential
                      (client_id, org_id, label, created_at, expires_at, revoked_at, last_used_at)
                  VALUES ($1, $2, $3, $4, $5, $6, $7)";
    let params: [(&(dyn ToSql + Sync), Type); 7] = [
        (&id, Type::TEXT),
        (&org.0, Type::INT8),
        (&credential.label, Type::TEXT),
        (&credential.created_at.micros(), Type::INT8),
        (&micros(credential.expires_at), Type::INT8),
        (&micros(credential.revoked_at), Type::INT8),
        (&micros(credential.last_used_at), Type::INT8),
    ];
    load.execute_typed(insert, &params).await?;
    for secret in &credential.secrets {
        let add = "INSERT INTO secret (client_id, hash, created_at, retires_at) VALUES ($1, $2, $3, $4)";
        let params: [(&(dyn ToSql + Sync), Type); 4] = [
            (&id, Type::TEXT),
            (&secret.hash.as_slice(), Type::BYTEA),
            (&secret.created_at.micros(), Type::INT8),
            (&micros(secret.retires_at), Type::INT8),
        ];
        load.execute_typed(add, &params).await?;
    }
    Ok(())
}
