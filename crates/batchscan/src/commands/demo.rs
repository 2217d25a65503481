//! `batchscan demo`.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use batchscan_model::UtcInstant;
use batchscan_server::clock::Clock;
use batchscan_server::config::Config;
use batchscan_server::serve::{ServeOptions, Server};
use batchscan_store::{AdminError, DatabaseUrl, ImportRow, ImportStep, OpenOptions, OrgName, Store};
use tokio::sync::mpsc;

use super::credential::issue;
use super::serve::{raise_open_files, told_to_stop};
use crate::args::{Demo, LogFormat};
use crate::figures::count;
use crate::nursery;
use crate::output::{bar, print, start_log};

const NURSERY: &str = "Green Valley Nursery";
const DAY_MICROS: i64 = 86_400_000_000;
/// Batches handed to the store at once.
const ROWS_PER_STEP: usize = 500;
/// Steps on their way to the store: the maker never runs far ahead.
const STEPS_WAITING_MAX: usize = 4;

pub(crate) async fn run(command: Demo) -> anyhow::Result<ExitCode> {
    // A demo's terminal is for its welcome; what goes wrong is still said.
    if std::env::var_os("BATCHSCAN_LOG").is_some() {
        start_log(LogFormat::Text);
    }
    raise_open_files();
    // From here on a signal ends the demo in order: there is a folder to remove.
    let mut stop = std::pin::pin!(told_to_stop()?);
    let folder =
        tempfile::Builder::new().prefix("batchscan-demo-").tempdir().context("cannot make a folder")?;
    let store = Store::open(&DatabaseUrl::Sqlite(folder.path().join("demo.db")), OpenOptions::CREATE).await?;
    let now = Clock::system().now();
    let config = Config { fail_rate: command.fail_rate, ..Config::default() };
    let drain = Duration::from_secs(2);
    let options =
        ServeOptions { listen: command.listen.clone(), operator_listen: None, tls: None, drain, config };
    let server = Server::bind(store.clone(), options, Clock::system()).await?;
    let name = OrgName::new(NURSERY).context("the demo's name is not a name")?;
    store.add_org(&name, now).await?;
    // Midnight, so that the same seed makes the same batches all day.
    let end = UtcInstant::from_micros(now.micros() / DAY_MICROS * DAY_MICROS).unwrap_or(now);
    let url = reachable(&server.url());
    let filled = tokio::select! {
        filled = fill(&store, &command, end, url.clone()) => filled.map(|()| true)?,
        () = &mut stop => false,
    };
    if filled {
        let (client, secret) = issue(&store, NURSERY, "demo".into(), None, now).await?;
        print(&welcome(&url, &command, client.as_str(), secret.reveal(), end))?;
        server.run(stop).await;
    } else {
        drop(server);
    }
    drop(store);
    folder.close().context("cannot remove the demo's data")?;
    Ok(ExitCode::SUCCESS)
}

/// A demo that listens on every address is asked at this machine's own.
fn reachable(url: &str) -> String {
    url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
}

/// Makes the batches. If this is dropped before its end, the making stops and nothing is kept.
async fn fill(store: &Store, command: &Demo, end: UtcInstant, url: String) -> anyhow::Result<()> {
    let bar = bar("making batches", "{msg} {bar:32} {human_pos} of {human_len}");
    bar.set_length(command.batches);
    let (steps, rows) = mpsc::channel(STEPS_WAITING_MAX);
    let (batches, seed, ticking) = (command.batches, command.seed, bar.clone());
    let wanted = Arc::new(());
    let still_wanted = Arc::downgrade(&wanted);
    let making = tokio::task::spawn_blocking(move || {
        let mut made =
            nursery::batches(batches, seed, end, &url).map(|batch| ImportRow::from(&batch)).peekable();
        while made.peek().is_some() {
            if still_wanted.strong_count() == 0 {
                return;
            }
            let chunk: Vec<ImportRow> = made.by_ref().take(ROWS_PER_STEP).collect();
            ticking.inc(chunk.len() as u64);
            if steps.blocking_send(ImportStep::Rows(chunk)).is_err() {
                return;
            }
        }
        // If the store has gone away by now, its own error tells why.
        let _ = steps.blocking_send(ImportStep::Commit);
    });
    let imported: Result<_, AdminError> = store.import(NURSERY, rows).await;
    making.await.context("making batches broke off")?;
    drop(wanted);
    bar.finish_and_clear();
    imported?;
    Ok(())
}

fn welcome(url: &str, command: &Demo, id: &str, secret: &str, end: UtcInstant) -> String {
    let batches = count(command.batches, "batch", "batches");
    let month = end.plus_secs(-30 * 86_400);
    // As it was called, so that the line works where this one did.
    let program = std::env::args().next().unwrap_or_else(|| "batchscan".into());
    let failing = if command.fail_rate > 0.0 {
        format!("\n{:.0} of 100 batch requests are answered with 503, as asked.\n", command.fail_rate * 100.0)
    } else {
        String::new()
    };
    format!(
        r#"{NURSERY}: {batches} of the year up to {end}
{failing}
  URL            {url}
  client id      {id}
  client secret  {secret}

Open the dashboard, signed in:

  {url}/#sign-in={id}:{secret}

Paste these:

  TOKEN=$(curl -s {url}/v2/auth -d grant_type=client_credentials -d client_id={id} -d client_secret={secret} | sed 's/.*"access_token":"\([^"]*\)".*/\1/')
  curl -s -H "Authorization: Bearer $TOKEN" "{url}/v2/batches?start_date={month}"
  curl -s -H "Authorization: Bearer $TOKEN" --compressed {url}/v1/batches -o batches.json && wc -c batches.json
  BATCHSCAN_CLIENT_SECRET={secret} {program} pull --url {url} --client-id {id} --output batches.xlsx

Ctrl-C stops it and removes the data.
listening on {url}
"#
    )
}
