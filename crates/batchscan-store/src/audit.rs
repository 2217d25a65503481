//! The audit log: who changed what, when and from where. A change and its entry are one transaction.

use batchscan_model::UtcInstant;

use crate::errors::{AdminError, StoreError};
use crate::sql::{Columns, values};
use crate::store::Store;

/// An entry of the audit log. Never contains a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// Its number. Later commits have higher numbers.
    pub id: i64,
    /// When.
    pub at: UtcInstant,
    /// Who.
    pub actor: String,
    /// From where: a host.
    pub source: String,
    /// What was done, such as `credential revoke`.
    pub action: String,
    /// The name of the organisation at that time.
    pub org: Option<String>,
    /// What was changed: a client id, key id, session id or batch id.
    pub subject: Option<String>,
    /// More about the change, such as the counts of an import.
    pub detail: Option<String>,
}

/// Which entries to read, oldest first.
#[derive(Clone, Copy, Debug)]
pub struct AuditRange {
    /// The time of the first.
    pub since: Option<UtcInstant>,
    /// Only those with a higher number.
    pub after: i64,
    /// The maximum number of entries.
    pub limit: i64,
}

const ENTRIES: &str = "
    SELECT id, at, actor, source, action, org, subject, detail FROM audit
    WHERE at >= $1 AND id > $2 ORDER BY id LIMIT $3";

impl Store {
    /// Entries of the audit log, oldest first.
    pub async fn audit(&self, range: AuditRange) -> Result<Vec<AuditEntry>, AdminError> {
        let since = range.since.map_or(i64::MIN, UtcInstant::micros);
        self.snapshot(async move |sql| {
            sql.all(ENTRIES, values![since, range.after, range.limit], audit_entry).await
        })
        .await
    }
}

fn audit_entry(row: &dyn Columns) -> Result<AuditEntry, StoreError> {
    Ok(AuditEntry {
        id: row.number(0)?,
        at: row.instant(1)?,
        actor: row.string(2)?,
        source: row.string(3)?,
        action: row.string(4)?,
        org: row.optional_string(5)?,
        subject: row.optional_string(6)?,
        detail: row.optional_string(7)?,
    })
}
