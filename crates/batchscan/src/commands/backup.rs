//! `batchscan backup`.

use std::io::ErrorKind;
use std::path::Path;

use anyhow::Context;
use batchscan_model::UtcInstant;
use batchscan_server::clock::Clock;
use batchscan_store::{AdminError, Store};

use super::context::open;
use crate::args::Backup;
use crate::atomic_file::{NewFile, with_suffix};
use crate::numbers::size;
use crate::progress::{self, progress_bar};
use crate::terminal::{note, print};

/// The names of backups that `--keep` removes.
const PREFIX: &str = "batchscan-";
const SUFFIX: &str = ".db";

pub(crate) async fn run(command: Backup) -> anyhow::Result<()> {
    let (store, now) = (open(&command.database).await?, Clock::system().now());
    let bar = progress_bar("backing up", "{msg} {bar:32} {percent}% {eta}");
    let path = &match command.keep {
        Some(_) => command.path.join(file_name(now)),
        None => command.path.clone(),
    };
    if command.keep.is_some() && !command.path.exists() {
        std::fs::create_dir(&command.path)
            .with_context(|| format!("cannot create {}", command.path.display()))?;
    }
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::AlreadyExists => AdminError::TargetExists(path.clone()),
        _ => AdminError::TargetUnwritable { path: path.clone(), cause: error.to_string() },
    };
    // SQLite would take some files for the log or journal of the new one.
    for taken in ["", "-wal", "-journal"].map(|suffix| with_suffix(path, suffix)) {
        if taken.symlink_metadata().is_ok() {
            return Err(AdminError::TargetExists(taken).into());
        }
    }
    let new = NewFile::create_private(path).map_err(failed)?;
    let mut written = store.backup(new.partial_path(), progress::callback(&bar)).await;
    if written.is_ok() {
        written = Store::record_in_backup(new.partial_path(), path, now).await;
    }
    bar.finish_and_clear();
    written.map_err(|error| match error {
        // Names the file instead of its temporary name.
        AdminError::TargetUnwritable { path: partial, cause } => AdminError::TargetUnwritable {
            cause: cause.replace(&partial.display().to_string(), &path.display().to_string()),
            path: path.clone(),
        },
        other => other,
    })?;
    let synced = new.file().sync_all().and_then(|()| new.file().metadata());
    let bytes = synced.map_err(failed)?.len();
    new.finish(false).map_err(failed)?;
    if let Err(error) = store.record_backup(path, now).await {
        note(&format!("warning: cannot record the backup: {error}"));
    }
    let database = &command.database.database;
    print(&format!("backed up {database} to {} ({})\n", path.display(), size(bytes)))?;
    command.keep.map_or(Ok(()), |keep| remove_old(&command.path, keep))
}

/// `batchscan-2026-01-31T080000Z.db`: in the order of time, and allowed on every file system.
fn file_name(now: UtcInstant) -> String {
    format!("{PREFIX}{}{SUFFIX}", now.to_whole_secs().to_string().replace(':', ""))
}

/// Removes all but the newest backups.
fn remove_old(folder: &Path, keep: u16) -> anyhow::Result<()> {
    let read = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let names = read.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| is_backup(name)).collect();
    names.sort_unstable();
    let old = names.len().saturating_sub(keep.into());
    for name in &names[..old] {
        let path = folder.join(name);
        std::fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        print(&format!("removed {}\n", path.display()))?;
    }
    Ok(())
}

/// Whether a file was made by `--keep`.
fn is_backup(name: &str) -> bool {
    let time = name.strip_prefix(PREFIX).and_then(|name| name.strip_suffix(SUFFIX));
    let is_time = |time: &str| time.len() == "2026-01-31T080000Z".len() && time.ends_with('Z');
    time.is_some_and(is_time)
}
