//! The content of a whole database, as it is copied from one store into another.

use batchscan_model::{OrgId, UtcInstant};
use ring::digest::{Context, SHA256};
use tokio::sync::mpsc;

use crate::audit::AuditEntry;
use crate::credentials::Credential;
use crate::imports::{ImportEntry, columns};
use crate::keys::{KeyPurpose, ServiceKey};
use crate::operator_tokens::OperatorToken;
use crate::page::DataVersion;

pub(crate) const ROWS_PER_STEP: usize = 512;

/// Which parts of a database to dump.
#[derive(Clone, Debug)]
pub(crate) struct DumpFilter {
    /// `None` for all.
    orgs: Option<Vec<OrgId>>,
    /// Whether to dump operator tokens and the audit log.
    with_admin: bool,
}

impl DumpFilter {
    pub(crate) const ALL: Self = Self { orgs: None, with_admin: true };
    pub(crate) const ADMIN: Self = Self { orgs: Some(Vec::new()), with_admin: true };
    pub(crate) const SHARED: Self = Self { orgs: Some(Vec::new()), with_admin: false };

    pub(crate) fn only_org(org: OrgId) -> Self {
        Self { orgs: Some(vec![org]), with_admin: false }
    }

    pub(crate) fn with_orgs(orgs: Vec<OrgId>) -> Self {
        Self { orgs: Some(orgs), with_admin: true }
    }

    pub(crate) fn includes(&self, org: OrgId) -> bool {
        self.orgs.as_ref().is_none_or(|orgs| orgs.contains(&org))
    }

    pub(crate) fn includes_admin(&self) -> bool {
        self.with_admin
    }
}

/// A part of a database, in this order: the shared part; for each organisation the organisation, its batches in order,
/// the moved ones, its versions, its imports, and the end; the operator tokens, the audit log, and the end.
#[derive(Clone, Debug)]
pub(crate) enum DumpStep {
    Shared(Shared),
    Org(Box<OrgRecord>),
    Batches(Vec<BatchRecord>),
    Moved(Vec<MovedRecord>),
    Versions(Vec<VersionRecord>),
    Imports(Vec<ImportEntry>),
    Admin(Vec<OperatorToken>),
    Audit(Vec<AuditEntry>),
    End,
}

pub(crate) type DumpSender = mpsc::Sender<DumpStep>;
pub(crate) type DumpReceiver = mpsc::Receiver<DumpStep>;

/// What all organisations of a database share.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub(crate) keys: Vec<ServiceKey>,
    /// The highest number an organisation ever had. Numbers are not reused.
    pub(crate) last_org: i64,
}

impl Shared {
    /// The id of the key that hashes secrets. It is never rotated, so it identifies the source of a copy.
    pub(crate) fn source_key(&self) -> &str {
        self.keys.iter().find(|key| key.purpose == KeyPurpose::Secret).map_or("", |key| &key.kid)
    }
}

/// An organisation with its credentials.
#[derive(Clone, Debug)]
pub(crate) struct OrgRecord {
    pub(crate) id: OrgId,
    pub(crate) name: String,
    pub(crate) created_at: UtcInstant,
    pub(crate) version: DataVersion,
    /// The last version in which a batch moved in the order.
    pub(crate) moved_version: i64,
    pub(crate) imported_at: Option<UtcInstant>,
    /// The last version whose removals were deleted.
    pub(crate) pruned_version: i64,
    pub(crate) credentials: Vec<Credential>,
}

/// A row of the batch table.
#[derive(Clone, Debug)]
pub(crate) struct BatchRecord {
    pub(crate) created_at: i64,
    pub(crate) id: String,
    pub(crate) json: String,
    pub(crate) version: i64,
}

/// A version of an organisation's batches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VersionRecord {
    pub(crate) version: DataVersion,
    pub(crate) created_at: i64,
}

/// A batch whose creation date was corrected or that was removed, with the version of that.
#[derive(Clone, Debug)]
pub(crate) struct MovedRecord {
    pub(crate) id: String,
    pub(crate) version: i64,
}

/// A digest of an organisation, or of what is not part of one.
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

    pub(crate) fn add(&mut self, step: &DumpStep) {
        match step {
            DumpStep::Shared(shared) => shared.keys.iter().for_each(|key| self.key(key)),
            DumpStep::Org(org) => self.org(org),
            DumpStep::Batches(batches) => {
                self.batches += batches.len() as u64;
                for BatchRecord { created_at, id, json, version } in batches {
                    self.integers(&[*created_at, *version]);
                    self.texts([id, json]);
                }
            }
            DumpStep::Moved(moved) => {
                for MovedRecord { id, version } in moved {
                    self.texts([id]);
                    self.integers(&[*version]);
                }
            }
            DumpStep::Versions(versions) => {
                for VersionRecord { version, created_at } in versions {
                    self.integers(&[version.number, version.mark, *created_at]);
                }
            }
            DumpStep::Imports(imports) => imports.iter().for_each(|entry| self.import(entry)),
            DumpStep::Admin(tokens) => tokens.iter().for_each(|token| self.token(token)),
            DumpStep::Audit(entries) => entries.iter().for_each(|entry| self.audit_entry(entry)),
            DumpStep::End => {}
        }
    }

    pub(crate) fn finish(self) -> Fingerprint {
        let digest = self.digest.finish();
        let digest = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        Fingerprint { batches: self.batches, digest }
    }

    fn key(&mut self, key: &ServiceKey) {
        self.texts([&key.kid, key.purpose.name()]);
        self.digest.update(&key.bytes);
        self.integers(&[key.created_at.micros()]);
    }

    /// Without `last_used_at`, which changes while the service runs, and `imported_at`, which no client sees.
    fn org(&mut self, org: &OrgRecord) {
        let OrgRecord { id, name, created_at, version, moved_version, pruned_version, .. } = org;
        let DataVersion { number, mark } = version;
        self.integers(&[id.0, created_at.micros(), *number, *mark, *moved_version, *pruned_version]);
        self.texts([name]);
        for credential in &org.credentials {
            self.texts([credential.client.as_str(), &credential.label]);
            self.instants([Some(credential.created_at), credential.expires_at, credential.revoked_at]);
            for secret in &credential.secrets {
                self.digest.update(&secret.hash);
                self.instants([Some(secret.created_at), secret.retires_at]);
            }
        }
    }

    fn import(&mut self, entry: &ImportEntry) {
        let ImportEntry { id, at, actor, source, file, key, hash, counts, warnings, version } = entry;
        self.integers(&[*id, at.micros(), *version]);
        self.integers(&columns(*counts, *warnings));
        self.texts([actor, source]);
        self.optional_texts([file, key]);
        self.digest.update(&hash.unwrap_or_default());
    }

    /// Without `last_used_at`.
    fn token(&mut self, token: &OperatorToken) {
        self.texts([token.id.as_str(), token.role.name(), &token.label]);
        self.optional_texts([&token.org]);
        self.digest.update(&token.hash);
        self.instants([Some(token.created_at), token.expires_at, token.revoked_at]);
    }

    fn audit_entry(&mut self, entry: &AuditEntry) {
        let AuditEntry { id, at, actor, source, action, org, subject, detail } = entry;
        self.integers(&[*id, at.micros()]);
        self.texts([actor, source, action]);
        self.optional_texts([org, subject, detail]);
    }

    fn integers(&mut self, integers: &[i64]) {
        integers.iter().for_each(|integer| self.digest.update(&integer.to_be_bytes()));
    }

    fn instants<const N: usize>(&mut self, instants: [Option<UtcInstant>; N]) {
        self.integers(&instants.map(|at| at.map_or(i64::MIN, UtcInstant::micros)));
    }

    /// Prefixed with the length, so that two texts cannot be confused with one.
    fn texts<const N: usize>(&mut self, texts: [&str; N]) {
        for text in texts {
            self.digest.update(&(text.len() as u64).to_be_bytes());
            self.digest.update(text.as_bytes());
        }
    }

    fn optional_texts<const N: usize>(&mut self, texts: [&Option<String>; N]) {
        for text in texts {
            match text {
                Some(text) => self.texts([text]),
                None => self.integers(&[-1]),
            }
        }
    }
}
