//! Organisations, credentials, imports and audit entries as JSON, for the operator API and the command line.

use batchscan_model::UtcInstant;
use batchscan_store::{AuditEntry, Credential, ImportEntry, Organisation};
use serde_json::{Value, json};

fn text(instant: Option<UtcInstant>) -> Option<String> {
    instant.map(|instant| instant.to_string())
}

/// An organisation.
pub fn organisation(org: &Organisation) -> Value {
    json!({
        "name": org.name,
        "batches": org.batches,
        "credentials": org.credentials,
        "created_at": org.created_at.to_string(),
    })
}

/// A credential, without its secrets.
pub fn credential(credential: &Credential, now: UtcInstant) -> Value {
    json!({
        "client_id": credential.client.as_str(),
        "label": credential.label,
        "state": credential.status(now).name(),
        "created_at": credential.created_at.to_string(),
        "expires_at": text(credential.expires_at),
        "revoked_at": text(credential.revoked_at),
        "last_used_at": text(credential.last_used_at),
        "old_secret_until": text(credential.old_secret_until(now)),
    })
}

/// A recorded import.
pub fn import(entry: &ImportEntry) -> Value {
    let hash = entry.hash.map(|hash| hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    json!({
        "import_id": entry.id,
        "at": entry.at.to_string(),
        "actor": entry.actor,
        "source": entry.source,
        "file": entry.file,
        "idempotency_key": entry.key,
        "sha256": hash,
        "new": entry.counts.new,
        "corrected": entry.counts.corrected,
        "unchanged": entry.counts.unchanged,
        "duplicates": entry.counts.duplicates,
        "warnings": entry.warnings,
        "data_version": entry.version,
        "is_rejected": entry.is_rejected,
        "messages": entry.messages,
    })
}

/// An entry of the audit log.
pub fn audit_entry(entry: &AuditEntry) -> Value {
    let AuditEntry { id, at, actor, source, action, org, subject, detail } = entry;
    json!({
        "id": id, "at": at.to_string(), "actor": actor, "source": source, "action": action,
        "organisation": org, "subject": subject, "detail": detail,
    })
}
