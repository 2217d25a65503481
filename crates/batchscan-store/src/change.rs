//! Changes by an operator, and the entries of the audit log that record them.

use batchscan_model::{ClientId, UtcInstant};

use crate::access::CredentialStatus;
use crate::errors::AdminError;
use crate::platform;
use crate::sql::{Sql, values};

/// Who makes the changes of a store.
#[derive(Clone, Debug)]
pub struct Actor {
    /// Who.
    pub name: String,
    /// From which host.
    pub source: String,
    /// The operator token, if it is one.
    pub token: Option<ClientId>,
}

impl Actor {
    /// The user that runs this process, and the host.
    pub fn of_process() -> Self {
        Self { name: platform::user_name(), source: platform::host_name(), token: None }
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

/// Adds entries: the last statements of a transaction, because their lock is for all organisations.
pub(crate) async fn record(
    sql: &mut dyn Sql,
    actor: &Actor,
    now: UtcInstant,
    changes: &[Change],
) -> Result<(), AdminError> {
    if changes.is_empty() {
        return Ok(());
    }
    check_token(sql, actor, now).await?;
    let Actor { name, source, .. } = actor;
    sql.run(sql.dialect().lock_audit).await?;
    for Change { action, org, subject, detail } in changes {
        sql.execute(INSERT, values![now, name, source, *action, org, subject, detail]).await?;
    }
    Ok(())
}

/// Fails if the operator's token has ended. A revocation that is not seen here waits for this transaction.
pub(crate) async fn check_token(sql: &mut dyn Sql, actor: &Actor, now: UtcInstant) -> Result<(), AdminError> {
    let Some(token) = &actor.token else { return Ok(()) };
    let lock = sql.dialect().for_update;
    let find = format!("SELECT revoked_at, expires_at FROM credential WHERE client_id = $1 {lock}");
    let ends = sql.first(&find, values![token], |row| Ok((row.integer(0)?, row.integer(1)?))).await?;
    match ends.map(|(revoked, expires)| CredentialStatus::from_micros(revoked, expires, now)) {
        Some(CredentialStatus::Active) => Ok(()),
        _ => Err(AdminError::TokenEnded),
    }
}
