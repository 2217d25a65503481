//! The audit log: who changed what, when and from where. A change and its entry are one transaction.

use batchscan_model::{BatchId, UtcInstant};

use crate::imports::ImportSource;
use crate::keys::ServiceKey;
use crate::operator_tokens::OperatorToken;
use crate::sessions::Session;
use crate::types::ImportCounts;

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
    /// At most so many.
    pub limit: i64,
}

impl AuditRange {
    pub(crate) fn since_micros(&self) -> i64 {
        self.since.map_or(i64::MIN, UtcInstant::micros)
    }
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
    /// The stores fill it in for a change of a credential.
    pub(crate) org: Option<String>,
    pub(crate) subject: Option<String>,
    pub(crate) detail: Option<String>,
}

impl Change {
    pub(crate) fn of_org(action: &'static str, org: &str) -> Self {
        Self { action, org: Some(org.to_owned()), subject: None, detail: None }
    }

    pub(crate) fn of(action: &'static str, subject: &str) -> Self {
        Self { action, org: None, subject: Some(subject.to_owned()), detail: None }
    }

    /// The organisation and the detail.
    pub(crate) fn describe(&self) -> String {
        let detail = self.detail.as_deref().unwrap_or_default();
        self.org.as_ref().map_or(detail.to_owned(), |org| format!("\"{org}\": {detail}"))
    }

    pub(crate) fn detail(self, detail: String) -> Self {
        Self { detail: Some(detail), ..self }
    }
}

/// `removed` are ids.
pub(crate) fn keys_changed(created: &[ServiceKey], removed: &[String]) -> Vec<Change> {
    let create = |key: &ServiceKey| Change::of("key create", &key.kid).detail(key.purpose.name().to_owned());
    let remove = |id: &String| Change::of("key remove", id);
    created.iter().map(create).chain(removed.iter().map(remove)).collect()
}

/// Only links are made by an operator.
pub(crate) fn session_added(session: &Session) -> Vec<Change> {
    let link = || Change::of("credential link", session.client.as_str()).detail(session.id.to_string());
    session.is_link.then(link).into_iter().collect()
}

/// `id` is of a session, or of the credential whose sessions ended.
pub(crate) fn sessions_ended(id: &str, ended: u64) -> Vec<Change> {
    let end = || Change::of("session end", id).detail(format!("{ended} ended"));
    (ended > 0).then(end).into_iter().collect()
}

pub(crate) fn batches_removed(org: &str, ids: &[BatchId]) -> Vec<Change> {
    let removed =
        |id: &BatchId| Change { org: Some(org.to_owned()), ..Change::of("batch remove", id.as_str()) };
    ids.iter().map(removed).collect()
}

pub(crate) fn imported(org: &str, source: &ImportSource, counts: &ImportCounts) -> Change {
    let ImportCounts { new, corrected, unchanged, .. } = counts;
    let detail = format!("{new} new, {corrected} corrected, {unchanged} unchanged");
    let subject = source.file.as_ref().or(source.key.as_ref()).cloned();
    Change { subject, ..Change::of_org("import", org).detail(detail) }
}

/// Without its secret.
pub(crate) fn token_issued(token: &OperatorToken) -> Change {
    let issued = Change::of("token issue", token.id.as_str()).detail(token.role.name().to_owned());
    Change { org: token.org.clone(), ..issued }
}
