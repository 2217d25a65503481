//! `batchscan summary`.

use std::process::ExitCode;

use batchscan_client::TryStreamExt;

use crate::args::Summary;
use crate::connection;
use crate::output::{Screen, bar, print};
use crate::overview::summary::Summary as Sums;

pub(crate) async fn run(command: Summary) -> anyhow::Result<ExitCode> {
    let window = command.window();
    let profile = connection::resolve(&command.connection)?;
    let bar = bar("", "reading: {human_pos} batches{wide_msg}");
    let service = connection::client(&profile, &command.connection, &bar)?;
    let mut sums = Sums::default();
    let mut batches = service.client.batches(window.range());
    while let Some(received) = batches.try_next().await? {
        sums.push(&received.batch)?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    if command.json {
        print(&sums.json())?;
    } else {
        print(&sums.table(Screen::of_stdout()))?;
    }
    Ok(ExitCode::SUCCESS)
}
