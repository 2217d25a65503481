//! Checks that a stored text is exactly the text of its batch, and is stored under the key of that batch; that versions
//! are consistent; and what a repair does.
//!
//! A repair gives an organisation a new version. What clients may have missed or read wrongly gets that version, so that
//! `/v2/changes` returns it again, and positions stay valid.

use batchscan_model::{Batch, OrgId};

use crate::audit::Change;
use crate::page::DataVersion;

/// Batches checked between two progress reports.
pub(crate) const BATCHES_PER_STEP: u64 = 10_000;

/// The result of a check of the database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DoctorReport {
    /// The schema version.
    pub schema: i32,
    /// Organisations checked.
    pub orgs: u64,
    /// Batches checked.
    pub batches: u64,
    /// The problems found, at most [`DoctorReport::FINDINGS_MAX`] and a note that the check stopped.
    pub findings: Vec<String>,
}

impl DoctorReport {
    /// The check stops after this many problems.
    pub const FINDINGS_MAX: usize = 50;

    /// Checks one batch. Returns `false` when the check has to stop.
    pub(crate) fn check_batch(&mut self, org: &str, created_at: i64, id: &str, json: &str) -> bool {
        self.batches += 1;
        problem((id, created_at), json)
            .is_none_or(|what| self.add(format!("batch \"{id}\" of \"{org}\": {what}; import it again")))
    }

    /// Adds a problem. Returns `false` when the check has to stop.
    pub(crate) fn add(&mut self, finding: String) -> bool {
        self.findings.push(finding);
        if self.findings.len() < DoctorReport::FINDINGS_MAX {
            return true;
        }
        self.findings.push("the check stopped here; there may be more problems".into());
        false
    }

    pub(crate) fn add_without_org(&mut self, batches: u64) {
        if batches > 0 {
            self.add(format!("batches without an organisation: {batches}; {REPAIR} deletes them"));
        }
    }

    pub(crate) fn check_versions(&mut self, org: &OrgVersions) {
        let OrgVersions { name, newer, .. } = org;
        if *newer > 0 {
            self.add(format!(
                "batches or versions newer than the version of \"{name}\": {newer}; run {REPAIR}"
            ));
        }
        if org.is_unrecorded() {
            self.add(format!(
                "the version of \"{name}\" is not recorded, so clients could not continue from it; run {REPAIR}"
            ));
        }
    }
}

pub(crate) const REPAIR: &str = "`batchscan doctor --repair`";

/// Counts the batches that a repair deletes.
pub(crate) const WITHOUT_ORG: &str =
    "SELECT count(*) FROM batch b WHERE NOT EXISTS (SELECT 1 FROM organisation o WHERE o.id = b.org_id)";
pub(crate) const DELETE_WITHOUT_ORG: [&str; 3] = [
    "DELETE FROM batch WHERE NOT EXISTS (SELECT 1 FROM organisation o WHERE o.id = org_id)",
    "DELETE FROM moved_batch WHERE NOT EXISTS (SELECT 1 FROM organisation o WHERE o.id = org_id)",
    "DELETE FROM data_version WHERE NOT EXISTS (SELECT 1 FROM organisation o WHERE o.id = org_id)",
];

pub(crate) fn deleted_without_org(batches: u64) -> Option<Change> {
    let detail = format!("batches without an organisation deleted: {batches}");
    let change = Change { action: ACTION, org: None, subject: None, detail: Some(detail) };
    (batches > 0).then_some(change)
}

const ACTION: &str = "doctor repair";

/// Selects all organisations for [`crate::rows::org_versions`].
pub(crate) const ORG_VERSIONS: &str = "
    SELECT id, name, version, version_mark,
           (SELECT count(*) FROM batch b WHERE b.org_id = o.id AND b.version > o.version)
           + (SELECT count(*) FROM moved_batch m WHERE m.org_id = o.id AND m.version > o.version)
           + (SELECT count(*) FROM data_version v WHERE v.org_id = o.id AND v.version > o.version),
           (SELECT count(*) FROM data_version v
            WHERE v.org_id = o.id AND v.version = o.version AND v.mark = o.version_mark)
    FROM organisation o ORDER BY id";

/// The versions of an organisation.
#[derive(Debug)]
pub(crate) struct OrgVersions {
    pub(crate) id: OrgId,
    pub(crate) name: String,
    pub(crate) version: DataVersion,
    /// Batches, removals and versions that are newer.
    pub(crate) newer: u64,
    /// Whether its version is recorded: 0 or 1.
    pub(crate) recorded: u64,
}

impl OrgVersions {
    pub(crate) fn is_consistent(&self) -> bool {
        self.newer == 0 && !self.is_unrecorded()
    }

    /// Version 0 has no batches, and no record.
    fn is_unrecorded(&self) -> bool {
        self.recorded == 0 && self.version.number > 0
    }

    /// What a repair did.
    pub(crate) fn repaired(&self, blocks: usize, marked: u64) -> Change {
        let mut detail = format!("new version; batches marked as changed: {marked}");
        if blocks > 0 {
            detail += &format!("; compressed blocks replaced: {blocks}");
        }
        Change::of_org(ACTION, &self.name).detail(detail)
    }
}

/// A version that was never used.
pub(crate) const UNUSED_VERSION: &str = "
    SELECT max(version) + 1 FROM (
        SELECT version FROM organisation WHERE id = $1
        UNION ALL SELECT moved_version FROM organisation WHERE id = $1
        UNION ALL SELECT pruned_version FROM organisation WHERE id = $1
        UNION ALL SELECT max(version) FROM batch WHERE org_id = $1
        UNION ALL SELECT max(version) FROM moved_batch WHERE org_id = $1
        UNION ALL SELECT max(version) FROM data_version WHERE org_id = $1) AS used";
/// Clients may have read from a version that was not recorded.
pub(crate) const RECORD_VERSION: &str = "
    INSERT INTO data_version (org_id, version, mark, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";
pub(crate) const MARK_BATCHES: &str = "UPDATE batch SET version = $1 WHERE org_id = $2 AND version > $3";
pub(crate) const MARK_MOVED: &str = "UPDATE moved_batch SET version = $1 WHERE org_id = $2 AND version > $3";

fn problem(stored_key: (&str, i64), json: &str) -> Option<String> {
    let batch = match Batch::from_json(json) {
        Ok(batch) => batch,
        Err(errors) => return Some(errors.to_string()),
    };
    if batch.to_json() != json {
        return Some("its text is not in canonical form".into());
    }
    let key = (batch.batch_id.as_str(), batch.batch_creation_date.micros());
    (key != stored_key).then(|| "its text belongs to another batch".into())
}
