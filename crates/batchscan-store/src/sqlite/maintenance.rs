//! Backup and doctor.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use super::store::SqliteStore;
use super::{blocks, open};
use crate::doctor::{BATCHES_PER_STEP, DoctorReport};
use crate::errors::{AdminError, StoreError};
use crate::new_file::NewFile;
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
    report.orgs = u64::try_from(count("SELECT count(*) FROM organisation")?).unwrap_or(0);
    report.add_counts(
        count("SELECT count(*) FROM batch WHERE org_id NOT IN (SELECT id FROM organisation)")?,
        count(
            "SELECT count(*) FROM batch b JOIN organisation o ON o.id = b.org_id WHERE b.version > o.version",
        )?,
    );
    check_batches(&snapshot, report, &|done| progress(done, total))?;
    blocks::check(&snapshot, report)
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
