//! The content of a whole database, as it is copied from one store into another.

use batchscan_model::{OrgId, UtcInstant};
use ring::digest::{Context, SHA256};
use tokio::sync::mpsc;

use crate::credentials::Credential;
use crate::keys::{KeyPurpose, ServiceKey};
use crate::page::DataVersion;

pub(crate) const ROWS_PER_STEP: usize = 512;

/// Which organisations to dump.
#[derive(Clone, Debug)]
pub(crate) enum OrgFilter {
    All,
    Only(Vec<OrgId>),
}

impl OrgFilter {
    pub(crate) fn includes(&self, org: OrgId) -> bool {
        match self {
            OrgFilter::All => true,
            OrgFilter::Only(orgs) => orgs.contains(&org),
        }
    }
}

/// A part of a database, in this order: the shared part; then for each organisation the organisation, its batches in
/// order, the moved ones, and the end.
#[derive(Clone, Debug)]
pub(crate) enum DumpStep {
    Shared(Shared),
    Org(Box<OrgRecord>),
    Batches(Vec<BatchRecord>),
    Moved(Vec<MovedRecord>),
    OrgEnd,
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
    pub(crate) versions: Vec<VersionRecord>,
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

/// A digest of an organisation. Equal digests mean equal responses to every request.
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
    /// Without `last_used_at`, which changes while the service runs, and `imported_at`, which no client sees.
    pub(crate) fn new(org: &OrgRecord) -> Self {
        let mut builder = Self { batches: 0, digest: Context::new(&SHA256) };
        let OrgRecord { id, name, created_at, version, moved_version, pruned_version, .. } = org;
        let micros = |at: Option<UtcInstant>| at.map_or(i64::MIN, UtcInstant::micros);
        let DataVersion { number, mark } = version;
        builder.integers(&[id.0, created_at.micros(), *number, *mark, *moved_version, *pruned_version]);
        builder.text(name);
        for VersionRecord { version, created_at } in &org.versions {
            builder.integers(&[version.number, version.mark, *created_at]);
        }
        for credential in &org.credentials {
            builder.text(credential.client.as_str());
            builder.text(&credential.label);
            let (expires, revoked) = (micros(credential.expires_at), micros(credential.revoked_at));
            builder.integers(&[credential.created_at.micros(), expires, revoked]);
            for secret in &credential.secrets {
                builder.digest.update(&secret.hash);
                builder.integers(&[secret.created_at.micros(), micros(secret.retires_at)]);
            }
        }
        builder
    }

    pub(crate) fn add_batches(&mut self, batches: &[BatchRecord]) {
        for batch in batches {
            self.batches += 1;
            self.integers(&[batch.created_at, batch.version]);
            self.text(&batch.id);
            self.text(&batch.json);
        }
    }

    pub(crate) fn add_moved(&mut self, moved: &[MovedRecord]) {
        for batch in moved {
            self.text(&batch.id);
            self.integers(&[batch.version]);
        }
    }

    pub(crate) fn finish(self) -> Fingerprint {
        let digest = self.digest.finish();
        let digest = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        Fingerprint { batches: self.batches, digest }
    }

    fn integers(&mut self, integers: &[i64]) {
        integers.iter().for_each(|integer| self.digest.update(&integer.to_be_bytes()));
    }

    /// Prefixed with the length, so that two texts cannot be confused with one.
    fn text(&mut self, text: &str) {
        self.digest.update(&(text.len() as u64).to_be_bytes());
        self.digest.update(text.as_bytes());
    }
}
