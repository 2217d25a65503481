//! What goes into a store and comes out of it. No SQL, no driver.

use std::fmt;
use std::sync::Arc;

use batchscan_model::{Batch, ClientId, DateRange, OrgId, Position, UtcInstant};
use tokio::sync::mpsc;

use crate::deflate::Deflated;

/// How a store is opened.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// Whether a new one is made where there is none.
    pub make_if_missing: bool,
    /// Whether a copy that was not finished may be opened, to go on with it.
    pub unfinished_copy: bool,
    /// Which hosts are read from, where there are several.
    pub read_from: ReadFrom,
    /// Connections to each host at most.
    pub connections: usize,
}

impl Opening {
    /// A database that must be there.
    pub const EXISTING: Self = Self {
        make_if_missing: false,
        unfinished_copy: false,
        read_from: ReadFrom::Any,
        connections: CONNECTIONS_USUAL,
    };
    /// A database that is made if it is not there.
    pub const OR_MAKE: Self = Self { make_if_missing: true, ..Self::EXISTING };
    /// A database that is to be filled from another.
    pub const FOR_COPY: Self = Self { unfinished_copy: true, ..Self::OR_MAKE };
}

/// Connections to each host: enough to keep a host with eight cores busy, few enough for ten nodes on one database.
pub const CONNECTIONS_USUAL: usize = 16;

/// Which hosts are read from, where there are several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadFrom {
    /// All of them in turn.
    #[default]
    Any,
    /// Standbys, as long as one of them is up to date.
    Standby,
}

/// How new an answer has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// A standby's word will do.
    Any,
    /// The primary's word alone.
    Latest,
}

/// Who is asking: an organisation, through one of its credentials.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Caller {
    /// The organisation whose batches are read.
    pub org: OrgId,
    /// The credential that was used.
    pub client: ClientId,
}

/// The state of an organisation's batches. Equal versions mean equal batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DataVersion {
    /// Rises with every change.
    pub number: i64,
    /// Random, drawn at every change: a restored backup that grows again cannot repeat a version.
    pub mark: i64,
}

/// What to read.
#[derive(Clone, Debug)]
pub struct PageRequest {
    /// The window.
    pub range: DateRange,
    /// Where a walk goes on; `None` at its start.
    pub walk: Option<Walk>,
    /// How much at most.
    pub limit: PageLimit,
    /// What the page's text begins with, so that an envelope needs no second copy.
    pub opening: &'static str,
    /// The number of the latest data version that the caller has seen: nothing older is an answer.
    pub seen: i64,
    /// What time it is: a credential may have expired.
    pub now: UtcInstant,
    /// The form the caller likes best. A store that has no other gives plain text.
    pub form: Form,
}

/// What a page's text may come as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Text as it is.
    Plain,
    /// Compressed, if some of it is kept so (decision 049).
    Deflated,
}

impl PageRequest {
    /// No batches at all: for asking the standing alone.
    pub fn nothing(now: UtcInstant) -> Self {
        let limit = PageLimit { rows: 0, bytes: 0 };
        Self { range: DateRange::default(), walk: None, limit, opening: "", seen: 0, now, form: Form::Plain }
    }
}

/// A walk over pages that is under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walk {
    /// The last batch that was given out.
    pub after: Position,
    /// The data version's number when the walk began.
    pub since: i64,
    /// The number of the version that its last page was read at. An older one could hold a batch that was given out
    /// already at the place it had before.
    pub seen: i64,
}

/// A page ends with whichever comes first. A store may end it a little before the limit of bytes, or with the pack that
/// reaches it.
#[derive(Clone, Copy, Debug)]
pub struct PageLimit {
    /// This many batches.
    pub rows: usize,
    /// The batch with which the text reaches this many bytes.
    pub bytes: usize,
}

/// What the store answers to a [`PageRequest`].
#[derive(Debug)]
pub enum Answer<T> {
    /// What the caller made of the data version: no batch was read.
    Known(T),
    /// The batches.
    Page(Page),
    /// The credential was revoked, has expired, or is gone with its organisation.
    DeadCredential,
}

/// Some batches in order, as JSON text.
#[derive(Debug)]
pub struct Page {
    /// The version they were read at.
    pub version: DataVersion,
    /// The opening, then the batches, separated by commas.
    pub text: PageText,
    /// How many batches.
    pub rows: usize,
    /// The last batch, if others follow it.
    pub next: Option<Position>,
}

/// A page's text.
#[derive(Debug)]
pub enum PageText {
    /// As it is.
    Plain(Vec<u8>),
    /// As a piece of a gzip body.
    Deflated(Deflated),
}

impl PageText {
    /// How long the text is when it is not compressed.
    pub fn text_bytes(&self) -> usize {
        match self {
            PageText::Plain(text) => text.len(),
            PageText::Deflated(piece) => usize::try_from(piece.text_bytes()).unwrap_or(usize::MAX),
        }
    }

    /// Adds to its end.
    pub fn push(&mut self, more: &[u8]) {
        match self {
            PageText::Plain(text) => text.extend_from_slice(more),
            PageText::Deflated(piece) => piece.push_text(more),
        }
    }
}

/// An organisation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Organisation {
    /// Its number.
    pub id: OrgId,
    /// Its name.
    pub name: String,
    /// When it was added.
    pub created_at: UtcInstant,
    /// The state of its batches.
    pub version: DataVersion,
    /// How many batches it has.
    pub batches: u64,
    /// How many credentials of it are alive.
    pub credentials: u64,
}

/// The longest name of an organisation, in characters: it has to fit a table.
const ORG_NAME_CHARS_MAX: usize = 100;

/// An organisation's name: not empty, without control characters or blanks around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrgName(String);

impl OrgName {
    /// The only door.
    pub fn new(text: &str) -> Option<Self> {
        let fits = !text.is_empty() && text.chars().count() <= ORG_NAME_CHARS_MAX && text.trim() == text;
        (fits && !text.chars().any(char::is_control)).then(|| Self(text.to_owned()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What a store knows of a client id.
#[derive(Clone, Debug)]
pub struct KnownClient {
    /// The credential, if there is one.
    pub credential: Option<Credential>,
    /// Whether that is the last word, or a standby's that may be behind.
    pub is_latest: bool,
}

/// A credential as authentication needs it.
#[derive(Clone, Debug)]
pub struct Credential {
    /// Whose it is.
    pub org: OrgId,
    /// When it ends by itself.
    pub expires_at: Option<UtcInstant>,
    /// Whether it was ended.
    pub revoked: bool,
    /// Its secrets.
    pub secrets: Vec<StoredSecret>,
}

/// A secret as it is kept: a keyed hash.
#[derive(Clone)]
pub struct StoredSecret {
    /// HMAC-SHA-256 of the secret.
    pub hash: [u8; 32],
    /// When it retires after a rotation.
    pub retires_at: Option<UtcInstant>,
}

impl fmt::Debug for StoredSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredSecret").field("retires_at", &self.retires_at).finish_non_exhaustive()
    }
}

/// A credential to be added.
#[derive(Clone, Debug)]
pub struct NewCredential {
    /// Its id.
    pub client: ClientId,
    /// What it is for, in the operator's words.
    pub label: String,
    /// When it ends by itself.
    pub expires_at: Option<UtcInstant>,
    /// The hash of its first secret.
    pub secret_hash: [u8; 32],
    /// When it is added.
    pub now: UtcInstant,
}

/// A new secret for a credential.
#[derive(Clone, Debug)]
pub struct Rotation {
    /// The hash of the new secret.
    pub secret_hash: [u8; 32],
    /// When the one before it retires.
    pub retire_at: UtcInstant,
    /// When the rotation happens.
    pub now: UtcInstant,
}

/// A credential as an operator sees it: no secret, not even hashed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CredentialInfo {
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
    /// When each of its secrets retires; one that does not is `None`.
    pub secrets: Vec<Option<UtcInstant>>,
}

/// What a key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyPurpose {
    /// Signing access tokens.
    Token,
    /// Sealing cursors.
    Cursor,
    /// Hashing client secrets.
    Secret,
}

/// A key that all processes on the database share.
#[derive(Clone)]
pub struct ServiceKey {
    /// Its name.
    pub kid: String,
    /// What it is for.
    pub purpose: KeyPurpose,
    /// The key itself.
    pub bytes: [u8; 32],
    /// When it was made.
    pub created_at: UtcInstant,
}

impl fmt::Debug for ServiceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceKey")
            .field("kid", &self.kid)
            .field("purpose", &self.purpose)
            .finish_non_exhaustive()
    }
}

/// How new keys take over from the old ones.
#[derive(Clone, Copy, Debug)]
pub struct KeyRotation {
    /// When the new ones are made.
    pub now: UtcInstant,
    /// Old ones that were followed by another before this instant are removed.
    pub forget_before: UtcInstant,
}

/// A host of the database, as this process sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct HostHealth {
    /// Its name and port.
    pub host: String,
    /// Whether it answers.
    pub is_up: bool,
    /// Whether it is the one that is written to.
    pub is_primary: bool,
    /// Whether it says of itself that it can. Two that do are one too many.
    pub takes_writes: bool,
    /// Whether it is read from: the primary, or a standby that is not behind.
    pub is_current: bool,
    /// How far it is behind, for a standby that follows a primary.
    pub lag_secs: Option<f64>,
    /// Connections in use.
    pub connections: usize,
}

/// A batch on its way into the store.
#[derive(Clone, Debug)]
pub struct ImportRow {
    /// Its place in the order.
    pub position: Position,
    /// Its JSON text.
    pub json: String,
}

impl From<&Batch> for ImportRow {
    fn from(batch: &Batch) -> Self {
        Self { position: batch.position(), json: batch.to_json() }
    }
}

/// What a reader of files sends to an import.
#[derive(Debug)]
pub enum ImportStep {
    /// More batches, in the order of the file.
    Rows(Vec<ImportRow>),
    /// The file is whole and sound: keep it.
    Commit,
    /// Try it out, and keep nothing.
    DryRun,
}

/// The receiving end of an import. If the sender goes away without a verdict, nothing is kept.
pub type ImportRows = mpsc::Receiver<ImportStep>;

/// What an import did. Every batch of the file is counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportCounts {
    /// Ids that were not there before.
    pub new: u64,
    /// Ids that were there with other values.
    pub corrected: u64,
    /// Ids that were there just so.
    pub unchanged: u64,
    /// Batches superseded by a later one of the same id in the same file (decision 040).
    pub repeated: u64,
}

/// Told how far a long job is: done and in all, in units of the job.
pub type Progress = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// What an examination found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Examination {
    /// The schema's number.
    pub schema: i32,
    /// Organisations looked at.
    pub orgs: u64,
    /// Batches looked at.
    pub batches: u64,
    /// What is wrong, in sentences; empty if all is well. At most [`Examination::FINDINGS_MAX`].
    pub findings: Vec<String>,
}

impl Examination {
    /// More findings than this say nothing new.
    pub const FINDINGS_MAX: usize = 50;
}
