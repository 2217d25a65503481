//! Checks that a stored text is exactly the text of its batch, and is stored under the key of that batch.

use batchscan_model::Batch;

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

    /// Adds the batches without an organisation, and those with a version that their organisation does not have yet.
    pub(crate) fn add_counts(&mut self, without_org: i64, too_new: i64) {
        if without_org > 0 {
            self.findings.push(format!("batches without an organisation: {without_org}"));
        }
        if too_new > 0 {
            self.findings.push(format!("batches newer than their organisation's version: {too_new}"));
        }
    }
}

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
