//! Backup, and checks of the file.

use std::path::Path;

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use super::store::SqliteStore;
use crate::doctor::DoctorReport;
use crate::errors::{AdminError, StoreError, unwritable};
use crate::platform;
use crate::types::Progress;

/// Database pages copied between two progress reports: about 16 MiB.
const PAGES_PER_STEP: i32 = 1_024;

impl SqliteStore {
    /// Copies one snapshot to an empty file.
    pub(crate) async fn backup(&self, to: &Path, progress: Progress) -> Result<(), AdminError> {
        let to = to.to_owned();
        self.read_slowly(move |connection| copy(connection, &to, &progress)).await
    }

    /// Problems of the file itself.
    pub(crate) async fn check_file(&self) -> Result<Vec<String>, AdminError> {
        let path = self.path.clone();
        self.read_slowly(move |connection| {
            let mut findings = Vec::from_iter(platform::check_permissions(&path));
            match check_integrity(connection, &mut findings) {
                Err(AdminError::Store(StoreError::Unreadable(cause) | StoreError::Broken(cause))) => {
                    findings.push(format!("the file is damaged ({cause}): restore a backup"));
                }
                checked => checked?,
            }
            Ok(findings)
        })
        .await
    }
}

fn copy(connection: &mut Connection, to: &Path, progress: &Progress) -> Result<(), AdminError> {
    // The snapshot stays open during all steps. Otherwise a concurrent write would restart the copy.
    let snapshot = connection.transaction()?;
    snapshot.query_row("SELECT count(*) FROM organisation", [], |_| Ok(()))?;
    let mut target = Connection::open(to).map_err(|error| unwritable(to, &error))?;
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
    // A copy of a damaged database must not be mistaken for a backup.
    let check: String = target.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if check != "ok" {
        return Err(StoreError::Unreadable(format!("{check}; no backup was made")).into());
    }
    target.close().map_err(|(_, error)| error)?;
    Ok(())
}

fn check_integrity(connection: &Connection, findings: &mut Vec<String>) -> Result<(), AdminError> {
    let mut check = connection.prepare(&format!("PRAGMA integrity_check({})", DoctorReport::FINDINGS_MAX))?;
    let mut lines = check.query([])?;
    while let Some(row) = lines.next()? {
        let line: String = row.get(0)?;
        findings.extend((line != "ok").then(|| format!("SQLite: {line}")));
    }
    Ok(())
}
