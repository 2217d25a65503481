//! The record of imports: what was delivered, when and by whom.

use batchscan_model::{OrgId, UtcInstant};

use crate::errors::AdminError;
use crate::types::ImportCounts;

/// Where the batches of an import come from.
#[derive(Clone, Debug, Default)]
pub struct ImportSource {
    /// The name of the file.
    pub file: Option<String>,
    /// Identifies the delivery: a repeated import with the same key changes nothing and returns the first result.
    pub key: Option<String>,
    /// SHA-256 of the file.
    pub hash: Option<[u8; 32]>,
    /// The import fails if the name belongs to another organisation by now.
    pub org: Option<OrgId>,
}

impl ImportSource {
    /// Whether the organisation with this name is the one that the import is for.
    pub(crate) fn require_org(&self, id: OrgId, name: &str) -> Result<(), AdminError> {
        match self.org {
            Some(expected) if expected != id => Err(AdminError::OrgNotFound(name.to_owned())),
            _ => Ok(()),
        }
    }
}

/// The result of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImportResult {
    /// Its number in the organisation; `None` for a dry run.
    pub id: Option<i64>,
    /// The number of batches by their change.
    pub counts: ImportCounts,
    /// How many values cannot be right.
    pub warnings: u64,
    /// Whether the same delivery was imported before, with this result.
    pub is_repeated: bool,
}

/// A recorded import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportEntry {
    /// Its number in the organisation.
    pub id: i64,
    /// When.
    pub at: UtcInstant,
    /// By whom.
    pub actor: String,
    /// From which host.
    pub source: String,
    /// The name of the file.
    pub file: Option<String>,
    /// The key of the delivery.
    pub key: Option<String>,
    /// SHA-256 of the file.
    pub hash: Option<[u8; 32]>,
    /// The number of batches by their change.
    pub counts: ImportCounts,
    /// How many values cannot be right.
    pub warnings: u64,
    /// The version of the organisation's batches afterwards.
    pub version: i64,
}

impl ImportEntry {
    /// The result for a repeated delivery. Fails if the key was used for another file.
    pub(crate) fn repeat(&self, source: &ImportSource) -> Result<ImportResult, AdminError> {
        if self.hash != source.hash {
            return Err(AdminError::KeyReused);
        }
        let Self { id, counts, warnings, .. } = *self;
        Ok(ImportResult { id: Some(id), counts, warnings, is_repeated: true })
    }
}

/// The numbers of an import as columns: new, corrected, unchanged and repeated batches, and warnings.
pub(crate) fn columns(counts: ImportCounts, warnings: u64) -> [i64; 5] {
    let ImportCounts { new, corrected, unchanged, repeated } = counts;
    [new, corrected, unchanged, repeated, warnings].map(u64::cast_signed)
}
