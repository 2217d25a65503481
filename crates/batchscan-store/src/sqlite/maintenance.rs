//! Backup, doctor and repair.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use batchscan_model::UtcInstant;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, Transaction, params};

use super::blocks::WrongBlock;
use super::changes::set_version;
use super::rows::query_all;
use super::store::SqliteStore;
use super::{blocks, open};
use crate::audit::Change;
use crate::doctor::{
    BATCHES_PER_STEP, DELETE_WITHOUT_ORG, DoctorReport, MARK_BATCHES, MARK_MOVED, ORG_VERSIONS, OrgVersions,
    RECORD_VERSION, REPAIR, UNUSED_VERSION, WITHOUT_ORG, deleted_without_org,
};
use crate::errors::{AdminError, StoreError};
use crate::new_file::NewFile;
use crate::page::DataVersion;
use crate::rows::org_versions;
use crate::types::Progress;

/// Database pages copied between two progress reports: about 16 MiB.
const PAGES_PER_STEP: i32 = 1_024;

impl SqliteStore {
    /// Copies one snapshot to a new file. Returns its size in bytes.
    pub(crate) async fn backup(&self, to: &Path, progress: Progress) -> Result<u64, AdminError> {
        let to = to.to_owned();
        self.read_slowly(move |connection| {
            let file = NewFile::create(&to)?;
            copy(connection, &file, &progress)?;
            file.finish()
        })
        .await
    }

    pub(crate) async fn doctor(&self, progress: Progress) -> Result<DoctorReport, AdminError> {
        let path = self.path.clone();
        self.read_slowly(move |connection| {
            let schema = open::schema_version(connection)?;
            let mut report = DoctorReport { schema, ..DoctorReport::default() };
            report.findings.extend(check_permissions(&path));
            match check_all(connection, &mut report, &progress) {
                // A file that SQLite cannot read is a finding, too.
                Err(AdminError::Store(StoreError::Unreadable(cause) | StoreError::Broken(cause))) => {
                    report.findings.push(format!("the file is damaged ({cause}): restore a backup"));
                }
                checked => checked?,
            }
            Ok(report)
        })
        .await
    }

    /// Returns what was repaired.
    pub(crate) async fn repair(&self, now: UtcInstant) -> Result<Vec<Change>, AdminError> {
        self.change_audited(now, move |transaction| {
            let repairs = repair(transaction, now)?;
            Ok((repairs.clone(), repairs))
        })
        .await
    }
}

fn copy(connection: &mut Connection, to: &NewFile, progress: &Progress) -> Result<(), AdminError> {
    // The snapshot stays open during all steps. Otherwise a concurrent write would restart the copy.
    let snapshot = connection.transaction()?;
    snapshot.query_row("SELECT count(*) FROM organisation", [], |_| Ok(()))?;
    let mut target = Connection::open(to.partial_path()).map_err(|error| to.error(&error))?;
    let backup = Backup::new(&snapshot, &mut target)?;
    loop {
        let step = backup.step(PAGES_PER_STEP)?;
        let state = backup.progress();
        let pages = u64::try_from(state.pagecount).unwrap_or(0);
        progress(pages.saturating_sub(u64::try_from(state.remaining).unwrap_or(0)), pages);
        match step {
            StepResult::Done => break,
            StepResult::More => {}
            _ => std::thread::sleep(std::time::Duration::from_millis(50)),
        }
    }
    drop(backup);
    // A copy of a damaged database must not pass for a backup.
    let check: String = target.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if check != "ok" {
        return Err(
            StoreError::Unreadable(format!("{check}; no backup was made: run `batchscan doctor`")).into()
        );
    }
    target.close().map_err(|(_, error)| error)?;
    Ok(())
}

fn check_permissions(path: &Path) -> Option<String> {
    let mode = std::fs::metadata(path).ok()?.permissions().mode() & 0o077;
    (mode != 0).then(|| format!("{0} can be opened by other users: run `chmod 600 {0}`", path.display()))
}

fn check_all(
    connection: &mut Connection,
    report: &mut DoctorReport,
    progress: &Progress,
) -> Result<(), AdminError> {
    // One snapshot, so that a concurrent write does not cause a false finding.
    let snapshot = connection.transaction()?;
    let count = |sql| snapshot.query_row(sql, [], |row| row.get::<_, i64>(0));
    let total = u64::try_from(count("SELECT count(*) FROM batch")?).unwrap_or(0);
    progress(0, total);
    check_file(&snapshot, report)?;
    report.add_without_org(u64::try_from(count(WITHOUT_ORG)?).unwrap_or(0));
    let orgs = query_all(&mut snapshot.prepare(ORG_VERSIONS)?, [], |row| org_versions(row))?;
    report.orgs = orgs.len() as u64;
    orgs.iter().for_each(|org| report.check_versions(org));
    check_batches(&snapshot, report, &|done| progress(done, total))?;
    for block in blocks::find_wrong(&snapshot, DoctorReport::FINDINGS_MAX)? {
        let name = block.org_name;
        report.add(format!("a compressed block of \"{name}\" differs from its batches; run {REPAIR}"));
    }
    Ok(())
}

fn repair(transaction: &Transaction<'_>, now: UtcInstant) -> Result<Vec<Change>, AdminError> {
    let without_org = transaction.query_row(WITHOUT_ORG, [], |row| row.get::<_, i64>(0))?;
    for delete in DELETE_WITHOUT_ORG {
        transaction.execute(delete, [])?;
    }
    let mut repairs = Vec::from_iter(deleted_without_org(u64::try_from(without_org).unwrap_or(0)));
    transaction.execute(blocks::DELETE_WITHOUT_ORG, [])?;
    let wrong = blocks::find_wrong(transaction, usize::MAX)?;
    for org in query_all(&mut transaction.prepare(ORG_VERSIONS)?, [], |row| org_versions(row))? {
        let blocks: Vec<_> = wrong.iter().filter(|block| block.org == org.id).collect();
        if !org.is_consistent() || !blocks.is_empty() {
            repairs.push(repair_org(transaction, &org, &blocks, now)?);
        }
    }
    Ok(repairs)
}

fn repair_org(
    transaction: &Transaction<'_>,
    org: &OrgVersions,
    blocks: &[&WrongBlock],
    now: UtcInstant,
) -> Result<Change, AdminError> {
    let OrgVersions { id, version: DataVersion { number, mark }, .. } = org;
    let version: i64 = transaction.query_row(UNUSED_VERSION, [id.0], |row| row.get(0))?;
    transaction.execute(RECORD_VERSION, params![id.0, number, mark, now.micros()])?;
    let mut marked = transaction.execute(MARK_BATCHES, params![version, id.0, number])?;
    transaction.execute(MARK_MOVED, params![version, id.0, number])?;
    for block in blocks {
        marked += block.mark_batches(transaction, version)?;
    }
    if !blocks.is_empty() {
        blocks::delete_all(transaction, *id)?;
        blocks::compress_all(transaction, *id)?;
    }
    set_version(transaction, *id, version, true, now)?;
    Ok(org.repaired(blocks.len(), marked as u64))
}

fn check_file(snapshot: &Connection, report: &mut DoctorReport) -> Result<(), AdminError> {
    let mut check = snapshot.prepare(&format!("PRAGMA integrity_check({})", DoctorReport::FINDINGS_MAX))?;
    let mut lines = check.query([])?;
    while let Some(row) = lines.next()? {
        let line: String = row.get(0)?;
        report.findings.extend((line != "ok").then(|| format!("SQLite: {line}")));
    }
    Ok(())
}

fn check_batches(
    snapshot: &Connection,
    report: &mut DoctorReport,
    progress: &dyn Fn(u64),
) -> Result<(), AdminError> {
    let mut all = snapshot.prepare(
        "SELECT coalesce(o.name, 'organisation ' || b.org_id), b.created_at, b.batch_id, b.json
         FROM batch b LEFT JOIN organisation o ON o.id = b.org_id",
    )?;
    let mut rows = all.query([])?;
    while let Some(row) = rows.next()? {
        let text = |column| row.get_ref(column)?.as_str().map_err(rusqlite::Error::from);
        if !report.check_batch(text(0)?, row.get(1)?, text(2)?, text(3)?) {
            break;
        }
        if report.batches.is_multiple_of(BATCHES_PER_STEP) {
            progress(report.batches);
        }
    }
    Ok(())
}
