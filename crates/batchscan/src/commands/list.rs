//! `batchscan list`.

use std::process::ExitCode;

use batchscan_client::{DateRange, TryStreamExt};
use batchscan_server::clock::Clock;

use crate::args::List;
use crate::connection::{self, Service};
use crate::output::{Screen, bar, print};
use crate::overview::latest::Latest;

const DAY_SECS: i64 = 86_400;
/// How far to look back, in days, while too few batches are found; then everything is looked at. The interface gives
/// the oldest first, and most users want the newest.
const LOOKS_BACK_DAYS: [i64; 4] = [7, 30, 120, 480];

pub(crate) async fn run(command: List) -> anyhow::Result<ExitCode> {
    let now = Clock::system().now();
    let window = command.window.read("list");
    let profile = connection::resolve(&command.connection)?;
    let bar = bar("", "reading: {human_pos} batches{wide_msg}");
    let service = connection::client(&profile, &command.connection, &bar)?;
    let latest = latest(&service, window.range(), now, command.limit, || bar.inc(1)).await;
    bar.finish_and_clear();
    let latest = latest?;
    if command.json {
        print(&latest.json())?;
    } else {
        print(&latest.table(Screen::of_stdout()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The newest batches of a window, by looking back further and further.
async fn latest(
    service: &Service,
    range: DateRange,
    now: batchscan_client::UtcInstant,
    limit: usize,
    on_batch: impl Fn(),
) -> anyhow::Result<Latest> {
    let until = range.end.unwrap_or(now);
    let starts = LOOKS_BACK_DAYS.map(|days| Some(until.plus_secs(-days * DAY_SECS)));
    let starts = if range.start.is_some() { vec![] } else { starts.to_vec() };
    for start in starts.into_iter().chain([range.start]) {
        let mut latest = Latest::new(limit);
        let mut batches = service.client.batches(DateRange { start, end: range.end });
        while let Some(received) = batches.try_next().await? {
            on_batch();
            latest.push(received.batch);
        }
        if latest.is_full() || start == range.start {
            return Ok(latest);
        }
    }
    Ok(Latest::new(limit))
}
