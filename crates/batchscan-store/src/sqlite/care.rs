//! Backup and examination.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use super::{SqliteStore, open, packs};
use crate::backup::NewFile;
use crate::examine::{BATCHES_PER_STEP, StoredBatch};
use crate::{AdminError, Examination, Progress, StoreError};

/// Pages copied between two looks at the progress: some 16 MiB.
const PAGES_PER_STEP: i32 = 1_024;

impl SqliteStore {
    /// Copies one snapshot to `to`, under another name until it is whole. Gives the copy's size in bytes.
    pub(crate) async fn backup(&self, to: &Path, progress: Progress) -> Result<u64, AdminError> {
        let to = to.to_owned();
        self.read_at_leisure(move |connection| {
            let file = NewFile::begin(&to)?;
            copy(connection, file.path(), &progress)?;
            file.finish()
        })
        .await
    }

    pub(crate) async fn examine(&self, progress: Progress) -> Result<Examination, AdminError> {
        let path = self.path.clone();
        self.read_at_leisure(move |connection| {
            let mut report =
                Examination { schema: open::schema_version(connection)?, ..Examination::default() };
            report.findings.extend(examine_mode(&path));
            // A file that SQLite itself cannot read to the end is a finding like any other.
            match examine_all(connection, &mut report, &progress) {
                Err(AdminError::Store(StoreError::Broken(cause))) => {
                    report.findings.push(format!("the file is damaged ({cause}): restore a backup"));
                }
                examined => examined?,
            }
            Ok(report)
        })
        .await
    }
}

fn copy(connection: &mut Connection, to: &Path, progress: &Progress) -> Result<(), AdminError> {
    // The snapshot stays open over all steps: a writer beside us does not make the copy begin again.
    let snapshot = connection.transaction()?;
    snapshot.query_row("SELECT count(*) FROM organisation", [], |_| Ok(()))?;
    let mut target = Connection::open(to)?;
    let backup = Backup::new(&snapshot, &mut target)?;
    loop {
        let step = backup.step(PAGES_PER_STEP)?;
        let state = backup.progress();
        let (pages, left) = (u64::try_from(state.pagecount), u64::try_from(state.remaining));
        progress(pages.unwrap_or(0).saturating_sub(left.unwrap_or(0)), pages.unwrap_or(0));
        match step {
            StepResult::Done => break,
            StepResult::More => {}
            _ => std::thread::sleep(std::time::Duration::from_millis(50)),
        }
    }
    drop(backup);
    // A copy of a damaged database is no backup, and must not take a good one's place.
    let sound: String = target.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if sound != "ok" {
        return Err(StoreError::Broken(format!("{sound}; no backup was made: run `batchscan doctor`")).into());
    }
    target.close().map_err(|(_, error)| error)?;
    Ok(())
}

fn examine_all(
    connection: &mut Connection,
    report: &mut Examination,
    progress: &Progress,
) -> Result<(), AdminError> {
    // One snapshot for all that follows, so that a writer beside us makes no false alarm.
    let snapshot = connection.transaction()?;
    let total: i64 = snapshot.query_row("SELECT count(*) FROM batch", [], |row| row.get(0))?;
    let total = u64::try_from(total).unwrap_or(0);
    progress(0, total);
    examine_file(&snapshot, report)?;
    examine_orgs(&snapshot, report)?;
    examine_batches(&snapshot, report, &|done| progress(done, total))?;
    packs::examine(&snapshot, report)
}

fn examine_mode(path: &Path) -> Option<String> {
    let mode = std::fs::metadata(path).ok()?.permissions().mode() & 0o077;
    (mode != 0).then(|| format!("{0} can be opened by other users: run `chmod 600 {0}`", path.display()))
}

fn examine_file(snapshot: &Connection, report: &mut Examination) -> Result<(), AdminError> {
    let mut check = snapshot.prepare(&format!("PRAGMA integrity_check({})", Examination::FINDINGS_MAX))?;
    let lines = check.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
    report
        .findings
        .extend(lines.into_iter().filter(|line| line != "ok").map(|line| format!("SQLite: {line}")));
    Ok(())
}

fn examine_orgs(snapshot: &Connection, report: &mut Examination) -> Result<(), AdminError> {
    let orgs: i64 = snapshot.query_row("SELECT count(*) FROM organisation", [], |row| row.get(0))?;
    report.orgs = u64::try_from(orgs).unwrap_or(0);
    let strays = "SELECT count(*) FROM batch WHERE org_id NOT IN (SELECT id FROM organisation)";
    let strays: i64 = snapshot.query_row(strays, [], |row| row.get(0))?;
    let ahead =
        "SELECT count(*) FROM batch b JOIN organisation o ON o.id = b.org_id WHERE b.version > o.version";
    let ahead: i64 = snapshot.query_row(ahead, [], |row| row.get(0))?;
    report.note_strays(strays, ahead);
    Ok(())
}

fn examine_batches(
    snapshot: &Connection,
    report: &mut Examination,
    progress: &dyn Fn(u64),
) -> Result<(), AdminError> {
    let mut all = snapshot.prepare(
        "SELECT coalesce(o.name, 'organisation ' || b.org_id), b.created_at, b.batch_id, b.json
         FROM batch b LEFT JOIN organisation o ON o.id = b.org_id",
    )?;
    let mut rows = all.query([])?;
    while let Some(row) = rows.next()? {
        let text = |column| row.get_ref(column)?.as_str().map_err(rusqlite::Error::from);
        let (org, id, json) = (text(0)?, text(2)?, text(3)?);
        if !report.look_at(&StoredBatch { org, created_at: row.get(1)?, id, json }) {
            break;
        }
        if report.batches.is_multiple_of(BATCHES_PER_STEP) {
            progress(report.batches);
        }
    }
    Ok(())
}
