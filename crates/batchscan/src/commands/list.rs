//! `batchscan list`.

use batchscan_client::{DateRange, TryStreamExt};
use batchscan_formats::write::Columns;
use batchscan_server::clock::Clock;

use super::context::{columns, date_range};
use crate::args::List;
use crate::connection::{self, Service};
use crate::progress::progress_bar;
use crate::reports::latest_batches::Latest;
use crate::selection::Selection;
use crate::terminal::{Screen, print};

const DAY_SECS: i64 = 86_400;
/// The API returns the oldest batches first. Reads the last days first, then longer ranges until enough are found.
const LOOK_BACK_DAYS: [i64; 4] = [7, 30, 120, 480];

pub(crate) async fn run(command: List) -> anyhow::Result<()> {
    let now = Clock::system().now();
    let dates = date_range("list", &command.dates);
    let (selection, columns) = (command.selection.selection(), columns("list", &command.columns));
    let profile = connection::resolve(&command.connection)?;
    let bar = progress_bar("", "reading: {human_pos} batches{wide_msg}");
    let service = connection::connect(&profile, &command.connection, &bar)?;
    let latest = latest(&service, dates.range(), now, &selection, command.limit, || bar.inc(1)).await;
    bar.finish_and_clear();
    let latest = latest?;
    print(&match (command.json, &columns) {
        (true, columns) => latest.json(columns.fields()),
        _ if latest.is_empty() => format!("{}\n", selection.no_match(&dates.to_string())),
        (false, Columns::All) => latest.table(Screen::stdout()),
        (false, columns) => latest.table_of(columns),
    })
}

async fn latest(
    service: &Service,
    range: DateRange,
    now: batchscan_client::UtcInstant,
    selection: &Selection,
    limit: usize,
    on_batch: impl Fn(),
) -> anyhow::Result<Latest> {
    let until = range.end.unwrap_or(now);
    let starts = LOOK_BACK_DAYS.map(|days| Some(until.plus_secs(-days * DAY_SECS)));
    let starts = if range.start.is_some() { vec![] } else { starts.to_vec() };
    for start in starts.into_iter().chain([range.start]) {
        let mut latest = Latest::new(limit);
        let mut batches = service.client.batches(DateRange { start, end: range.end });
        while let Some(received) = batches.try_next().await? {
            on_batch();
            if selection.includes(&received.batch) {
                latest.add(received.batch);
            }
        }
        if latest.is_full() || start == range.start {
            return Ok(latest);
        }
    }
    Ok(Latest::new(limit))
}
