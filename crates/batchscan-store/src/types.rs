//! The other values that go into a store and come out of it. No SQL, no driver.

use std::sync::Arc;

use batchscan_model::printable::is_invisible;
use batchscan_model::{Batch, OrgId, Position, UtcInstant};
use tokio::sync::mpsc;

use crate::page::DataVersion;

/// How a store is opened.
#[derive(Clone, Copy, Debug)]
pub struct OpenOptions {
    /// Whether a missing database is created.
    pub create: bool,
    /// Whether an unfinished copy may be opened, to continue it.
    pub allow_unfinished_copy: bool,
    /// Which hosts serve reads, if there are several.
    pub read_from: ReadFrom,
    /// The maximum number of connections to each host.
    pub connections: usize,
}

impl OpenOptions {
    /// The database must exist.
    pub const EXISTING: Self = Self {
        create: false,
        allow_unfinished_copy: false,
        read_from: ReadFrom::Any,
        connections: CONNECTIONS_DEFAULT,
    };
    /// The database is created if it is missing.
    pub const CREATE: Self = Self { create: true, ..Self::EXISTING };
    /// The target of a copy.
    pub const FOR_COPY: Self = Self { allow_unfinished_copy: true, ..Self::CREATE };
}

/// Connections to each host: enough for a host with eight cores, few enough for ten nodes on one database.
pub const CONNECTIONS_DEFAULT: usize = 16;

/// Which hosts serve reads, if there are several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadFrom {
    /// All of them in turn.
    #[default]
    Any,
    /// Standbys, as long as one of them is up to date.
    Standby,
}

/// Which hosts may answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// Primary and standbys.
    Any,
    /// The primary only.
    Latest,
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
    /// How many credentials it has that are not revoked.
    pub credentials: u64,
}

/// An organisation without the numbers that have to be counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrgOverview {
    /// Its number.
    pub id: OrgId,
    /// Its name.
    pub name: Arc<str>,
    /// The state of its batches.
    pub version: DataVersion,
    /// When an import last changed its batches.
    pub imported_at: Option<UtcInstant>,
}

/// The maximum length of an organisation's name, so that it fits a table.
const ORG_NAME_CHARS_MAX: usize = 100;

/// An organisation's name: not empty, nothing invisible, no leading or trailing spaces, and one segment of a URL's path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrgName(String);

impl OrgName {
    /// Validates a name.
    pub fn new(text: &str) -> Option<Self> {
        let fits = !text.is_empty() && text.chars().count() <= ORG_NAME_CHARS_MAX && text.trim() == text;
        let is_allowed = !text.chars().any(|c| is_invisible(c) || c == '/') && !matches!(text, "." | "..");
        (fits && is_allowed).then(|| Self(text.to_owned()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The state of a database host, as this process sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct HostHealth {
    /// Its name and port.
    pub host: String,
    /// Whether it responds.
    pub is_up: bool,
    /// Whether it is the primary.
    pub is_primary: bool,
    /// Whether it accepts writes. More than one such host means a split cluster.
    pub takes_writes: bool,
    /// Whether reads may go to it: the primary, or a standby that is up to date.
    pub is_current: bool,
    /// The replication lag of a standby.
    pub lag_secs: Option<f64>,
    /// Connections in use.
    pub connections: usize,
}

/// A batch to be imported.
#[derive(Clone, Debug)]
pub struct ImportRow {
    /// Its position in the batch order.
    pub position: Position,
    /// Its JSON text.
    pub json: String,
}

impl From<&Batch> for ImportRow {
    fn from(batch: &Batch) -> Self {
        Self { position: batch.position(), json: batch.to_json() }
    }
}

/// What a file reader sends to an import.
#[derive(Debug)]
pub enum ImportStep {
    /// More batches, in file order.
    Rows(Vec<ImportRow>),
    /// The file is complete and valid: commit.
    Commit {
        /// How many values cannot be right.
        warnings: u64,
    },
    /// The file is complete and valid: roll back.
    DryRun {
        /// How many values cannot be right.
        warnings: u64,
    },
}

/// The receiving end of an import. Nothing is kept if the sender is dropped before [`ImportStep::Commit`].
pub type ImportRows = mpsc::Receiver<ImportStep>;

/// The result of an import. Every batch of the file is counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportCounts {
    /// Batches with a new id.
    pub new: u64,
    /// Batches with a known id and other values.
    pub corrected: u64,
    /// Batches that were already stored.
    pub unchanged: u64,
    /// Batches that are in the same file again: the last one counts (decision 040).
    pub repeated: u64,
}

/// Called with the work done and the total, in units of the job.
pub type Progress = Arc<dyn Fn(u64, u64) + Send + Sync>;
