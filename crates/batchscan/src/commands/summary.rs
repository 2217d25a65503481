//! `batchscan summary`.

use batchscan_client::TryStreamExt;

use super::context::date_range;
use crate::args::Summary;
use crate::connection;
use crate::progress::progress_bar;
use crate::reports::summary::Summary as Report;
use crate::terminal::{Screen, print};

pub(crate) async fn run(command: Summary) -> anyhow::Result<()> {
    let range = date_range("summary", &command.dates).range();
    let profile = connection::resolve(&command.connection)?;
    let bar = progress_bar("", "reading: {human_pos} batches{wide_msg}");
    let service = connection::connect(&profile, &command.connection, &bar)?;
    let mut report = Report::default();
    let mut batches = service.client.batches(range);
    while let Some(received) = batches.try_next().await? {
        report.add(&received.batch)?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    print(&if command.json { report.json() } else { report.table(Screen::stdout()) })
}
