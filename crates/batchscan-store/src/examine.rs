//! Proves that a stored text is the text of the batch it holds, and stands under that batch's key.

use batchscan_model::Batch;

use crate::Examination;

/// Batches examined between two looks at the progress.
pub(super) const BATCHES_PER_STEP: u64 = 10_000;

/// A batch as it is stored.
pub(super) struct StoredBatch<'a> {
    pub(super) org: &'a str,
    pub(super) created_at: i64,
    pub(super) id: &'a str,
    pub(super) json: &'a str,
}

impl Examination {
    /// Looks at one batch. `false` once there are more findings than say anything new.
    pub(super) fn look_at(&mut self, batch: &StoredBatch<'_>) -> bool {
        self.batches += 1;
        self.findings.extend(
            fault_of(batch)
                .map(|what| format!("batch \"{}\" of \"{}\": {what}; import it again", batch.id, batch.org)),
        );
        if self.findings.len() < Examination::FINDINGS_MAX {
            return true;
        }
        self.findings.push("and perhaps more: the examination stopped here".into());
        false
    }

    /// Batches that belong to nobody, or are newer than what they belong to.
    pub(super) fn note_strays(&mut self, strays: i64, ahead: i64) {
        if strays > 0 {
            self.findings.push(format!("batches that belong to no organisation: {strays}"));
        }
        if ahead > 0 {
            self.findings.push(format!("batches that are newer than their organisation's version: {ahead}"));
        }
    }
}

fn fault_of(stored: &StoredBatch<'_>) -> Option<String> {
    match Batch::from_json(stored.json) {
        Err(faults) => Some(faults.to_string()),
        Ok(batch) if batch.to_json() != stored.json => {
            Some("its text is not the text of the batch it holds".into())
        }
        Ok(batch)
            if batch.batch_id.as_str() != stored.id
                || batch.batch_creation_date.micros() != stored.created_at =>
        {
            Some("its text is that of another batch".into())
        }
        Ok(_) => None,
    }
}
