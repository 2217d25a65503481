//! `batchscan demo`.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use batchscan_model::UtcInstant;
use batchscan_server::clock::Clock;
use batchscan_server::config::Config;
use batchscan_server::serve::{ServeOptions, Server};
use batchscan_store::{
    AdminError, DatabaseUrl, ImportEnd, ImportRow, ImportSource, ImportStep, OpenOptions, OrgName, Store,
};
use tokio::sync::mpsc;

use super::context::shutdown_signal;
use super::credential::issue;
use super::serve::FILES_MAX;
use crate::args::{Demo, LogFormat};
use crate::demo_data;
use crate::log;
use crate::numbers::count;
use crate::platform;
use crate::progress::progress_bar;
use crate::terminal::print;

const NURSERY: &str = "Green Valley Nursery";
const DAY_MICROS: i64 = 86_400_000_000;
const ROWS_PER_STEP: usize = 500;
/// Steps between generator and store. Bounds the memory.
const STEPS_QUEUED_MAX: usize = 4;

pub(crate) async fn run(command: Demo) -> anyhow::Result<()> {
    // Without the variable there is no log: the terminal is for the instructions.
    if std::env::var_os("BATCHSCAN_LOG").is_some() {
        log::start("demo", LogFormat::Text)?;
    }
    platform::raise_file_limit(FILES_MAX);
    // Before the folder exists, so that a signal cannot leave it behind.
    let mut stop = std::pin::pin!(shutdown_signal()?);
    let folder = tempfile::Builder::new()
        .prefix("batchscan-demo-")
        .tempdir()
        .context("cannot create a temporary folder")?;
    let store = Store::open(&DatabaseUrl::Sqlite(folder.path().join("demo.db")), OpenOptions::CREATE).await?;
    let now = Clock::system().now();
    let config = Config { fail_rate: command.fail_rate, has_demo_reports: true, ..Config::default() };
    let drain = Duration::from_secs(2);
    let options =
        ServeOptions { listen: command.listen.clone(), operator_listen: None, tls: None, drain, config };
    let server = Server::bind(store.clone(), options, Clock::system()).await?;
    let name = OrgName::new(NURSERY).context("invalid organisation name")?;
    store.add_org(&name, now).await?;
    // Midnight, so that the same seed generates the same batches all day.
    let end = UtcInstant::from_micros(now.micros() / DAY_MICROS * DAY_MICROS).unwrap_or(now);
    let url = local_url(&server.url());
    let filled = tokio::select! {
        filled = fill(&store, &command, end, url.clone()) => filled.map(|()| true)?,
        () = &mut stop => false,
    };
    if filled {
        let (client, secret) = issue(&store, NURSERY, "demo".into(), None, now).await?;
        print(&instructions(&url, &command, client.as_str(), secret.reveal(), end))?;
        log::log_panics();
        server.run(stop).await;
    } else {
        drop(server);
    }
    drop(store);
    folder.close().context("cannot remove the demo data")
}

/// The loopback address of a demo that listens on all addresses.
fn local_url(url: &str) -> String {
    url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
}

/// Generates and imports the batches. Stops if the future is dropped.
async fn fill(store: &Store, command: &Demo, end: UtcInstant, url: String) -> anyhow::Result<()> {
    let bar = progress_bar("generating batches", "{msg} {bar:32} {human_pos} of {human_len}");
    bar.set_length(command.batches);
    let (steps, receiver) = mpsc::channel(STEPS_QUEUED_MAX);
    let (batches, seed, progress) = (command.batches, command.seed, bar.clone());
    let running = Arc::new(());
    let still_running = Arc::downgrade(&running);
    let generating = tokio::task::spawn_blocking(move || {
        let mut rows =
            demo_data::batches(batches, seed, end, &url).map(|batch| ImportRow::from(&batch)).peekable();
        while rows.peek().is_some() {
            if still_running.strong_count() == 0 {
                return;
            }
            let chunk: Vec<ImportRow> = rows.by_ref().take(ROWS_PER_STEP).collect();
            progress.inc(chunk.len() as u64);
            if steps.blocking_send(ImportStep::Rows(chunk)).is_err() {
                return;
            }
        }
        // If the import has failed, it returns the error.
        let _ = steps.blocking_send(ImportStep::End(ImportEnd::default()));
    });
    let imported: Result<_, AdminError> =
        store.import(NURSERY, ImportSource::default(), receiver, Clock::system().now()).await;
    generating.await.context("generating batches failed")?;
    drop(running);
    bar.finish_and_clear();
    imported?;
    Ok(())
}

fn instructions(url: &str, command: &Demo, id: &str, secret: &str, end: UtcInstant) -> String {
    let batches = count(command.batches, "batch", "batches");
    let month = end.plus_secs(-30 * 86_400).to_string();
    // The path it was called with, so that the command below works here.
    let program = std::env::args().next().unwrap_or_else(|| "batchscan".into());
    let commands = platform::demo_commands(url, id, secret, &month, &program);
    let failing = if command.fail_rate > 0.0 {
        format!("\n{:.0} of 100 batch requests fail with 503 (--fail-rate).\n", command.fail_rate * 100.0)
    } else {
        String::new()
    };
    format!(
        r#"{NURSERY}: {batches}, one year up to {end}
{failing}
  URL            {url}
  client id      {id}
  client secret  {secret}

Dashboard, signed in:

  {url}/#sign-in={id}:{secret}

Commands to paste in another terminal:

{commands}

Ctrl-C stops it and removes the data.
listening on {url}
"#
    )
}
