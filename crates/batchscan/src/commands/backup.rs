//! `batchscan backup`.

use std::io::ErrorKind;

use batchscan_store::AdminError;

use super::context::open;
use crate::args::Backup;
use crate::atomic_file::{NewFile, with_suffix};
use crate::numbers::size;
use crate::progress::{self, progress_bar};
use crate::terminal::print;

pub(crate) async fn run(command: Backup) -> anyhow::Result<()> {
    let store = open(&command.database).await?;
    let bar = progress_bar("backing up", "{msg} {bar:32} {percent}% {eta}");
    let path = &command.file;
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
    let written = store.backup(new.partial_path(), progress::callback(&bar)).await;
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
    let database = &command.database.database;
    print(&format!("backed up {database} to {} ({})\n", path.display(), size(bytes)))
}
