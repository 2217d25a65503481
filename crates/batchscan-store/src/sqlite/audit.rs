//! The audit log.

use batchscan_model::UtcInstant;
use rusqlite::{Transaction, params};

use super::rows::query_all;
use super::store::SqliteStore;
use crate::audit::{Actor, AuditEntry, AuditRange, Change};
use crate::errors::AdminError;
use crate::rows::{AUDIT_ENTRIES, INSERT_AUDIT, audit_entry};

impl SqliteStore {
    pub(crate) async fn audit(&self, range: AuditRange) -> Result<Vec<AuditEntry>, AdminError> {
        self.read_slowly(move |connection| {
            let params = params![range.since_micros(), range.after, range.limit];
            Ok(query_all(&mut connection.prepare(AUDIT_ENTRIES)?, params, |row| audit_entry(row))?)
        })
        .await
    }
}

pub(super) fn insert(
    transaction: &Transaction<'_>,
    actor: &Actor,
    now: UtcInstant,
    changes: &[Change],
) -> rusqlite::Result<()> {
    let Actor { name, source } = actor;
    for Change { action, org, subject, detail } in changes {
        let params = params![now.micros(), name, source, action, org, subject, detail];
        transaction.execute(INSERT_AUDIT, params)?;
    }
    Ok(())
}
