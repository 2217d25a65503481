//! The content of a whole database, as it is copied from one store into another: tables and their rows.

use batchscan_model::OrgId;
use ring::digest::{Context, SHA256};
use tokio::sync::mpsc;

use crate::blocks;
use crate::errors::AdminError;
use crate::organisations::delete_org;
use crate::sql::{Kind, Pending, Sql, Table, Value, Values, values};
use crate::store::{End, Store};

/// A part of a database, which is copied in one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The service's keys, and the highest number that an organisation ever had. Numbers are not reused.
    Shared { last_org: i64 },
    /// An organisation.
    Org(OrgId),
    /// The operators of all organisations, and the audit log.
    Admin,
}

/// A step of a dump: each part begins, has rows, and ends.
pub(crate) enum DumpStep {
    Begin(Part),
    Rows(&'static Table, Vec<Values>),
    End,
}

pub(crate) type DumpSender = mpsc::Sender<DumpStep>;
pub(crate) type DumpReceiver = mpsc::Receiver<DumpStep>;

macro_rules! table {
    ($name:literal: $($column:literal $kind:ident),*) => {
        Table { name: $name, columns: &[$(($column, Kind::$kind)),*] }
    };
}

// Every table of the contract but sessions and watchers: users sign in, and watchers report again. Blocks are compressed
// again.
static SERVICE_KEY: Table =
    table!("service_key": "kid" Text, "purpose" Text, "bytes" Bytes, "created_at" Integer);
static ORGANISATION: Table = table!("organisation": "id" Integer, "name" Text, "created_at" Integer,
    "version" Integer, "version_mark" Integer, "moved_version" Integer, "pruned_version" Integer,
    "imported_at" Integer, "timezone" Text, "mapping" Text);
static CREDENTIAL: Table = table!("credential": "client_id" Text, "org_id" Integer, "role" Text, "label" Text,
    "created_at" Integer, "expires_at" Integer, "revoked_at" Integer, "last_used_at" Integer,
    "last_rejected_at" Integer);
static SECRET: Table =
    table!("secret": "client_id" Text, "hash" Bytes, "created_at" Integer, "retires_at" Integer);
static BATCH: Table = table!("batch": "org_id" Integer, "created_at" Integer, "batch_id" Text, "json" Text,
    "version" Integer);
static BATCH_TOMBSTONE: Table =
    table!("batch_tombstone": "org_id" Integer, "batch_id" Text, "version" Integer);
static DATA_VERSION: Table =
    table!("data_version": "org_id" Integer, "version" Integer, "mark" Integer, "created_at" Integer);
static IMPORT: Table = table!("import": "org_id" Integer, "id" Integer, "at" Integer, "actor" Text,
    "source" Text, "file" Text, "key" Text, "hash" Bytes, "added" Integer, "corrected" Integer,
    "unchanged" Integer, "duplicates" Integer, "warnings" Integer, "version" Integer, "is_rejected" Integer,
    "is_acknowledged" Integer, "messages" Text);
pub(crate) static SEEN: Table =
    table!("seen": "org_id" Integer, "subject" Text, "is_seen" Integer, "at" Integer, "by" Text, "note" Text);
static AUDIT: Table = table!("audit": "id" Integer, "at" Integer, "actor" Text, "source" Text, "action" Text,
    "org" Text, "subject" Text, "detail" Text);

/// The tables of a part, in the order in which they are loaded, and which of their rows belong to it. `$1` is the
/// organisation.
type Sources = &'static [(&'static Table, &'static str)];

static SHARED: Sources = &[(&SERVICE_KEY, "ORDER BY kid")];
static ORG: Sources = &[
    (&ORGANISATION, "WHERE id = $1"),
    (&CREDENTIAL, "WHERE org_id = $1 ORDER BY client_id"),
    (
        &SECRET,
        "WHERE client_id IN (SELECT client_id FROM credential WHERE org_id = $1) ORDER BY client_id, id",
    ),
    (&BATCH, "WHERE org_id = $1 ORDER BY created_at, batch_id"),
    (&BATCH_TOMBSTONE, "WHERE org_id = $1 ORDER BY batch_id"),
    (&DATA_VERSION, "WHERE org_id = $1 ORDER BY version"),
    (&IMPORT, "WHERE org_id = $1 ORDER BY id"),
    (&SEEN, "WHERE org_id = $1 ORDER BY subject"),
];
static ADMIN: Sources = &[
    (&CREDENTIAL, "WHERE org_id IS NULL ORDER BY client_id"),
    (
        &SECRET,
        "WHERE client_id IN (SELECT client_id FROM credential WHERE org_id IS NULL) ORDER BY client_id, id",
    ),
    (&AUDIT, "ORDER BY id"),
];

/// They change while the service runs, or are seen by no client.
const NOT_COMPARED: [&str; 3] = ["last_used_at", "last_rejected_at", "imported_at"];

/// Which parts of a database to dump, in addition to the shared one.
#[derive(Clone, Debug)]
pub(crate) struct DumpFilter {
    /// `None` for all.
    pub(crate) orgs: Option<Vec<OrgId>>,
    /// Whether to dump operators and the audit log.
    pub(crate) with_admin: bool,
}

impl Store {
    /// Sends the content of the database from one snapshot.
    pub(crate) async fn dump(&self, filter: DumpFilter, steps: DumpSender) -> Result<(), AdminError> {
        self.snapshot(async move |sql| {
            let last_org = sql.integer(sql.dialect().last_org, &[]).await?.unwrap_or(0);
            dump_part(sql, Part::Shared { last_org }, &steps).await?;
            for org in sql.all("SELECT id FROM organisation ORDER BY id", &[], |row| row.org(0)).await? {
                if filter.orgs.as_ref().is_none_or(|orgs| orgs.contains(&org)) {
                    dump_part(sql, Part::Org(org), &steps).await?;
                }
            }
            if filter.with_admin {
                dump_part(sql, Part::Admin, &steps).await?;
            }
            Ok(())
        })
        .await
    }

    /// Loads a dump: each part in one transaction, replacing its previous content.
    pub(crate) async fn load(&self, mut steps: DumpReceiver) -> Result<(), AdminError> {
        while let Some(step) = steps.recv().await {
            let DumpStep::Begin(part) = step else { return Err(AdminError::Aborted) };
            let load = async move |sql: &mut (dyn Sql + '_)| {
                load_part(sql, part, &mut steps).await?;
                Ok(End::Commit(steps))
            };
            steps = self.transaction(load).await?;
        }
        Ok(())
    }

    /// If the database is an unfinished copy: the id of its source's key for secrets.
    pub(crate) async fn unfinished_copy(&self) -> Result<Option<String>, AdminError> {
        let find = "SELECT source_key FROM unfinished_copy";
        self.snapshot(async move |sql| sql.first(find, &[], |row| row.string(0)).await).await
    }

    /// Whether organisations were changed here, or batches are left of one: then the database is not overwritten. Its own
    /// keys and operators do not count.
    pub(crate) async fn has_history(&self) -> Result<bool, AdminError> {
        self.snapshot(async |sql| {
            let batch = sql.integer("SELECT org_id FROM batch LIMIT 1", &[]).await?;
            let entry = sql.integer("SELECT id FROM audit WHERE org IS NOT NULL LIMIT 1", &[]).await?;
            Ok(batch.or(entry).is_some())
        })
        .await
    }

    /// Marks a copy as complete.
    pub(crate) async fn finish_copy(&self) -> Result<(), AdminError> {
        let delete = async |sql: &mut (dyn Sql + '_)| {
            sql.execute("DELETE FROM unfinished_copy", &[]).await?;
            Ok(End::Commit(()))
        };
        self.transaction(delete).await
    }

    /// The id of the key that hashes secrets. It is never rotated, so it identifies the source of a copy.
    pub(crate) async fn source_key(&self) -> Result<String, AdminError> {
        self.snapshot(async |sql| sql.first(SOURCE_KEY, &[], |row| row.string(0)).await)
            .await
            .map(Option::unwrap_or_default)
    }
}

const SOURCE_KEY: &str = "SELECT kid FROM service_key WHERE purpose = 'secret' ORDER BY kid LIMIT 1";

async fn dump_part(sql: &mut dyn Sql, part: Part, steps: &DumpSender) -> Result<(), AdminError> {
    let send = |step| async { steps.send(step).await.map_err(|_| AdminError::Aborted) };
    send(DumpStep::Begin(part)).await?;
    let (sources, org) = match part {
        Part::Shared { .. } => (SHARED, None),
        Part::Org(org) => (ORG, Some(org)),
        Part::Admin => (ADMIN, None),
    };
    for (table, rows) in sources {
        let query = format!("SELECT {} FROM {} {rows}", table.columns(), table.name);
        let values: Vec<Value<'_>> = org.map(Value::from).into_iter().collect();
        let send = |rows| -> Pending<'_, ()> { Box::pin(send(DumpStep::Rows(table, rows))) };
        sql.send(table, &query, &values, &send).await?;
    }
    send(DumpStep::End).await
}

async fn load_part(sql: &mut dyn Sql, part: Part, steps: &mut DumpReceiver) -> Result<(), AdminError> {
    clear_part(sql, part).await?;
    loop {
        match steps.recv().await {
            Some(DumpStep::Rows(table, rows)) => sql.insert(table, &rows).await?,
            Some(DumpStep::End) => break,
            _ => return Err(AdminError::Aborted),
        }
    }
    match part {
        Part::Shared { .. } => {
            let mark =
                format!("INSERT INTO unfinished_copy (source_key) SELECT coalesce(({SOURCE_KEY}), '')");
            sql.execute(&mark, &[]).await.map(drop)
        }
        Part::Org(org) => blocks::replace_all(sql, org).await,
        Part::Admin => Ok(()),
    }
}

/// Deletes what a part replaces.
async fn clear_part(sql: &mut dyn Sql, part: Part) -> Result<(), AdminError> {
    match part {
        Part::Shared { last_org } => {
            sql.run(sql.dialect().lock_keys).await?;
            sql.execute("DELETE FROM service_key", &[]).await?;
            sql.execute("DELETE FROM unfinished_copy", &[]).await?;
            for set in sql.dialect().set_last_org {
                sql.execute(set, values![last_org]).await?;
            }
            Ok(())
        }
        Part::Org(org) => delete_org(sql, org).await,
        Part::Admin => {
            sql.execute("DELETE FROM credential WHERE org_id IS NULL", &[]).await?;
            // Entries can be deleted only in an unfinished copy.
            sql.execute("DELETE FROM audit", &[]).await.map(drop)
        }
    }
}

/// A digest of parts of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    pub(crate) batches: u64,
    /// SHA-256 in hex.
    pub(crate) digest: String,
}

pub(crate) struct FingerprintBuilder {
    batches: u64,
    digest: Context,
}

impl FingerprintBuilder {
    pub(crate) fn new() -> Self {
        Self { batches: 0, digest: Context::new(&SHA256) }
    }

    pub(crate) fn add(&mut self, table: &Table, rows: &[Values]) {
        // Users may mark batches as seen during a copy.
        if table.name == SEEN.name {
            return;
        }
        self.batches += if table.name == "batch" { rows.len() as u64 } else { 0 };
        let is_compared: Vec<bool> =
            table.columns.iter().map(|(name, _)| !NOT_COMPARED.contains(name)).collect();
        for row in rows {
            for (value, _) in row.iter().zip(&is_compared).filter(|(_, is_compared)| **is_compared) {
                self.add_value(value);
            }
        }
    }

    /// Prefixed with the length, so that two values cannot be confused with one.
    fn add_value(&mut self, value: &Value<'_>) {
        let integer;
        let bytes = match value {
            Value::Integer(value) => {
                integer = value.map(i64::to_be_bytes);
                integer.as_ref().map(<[u8; 8]>::as_slice)
            }
            Value::Text(value) => value.as_ref().map(|text| text.as_bytes()),
            Value::Bytes(value) => value.as_deref(),
        };
        let length = bytes.map_or(u64::MAX, |bytes| bytes.len() as u64);
        self.digest.update(&length.to_be_bytes());
        self.digest.update(bytes.unwrap_or_default());
    }

    pub(crate) fn finish(self) -> Fingerprint {
        let digest = self.digest.finish();
        let digest = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        Fingerprint { batches: self.batches, digest }
    }
}
