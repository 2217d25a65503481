//! The audit log.

use batchscan_model::UtcInstant;
use deadpool_postgres::Transaction;

use super::rows::params;
use super::store::PostgresStore;
use crate::audit::{Actor, AuditEntry, AuditRange, Change};
use crate::errors::AdminError;
use crate::rows::{AUDIT_ENTRIES, INSERT_AUDIT, audit_entry};

/// Until the end of the transaction, so that ids follow the order of commits. Entries are therefore a transaction's last
/// statements. The number is "bsau"; a lock of the table would wait for vacuum.
const LOCK: &str = "SELECT pg_advisory_xact_lock(1651728757)";

impl PostgresStore {
    pub(crate) async fn audit(&self, range: AuditRange) -> Result<Vec<AuditEntry>, AdminError> {
        self.read_slowly(async |snapshot| {
            let params = params![INT8: range.since_micros(), INT8: range.after, INT8: range.limit];
            let rows = snapshot.query_typed(AUDIT_ENTRIES, &params).await?;
            Ok(rows.iter().map(audit_entry).collect::<Result<_, _>>()?)
        })
        .await
    }
}

pub(super) async fn insert(
    transaction: &Transaction<'_>,
    actor: &Actor,
    now: UtcInstant,
    changes: &[Change],
) -> Result<(), AdminError> {
    if changes.is_empty() {
        return Ok(());
    }
    transaction.batch_execute(LOCK).await?;
    let Actor { name, source } = actor;
    for Change { action, org, subject, detail } in changes {
        let params = params![INT8: now.micros(), TEXT: name, TEXT: source, TEXT: action, TEXT: org, TEXT: subject, TEXT: detail];
        transaction.execute_typed(INSERT_AUDIT, &params).await?;
    }
    Ok(())
}
