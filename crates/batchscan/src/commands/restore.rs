//! `batchscan restore`.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use batchscan_model::UtcInstant;
use batchscan_server::clock::Clock;
use batchscan_store::{DatabaseUrl, DoctorReport, OpenError, OpenOptions, Store, platform};

use crate::args::Restore;
use crate::atomic_file::{NewFile, folder_of, with_suffix};
use crate::numbers::count;
use crate::progress::{self, progress_bar};
use crate::terminal::{print, print_hint};

/// The write-ahead log of a database.
const LOG: &str = "-wal";

pub(crate) async fn run(command: Restore) -> anyhow::Result<()> {
    let Restore { database, backup } = command;
    let DatabaseUrl::Sqlite(path) = &database.database else {
        bail!(
            "restore replaces an SQLite database; for PostgreSQL, copy the backup into an empty database: `batchscan copy \
             --from sqlite:{} --to URL`",
            backup.display()
        );
    };
    // What is only in a log would be missing from the copy.
    if with_suffix(&backup, LOG).metadata().is_ok_and(|log| log.len() > 0) {
        bail!("{} is open in another program, or is not a finished backup", backup.display());
    }
    if backup.canonicalize().is_ok_and(|backup| path.canonicalize().is_ok_and(|path| path == backup)) {
        bail!("{} is the database itself; name a backup of it", backup.display());
    }
    if !folder_of(path).is_dir() {
        bail!("folder {} does not exist; create it first", folder_of(path).display());
    }
    if Store::is_in_use(path) {
        bail!("the database is in use: stop the service, its watchers and all other commands first");
    }
    let now = Clock::system().now();
    let new = copy(&backup, path).with_context(|| format!("cannot copy {}", backup.display()))?;
    let found = check(&new, &backup, now).await?;
    let failed = || format!("cannot replace {}", path.display());
    let old = set_aside(path, now).with_context(failed)?;
    new.finish(false).with_context(failed)?;
    let (orgs, batches) =
        (count(found.orgs, "organisation", "organisations"), count(found.batches, "batch", "batches"));
    print(&format!("restored {} from {}: {orgs}, {batches}\n", database.database, backup.display()))?;
    if let Some(old) = old {
        print(&format!("the old database is {}: remove it when you no longer need it\n", old.display()))?;
    }
    print_hint(
        "Credentials that were revoked since the backup work again: revoke them again before you start the service",
    )
}

/// Copies the backup to the folder of the database.
fn copy(backup: &Path, database: &Path) -> io::Result<NewFile> {
    let mut source = File::open(backup)?;
    let new = NewFile::create_private(database)?;
    platform::give_to_folder(new.file(), folder_of(database))?;
    io::copy(&mut source, &mut new.file())?;
    Ok(new)
}

/// Checks the copy, upgrades it to this version and records in it where it comes from.
async fn check(copy: &NewFile, backup: &Path, now: UtcInstant) -> anyhow::Result<DoctorReport> {
    let name = backup.display();
    let url = DatabaseUrl::Sqlite(copy.partial_path().to_owned());
    let store = Store::open(&url, OpenOptions::EXISTING).await.map_err(|error| match error {
        OpenError::NotADatabase(_) => anyhow!("{name} is not a backup"),
        OpenError::Damaged { cause, .. } => anyhow!("{name} is damaged ({cause}): restore another backup"),
        error => anyhow::Error::new(error).context(format!("cannot open a copy of {name}")),
    })?;
    let bar = progress_bar("checking", "{msg} {bar:32} {human_pos} of {human_len} batches");
    let found = store.doctor(progress::callback(&bar)).await;
    bar.finish_and_clear();
    let found = found?;
    if !found.findings.is_empty() {
        let findings: String = found.findings.iter().map(|finding| format!("\n  {finding}")).collect();
        bail!(
            "{name} has problems; restore another backup, or try `batchscan doctor --database sqlite:{name} --repair`:{findings}"
        );
    }
    store.record_restore(backup, now).await?;
    drop(store);
    copy.file().sync_all()?;
    Ok(found)
}

/// Renames the database and its log. Returns the new name, unless there was none.
fn set_aside(path: &Path, now: UtcInstant) -> io::Result<Option<PathBuf>> {
    let time = now.to_string().replace(':', "");
    let old = with_suffix(path, &format!(".before-{time}"));
    let rename = |suffix| match std::fs::rename(with_suffix(path, suffix), with_suffix(&old, suffix)) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        renamed => renamed.map(|()| true),
    };
    let is_renamed = rename("")?;
    // SQLite would apply them to the new file.
    for suffix in [LOG, "-shm", "-journal"] {
        rename(suffix)?;
    }
    Ok(is_renamed.then_some(old))
}
