//! The other values that go into a store and come out of it. No SQL, no driver.

use std::sync::Arc;

use batchscan_model::{Batch, Field, Position};
use tokio::sync::mpsc;

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
    /// The file is complete and valid.
    End(ImportEnd),
}

/// How an import ends.
#[derive(Clone, Debug, Default)]
pub struct ImportEnd {
    /// Whether to roll back.
    pub dry_run: bool,
    /// How many values cannot be right.
    pub warnings: u64,
    /// The first of them.
    pub messages: Vec<String>,
    /// The fields that the file has no column or no values for.
    pub missing: Vec<Field>,
    /// The fields that the file has values for, but not in every row.
    pub incomplete: Vec<Field>,
    /// Whether it has ids of digits only, which a spreadsheet may have shortened.
    pub has_number_ids: bool,
}

/// The receiving end of an import. Nothing is kept if the sender is dropped before [`ImportStep::End`].
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
    pub duplicates: u64,
}

/// Called with the work done and the total, in units of the job.
pub type Progress = Arc<dyn Fn(u64, u64) + Send + Sync>;
