//! `batchscan backup`.

use super::context::open;
use crate::args::Backup;
use crate::numbers::size;
use crate::progress::{self, progress_bar};
use crate::terminal::print;

pub(crate) async fn run(command: Backup) -> anyhow::Result<()> {
    let store = open(&command.database).await?;
    let bar = progress_bar("backing up", "{msg} {bar:32} {percent}% {eta}");
    let bytes = store.backup(&command.file, progress::callback(&bar)).await;
    bar.finish_and_clear();
    let database = &command.database.database;
    print(&format!("backed up {database} to {} ({})\n", command.file.display(), size(bytes?)))
}
