//! The audit log: who changed what, when and from where. A change and its entry are one transaction.

use batchscan_model::UtcInstant;

use crate::errors::{AdminError, StoreError};
use crate::sql::{Columns, Sql, values};
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

/// Who makes the changes of a store.
#[derive(Clone, Debug)]
pub struct Actor {
    /// Who.
    pub name: String,
    /// From which host.
    pub source: String,
}

impl Actor {
    /// The user that runs this process, and the host.
    pub(crate) fn of_process() -> Self {
        // With sudo, the user who typed the command.
        let user = ["SUDO_USER", "USER", "LOGNAME"].into_iter().find_map(|name| std::env::var(name).ok());
        let name = user.filter(|name| !name.is_empty());
        Self {
            name: name.unwrap_or_else(|| format!("uid {}", rustix::process::getuid().as_raw())),
            source: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        }
    }
}

/// A change, as its entry describes it.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) action: &'static str,
    /// Filled in for a change of a credential.
    pub(crate) org: Option<String>,
    pub(crate) subject: Option<String>,
    pub(crate) detail: Option<String>,
}

impl Change {
    pub(crate) fn of_org(action: &'static str, org: &str) -> Self {
        Self { action, org: Some(org.to_owned()), subject: None, detail: None }
    }

    pub(crate) fn new(action: &'static str, subject: &str) -> Self {
        Self { action, org: None, subject: Some(subject.to_owned()), detail: None }
    }

    pub(crate) fn detail(self, detail: String) -> Self {
        Self { detail: Some(detail), ..self }
    }
}

/// Adds an entry with the next id. A change of a credential ($6) is one of its organisation.
const INSERT: &str = "
    INSERT INTO audit (id, at, actor, source, action, org, subject, detail)
    SELECT coalesce(max(id), 0) + 1, $1, $2, $3, $4,
           coalesce($5, (SELECT o.name FROM credential c JOIN organisation o ON o.id = c.org_id
                         WHERE c.client_id = $6)),
           $6, $7
    FROM audit";
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

/// Adds entries: the last statements of a transaction, because their lock is for all organisations.
pub(crate) async fn insert(
    sql: &mut dyn Sql,
    actor: &Actor,
    now: UtcInstant,
    changes: &[Change],
) -> Result<(), AdminError> {
    if changes.is_empty() {
        return Ok(());
    }
    sql.lock(sql.dialect().lock_audit).await?;
    let Actor { name, source } = actor;
    for Change { action, org, subject, detail } in changes {
        sql.execute(INSERT, values![now, name, source, *action, org, subject, detail]).await?;
    }
    Ok(())
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
