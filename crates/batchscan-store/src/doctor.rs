//! Checks that a stored text is exactly the text of its batch, and is stored under the key of that batch; that versions
//! are consistent; and what a repair does.
//!
//! A repair gives an organisation a new version. What clients may have missed or read wrongly gets that version, so that
//! `/v2/changes` returns it again, and positions stay valid.

use batchscan_model::{Batch, OrgId, UtcInstant};

use crate::blocks::{self, WrongBlock};
use crate::change::Change;
use crate::errors::{AdminError, StoreError};
use crate::migrations;
use crate::organisations::delete_without_org;
use crate::page::DataVersion;
use crate::sql::{Columns, Sql, values};
use crate::store::{Database, Store};
use crate::types::Progress;
use crate::versions::{record_version, set_version};

/// Batches checked between two progress reports.
const BATCHES_PER_STEP: u64 = 10_000;

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

    /// Checks a row of name, created_at, batch_id, json.
    fn check_batch(&mut self, row: &dyn Columns) -> Result<(), StoreError> {
        let (org, created_at) = (row.text(0)?.unwrap_or_default(), row.number(1)?);
        let (id, json) = (row.text(2)?.unwrap_or_default(), row.text(3)?.unwrap_or_default());
        self.batches += 1;
        if let Some(what) = problem((id, created_at), json) {
            self.add(format!("batch \"{id}\" of \"{org}\": {what}; import it again"));
        }
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.findings.len() > DoctorReport::FINDINGS_MAX
    }

    fn add(&mut self, finding: String) {
        if self.findings.len() < DoctorReport::FINDINGS_MAX {
            self.findings.push(finding);
        } else if !self.is_full() {
            self.findings.push("the check stopped here; there may be more problems".into());
        }
    }

    fn check_versions(&mut self, org: &OrgVersions) {
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

const REPAIR: &str = "`batchscan doctor --repair`";

impl Store {
    /// Checks the database and every stored batch.
    pub async fn doctor(&self, progress: Progress) -> Result<DoctorReport, AdminError> {
        let findings = match &self.database {
            Database::Sqlite(store) => store.check_file().await?,
            // PostgreSQL checks its own structures.
            Database::Postgres(_) => Vec::new(),
        };
        let is_file = matches!(self.database, Database::Sqlite(_));
        // One snapshot, so that a concurrent write does not cause a false finding.
        self.snapshot(async move |sql| {
            let mut report = DoctorReport { findings, ..DoctorReport::default() };
            match check_all(sql, &mut report, &progress).await {
                // A file that SQLite cannot read is a finding, too.
                Err(AdminError::Store(StoreError::Unreadable(cause) | StoreError::Broken(cause)))
                    if is_file =>
                {
                    report.findings.push(format!("the file is damaged ({cause}): restore a backup"));
                }
                checked => checked?,
            }
            Ok(report)
        })
        .await
    }

    /// Repairs what [`Store::doctor`] found, as far as that is possible, in one transaction. Returns what was done.
    pub async fn repair(&self, now: UtcInstant) -> Result<Vec<String>, AdminError> {
        self.change(now, async move |sql| {
            let repairs = repair(sql, now).await?;
            let describe = |Change { org, detail, .. }: &Change| {
                let detail = detail.clone().unwrap_or_default();
                org.as_ref().map_or(detail.clone(), |org| format!("\"{org}\": {detail}"))
            };
            Ok((repairs.iter().map(describe).collect(), repairs))
        })
        .await
    }
}

async fn check_all(
    sql: &mut dyn Sql,
    report: &mut DoctorReport,
    progress: &Progress,
) -> Result<(), AdminError> {
    let schema = sql.integer(migrations::CURRENT_VERSION, &[]).await?.unwrap_or(0);
    report.schema = i32::try_from(schema).unwrap_or(i32::MAX);
    let total = sql.count("SELECT count(*) FROM batch", &[]).await?;
    progress(0, total);
    let without_org =
        "SELECT count(*) FROM batch b WHERE NOT EXISTS (SELECT 1 FROM organisation o WHERE o.id = b.org_id)";
    let batches = sql.count(without_org, &[]).await?;
    if batches > 0 {
        report.add(format!("batches without an organisation: {batches}; {REPAIR} deletes them"));
    }
    let orgs = sql.all(ORG_VERSIONS, &[], org_versions).await?;
    report.orgs = orgs.len() as u64;
    orgs.iter().for_each(|org| report.check_versions(org));
    let mut each = |row: &dyn Columns| {
        if !report.is_full() {
            report.check_batch(row)?;
            if report.batches.is_multiple_of(BATCHES_PER_STEP) {
                progress(report.batches, total);
            }
        }
        Ok(())
    };
    let all = "SELECT coalesce(o.name, 'organisation ' || b.org_id), b.created_at, b.batch_id, b.json
               FROM batch b LEFT JOIN organisation o ON o.id = b.org_id";
    sql.query(all, &[], &mut each).await?;
    for WrongBlock { org_name, .. } in blocks::find_wrong(sql, DoctorReport::FINDINGS_MAX).await? {
        report.add(format!("a compressed block of \"{org_name}\" differs from its batches; run {REPAIR}"));
    }
    Ok(())
}

async fn repair(sql: &mut dyn Sql, now: UtcInstant) -> Result<Vec<Change>, AdminError> {
    // As for every change of their batches.
    let lock = format!("SELECT id FROM organisation ORDER BY id {}", sql.dialect().for_update);
    sql.all(&lock, &[], |_| Ok(())).await?;
    let mut repairs = Vec::new();
    let batches = delete_without_org(sql).await?;
    if batches > 0 {
        let detail = Some(format!("batches without an organisation deleted: {batches}"));
        repairs.push(Change { action: ACTION, org: None, subject: None, detail });
    }
    let wrong = blocks::find_wrong(sql, usize::MAX).await?;
    for org in sql.all(ORG_VERSIONS, &[], org_versions).await? {
        let blocks: Vec<_> = wrong.iter().filter(|block| block.org == org.id).collect();
        if !org.is_consistent() || !blocks.is_empty() {
            repairs.push(repair_org(sql, &org, &blocks, now).await?);
        }
    }
    Ok(repairs)
}

async fn repair_org(
    sql: &mut dyn Sql,
    org: &OrgVersions,
    wrong: &[&WrongBlock],
    now: UtcInstant,
) -> Result<Change, AdminError> {
    let OrgVersions { id, version: DataVersion { number, mark }, .. } = org;
    let version = sql.integer(UNUSED_VERSION, values![*id]).await?.unwrap_or(0);
    // Clients may have read from a version that was not recorded.
    record_version(sql, *id, *number, *mark, now).await?;
    let mut marked = 0;
    for table in ["batch_tombstone", "batch"] {
        let mark = format!("UPDATE {table} SET version = $1 WHERE org_id = $2 AND version > $3");
        marked = sql.execute(&mark, values![version, *id, *number]).await?;
    }
    for block in wrong {
        marked += block.mark_batches(sql, version).await?;
    }
    if !wrong.is_empty() {
        sql.execute("DELETE FROM block WHERE org_id = $1", values![*id]).await?;
    }
    set_version(sql, *id, version, Some((i64::MIN, i64::MAX)), now).await?;
    Ok(org.repaired(wrong.len(), marked))
}

const ACTION: &str = "doctor repair";

const ORG_VERSIONS: &str = "
    SELECT id, name, version, version_mark,
           (SELECT count(*) FROM batch b WHERE b.org_id = o.id AND b.version > o.version)
           + (SELECT count(*) FROM batch_tombstone m WHERE m.org_id = o.id AND m.version > o.version)
           + (SELECT count(*) FROM data_version v WHERE v.org_id = o.id AND v.version > o.version),
           (SELECT count(*) FROM data_version v
            WHERE v.org_id = o.id AND v.version = o.version AND v.mark = o.version_mark)
    FROM organisation o ORDER BY id";
/// A version that was never used.
const UNUSED_VERSION: &str = "
    SELECT max(version) + 1 FROM (
        SELECT version FROM organisation WHERE id = $1
        UNION ALL SELECT moved_version FROM organisation WHERE id = $1
        UNION ALL SELECT pruned_version FROM organisation WHERE id = $1
        UNION ALL SELECT max(version) FROM batch WHERE org_id = $1
        UNION ALL SELECT max(version) FROM batch_tombstone WHERE org_id = $1
        UNION ALL SELECT max(version) FROM data_version WHERE org_id = $1) AS used";

/// The versions of an organisation.
struct OrgVersions {
    id: OrgId,
    name: String,
    version: DataVersion,
    /// Batches, removals and versions that are newer.
    newer: u64,
    /// Whether its version is recorded: 0 or 1.
    recorded: u64,
}

impl OrgVersions {
    fn is_consistent(&self) -> bool {
        self.newer == 0 && !self.is_unrecorded()
    }

    /// Version 0 has no batches, and no record.
    fn is_unrecorded(&self) -> bool {
        self.recorded == 0 && self.version.number > 0
    }

    /// What a repair did.
    fn repaired(&self, blocks: usize, marked: u64) -> Change {
        let mut detail = format!("new version; batches marked as changed: {marked}");
        if blocks > 0 {
            detail += &format!("; compressed blocks replaced: {blocks}");
        }
        Change::of_org(ACTION, &self.name).detail(detail)
    }
}

fn org_versions(row: &dyn Columns) -> Result<OrgVersions, StoreError> {
    Ok(OrgVersions {
        id: row.org(0)?,
        name: row.string(1)?,
        version: DataVersion { number: row.number(2)?, mark: row.number(3)? },
        newer: row.count(4)?,
        recorded: row.count(5)?,
    })
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
