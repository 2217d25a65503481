//! `batchscan summary`.

use std::process::ExitCode;

use batchscan_client::TryStreamExt;
use batchscan_server::clock::Clock;

use crate::args::{Summary, misuse};
use crate::connection;
use crate::output::{Screen, bar, print};
use crate::overview::summary::Summary as Sums;
use crate::window::Window;

pub(crate) async fn run(command: Summary) -> anyhow::Result<ExitCode> {
    let now = Clock::system().now();
    let window = Window::typed(Some(&command.start_date), command.end_date.as_deref(), now)
        .map_err(|error| misuse("summary", error))
        .unwrap_or_else(|error| error.exit());
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
