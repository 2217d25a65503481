//! What several commands share: opening the database, signals, dates.

use std::pin::pin;
use std::time::Duration;

use anyhow::anyhow;
use batchscan_formats::write::Columns;
use batchscan_model::{Field, OrgId, UtcInstant};
use batchscan_store::{DatabaseUrl, OpenError, OpenOptions, OrgOverview, Store};
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use crate::args::{ColumnsArgs, DatabaseArg, DateRangeArgs, settings, usage_error};
use crate::date_range::DateArgRange;
use crate::platform::stop_signal;
use crate::terminal::note;

/// How long a command waits for PostgreSQL before it says so.
const WAIT_NOTE_DELAY: Duration = Duration::from_secs(1);

pub(super) async fn open(arg: &DatabaseArg) -> anyhow::Result<Store> {
    let opened = open_database(&arg.database, OpenOptions::EXISTING).await;
    opened.map_err(|error| match error {
        OpenError::Missing(_) if settings::are_unreadable() => {
            let path = settings::path().display().to_string();
            anyhow!(
                "{error}; the service's settings in {path} can be read by root and the group batchscan only"
            )
        }
        error => error.into(),
    })
}

/// Opens a database. Prints what it waits for if PostgreSQL does not respond.
pub(super) async fn open_database(url: &DatabaseUrl, options: OpenOptions) -> Result<Store, OpenError> {
    let DatabaseUrl::Postgres(postgres) = url else { return Store::open(url, options).await };
    let mut opening = pin!(Store::open(url, options));
    tokio::select! {
        opened = &mut opening => return opened,
        () = tokio::time::sleep(WAIT_NOTE_DELAY) => {}
    }
    note(&format!("waiting for PostgreSQL at {}…", postgres.host_names()));
    opening.await
}

/// Whether `serve` and `org add` will create the SQLite database.
pub(super) fn is_new(url: &DatabaseUrl) -> bool {
    match url {
        DatabaseUrl::Sqlite(path) => path.metadata().map_or(true, |file| file.len() == 0),
        DatabaseUrl::Postgres(_) => false,
    }
}

/// The date range of a command. Exits with a usage error if it ends before it starts.
pub(super) fn date_range(command: &str, dates: &DateRangeArgs) -> DateArgRange {
    let range = DateArgRange::new(dates.start_date.clone(), dates.end_date.clone());
    range.unwrap_or_else(|error| usage_error(command, error).exit())
}

/// The fields of `--columns`. Exits with a usage error if one is repeated.
pub(super) fn columns(command: &str, args: &ColumnsArgs) -> Columns {
    let fields = &args.columns;
    let is_repeated = |(index, field): &(usize, &Field)| fields[..*index].contains(field);
    if let Some((_, field)) = fields.iter().enumerate().find(is_repeated) {
        usage_error(command, format!("'--columns' has {field} twice")).exit();
    }
    if fields.is_empty() { Columns::All } else { Columns::Chosen(fields.clone()) }
}

/// The name of an organisation.
pub(super) fn org_name(orgs: &[OrgOverview], id: Option<OrgId>) -> &str {
    orgs.iter().find(|org| Some(org.id) == id).map_or("-", |org| &org.name)
}

/// An instant to the second, or a dash.
pub(super) fn format_time(instant: Option<UtcInstant>) -> String {
    instant.map_or_else(|| "-".into(), |instant| instant.to_whole_secs().to_string())
}

/// A time from now.
pub(super) fn later(now: UtcInstant, time: Duration) -> UtcInstant {
    now.plus_secs(i64::try_from(time.as_secs()).unwrap_or(i64::MAX))
}

/// Completes at SIGTERM or Ctrl-C. A second signal ends the process, whatever its other threads are doing: signals have a
/// thread and a runtime of their own.
pub(super) fn shutdown_signal() -> anyhow::Result<impl Future<Output = ()>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let first_signal = {
        let _context = runtime.enter();
        stop_signal()?
    };
    let (first, received) = oneshot::channel();
    let wait_twice = async {
        first_signal.await;
        let _ = first.send(());
        // Ignores a duplicate of the first signal.
        tokio::time::sleep(Duration::from_millis(200)).await;
        if let Ok(second_signal) = stop_signal() {
            second_signal.await;
            std::process::exit(1);
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(move || runtime.block_on(wait_twice))?;
    Ok(async move {
        let _ = received.await;
        tracing::info!("stopping: finishing what is in progress");
    })
}
