//! What several commands share: opening the database, signals, dates.

use std::time::Duration;

use batchscan_model::UtcInstant;
use batchscan_store::{DatabaseUrl, OpenOptions, Store};
use tokio::signal::unix::{SignalKind, signal};

use crate::args::{DatabaseArg, DateRangeArgs, usage_error};
use crate::date_range::TypedDateRange;

/// The database of `--database`. Exits with a usage error if it is invalid.
pub(super) fn database_url(arg: &DatabaseArg) -> DatabaseUrl {
    arg.database.parse("--database").unwrap_or_else(|error| usage_error("", error).exit())
}

pub(super) async fn open(arg: &DatabaseArg) -> anyhow::Result<Store> {
    Ok(Store::open(&database_url(arg), OpenOptions::EXISTING).await?)
}

/// The date range of a command. Exits with a usage error if it ends before it starts.
pub(super) fn date_range(command: &str, dates: &DateRangeArgs) -> TypedDateRange {
    let range = TypedDateRange::new(dates.start_date.clone(), dates.end_date.clone());
    range.unwrap_or_else(|error| usage_error(command, error).exit())
}

/// An instant to the second, or a dash.
pub(super) fn format_time(instant: Option<UtcInstant>) -> String {
    instant.map_or_else(|| "-".into(), |instant| instant.to_whole_secs().to_string())
}

/// Completes at SIGTERM or SIGINT. A second signal ends the process.
pub(super) fn shutdown_signal() -> anyhow::Result<impl Future<Output = ()>> {
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! { _ = term.recv() => {}, _ = int.recv() => {} }
        tracing::info!("stopping: waiting for responses in progress");
        tokio::spawn(async move {
            // Ignores a duplicate of the first signal.
            tokio::time::sleep(Duration::from_millis(200)).await;
            tokio::select! { _ = term.recv() => {}, _ = int.recv() => {} }
            std::process::exit(1);
        });
    })
}
