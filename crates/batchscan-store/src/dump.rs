//! What a whole database is made of, on its way from one store into another.

use batchscan_model::{ClientId, OrgId, UtcInstant};
use ring::digest::{Context, SHA256};
use tokio::sync::mpsc;

use crate::{DataVersion, KeyPurpose, ServiceKey};

/// Batches, or notes of moved ones, sent at once.
pub(super) const ROWS_PER_STEP: usize = 512;

/// Which organisations to dump.
#[derive(Clone, Debug)]
pub enum Which {
    /// Every one.
    All,
    /// These alone.
    These(Vec<OrgId>),
}

impl Which {
    pub(super) fn includes(&self, org: OrgId) -> bool {
        match self {
            Which::All => true,
            Which::These(orgs) => orgs.contains(&org),
        }
    }
}

/// A piece of a database. They come in this order: what all share; then, for each organisation, itself, its batches
/// in order, those of them that moved, and its end.
#[derive(Clone, Debug)]
pub enum DumpStep {
    /// What all organisations share.
    Shared(Shared),
    /// An organisation begins.
    Org(Box<OrgRecord>),
    /// Some of its batches.
    Batches(Vec<BatchRecord>),
    /// Some of those whose creation date was corrected.
    Moved(Vec<MovedRecord>),
    /// It is whole.
    OrgEnd,
}

/// The sending end of a dump.
pub type DumpSteps = mpsc::Sender<DumpStep>;
/// The receiving end of a dump.
pub type DumpSource = mpsc::Receiver<DumpStep>;

/// What all organisations of a database share.
#[derive(Clone, Debug)]
pub struct Shared {
    /// The service's keys.
    pub keys: Vec<ServiceKey>,
    /// The last number that an organisation was given: none is given twice.
    pub last_org: i64,
}

impl Shared {
    /// The name of the key that hashes secrets. It is never rotated, so it tells whose copy a database is.
    pub fn source_key(&self) -> &str {
        self.keys.iter().find(|key| key.purpose == KeyPurpose::Secret).map_or("", |key| &key.kid)
    }
}

/// An organisation with all that belongs to it, but for its batches.
#[derive(Clone, Debug)]
pub struct OrgRecord {
    /// Its number.
    pub id: OrgId,
    /// Its name.
    pub name: String,
    /// When it was added.
    pub created_at: UtcInstant,
    /// The state of its batches.
    pub version: DataVersion,
    /// The last version in which a batch changed its place in the order.
    pub moved_version: i64,
    /// Its credentials.
    pub credentials: Vec<CredentialRecord>,
}

/// A credential with its secrets' hashes.
#[derive(Clone, Debug)]
pub struct CredentialRecord {
    /// Its id.
    pub client: ClientId,
    /// What it is for.
    pub label: String,
    /// When it was issued.
    pub created_at: UtcInstant,
    /// When it ends by itself.
    pub expires_at: Option<UtcInstant>,
    /// When it was ended.
    pub revoked_at: Option<UtcInstant>,
    /// When it last got a token.
    pub last_used_at: Option<UtcInstant>,
    /// Its secrets, oldest first.
    pub secrets: Vec<SecretRecord>,
}

/// A secret as it is kept.
#[derive(Clone)]
pub struct SecretRecord {
    /// Its keyed hash.
    pub hash: [u8; 32],
    /// When it was made.
    pub created_at: UtcInstant,
    /// When it retires.
    pub retires_at: Option<UtcInstant>,
}

impl std::fmt::Debug for SecretRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SecretRecord").finish_non_exhaustive()
    }
}

/// A batch as it is stored.
#[derive(Clone, Debug)]
pub struct BatchRecord {
    /// Its creation instant, in microseconds.
    pub created_at: i64,
    /// Its id.
    pub id: String,
    /// Its JSON text.
    pub json: String,
    /// The version that wrote it.
    pub version: i64,
}

/// A batch whose creation date was corrected.
#[derive(Clone, Debug)]
pub struct MovedRecord {
    /// Its id.
    pub id: String,
    /// The last version in which it changed its place.
    pub version: i64,
}

/// How many batches an organisation has, and a digest of all that is its own. Equal digests mean equal answers to
/// every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    /// How many batches.
    pub batches: u64,
    /// SHA-256.
    pub digest: [u8; 32],
}

/// Takes the fingerprint of an organisation that is dumped.
pub(super) struct Fingerprinting {
    batches: u64,
    digest: Context,
}

impl Fingerprinting {
    pub(super) fn new() -> Self {
        Self { batches: 0, digest: Context::new(&SHA256) }
    }

    /// When a credential was last used is left out: it goes on changing while the service runs.
    pub(super) fn org(&mut self, org: &OrgRecord) {
        let OrgRecord { id, name, created_at, version, moved_version, credentials } = org;
        self.numbers(&[id.0, created_at.micros(), version.number, version.mark, *moved_version]);
        self.text(name);
        for credential in credentials {
            self.text(credential.client.as_str());
            self.text(&credential.label);
            let instant = |at: Option<UtcInstant>| at.map_or(i64::MIN, UtcInstant::micros);
            let (expires, revoked) = (instant(credential.expires_at), instant(credential.revoked_at));
            self.numbers(&[credential.created_at.micros(), expires, revoked]);
            for secret in &credential.secrets {
                self.digest.update(&secret.hash);
                self.numbers(&[secret.created_at.micros(), instant(secret.retires_at)]);
            }
        }
    }

    pub(super) fn batches(&mut self, batches: &[BatchRecord]) {
        for batch in batches {
            self.batches += 1;
            self.numbers(&[batch.created_at, batch.version]);
            self.text(&batch.id);
            self.text(&batch.json);
        }
    }

    pub(super) fn moved(&mut self, moved: &[MovedRecord]) {
        for batch in moved {
            self.text(&batch.id);
            self.numbers(&[batch.version]);
        }
    }

    pub(super) fn finish(self) -> Fingerprint {
        let mut digest = [0u8; 32];
        digest.copy_from_slice(self.digest.finish().as_ref());
        Fingerprint { batches: self.batches, digest }
    }

    fn numbers(&mut self, numbers: &[i64]) {
        numbers.iter().for_each(|number| self.digest.update(&number.to_be_bytes()));
    }

    /// With its length before it, so that two texts cannot be taken for one.
    fn text(&mut self, text: &str) {
        self.digest.update(&(text.len() as u64).to_be_bytes());
        self.digest.update(text.as_bytes());
    }
}
