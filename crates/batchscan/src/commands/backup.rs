//! `batchscan backup`.

use std::process::ExitCode;

use batchscan_store::DatabaseUrl;

use super::open;
use crate::args::Backup;
use crate::figures::size;
use crate::output::{bar, print, progress_of};

pub(crate) async fn run(database: &DatabaseUrl, command: Backup) -> anyhow::Result<ExitCode> {
    let store = open(database).await?;
    let bar = bar("backing up", "{msg} {bar:32} {percent}% {eta}");
    let bytes = store.backup(&command.file, progress_of(&bar)).await;
    bar.finish_and_clear();
    print(&format!("backed up {database} to {} ({})\n", command.file.display(), size(bytes?)))?;
    Ok(ExitCode::SUCCESS)
}
