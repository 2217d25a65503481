//! `batchscan serve`.

use std::process::ExitCode;
use std::time::Duration;

use batchscan_server::clock::Clock;
use batchscan_server::config::{Config, TlsFiles};
use batchscan_server::edge::CONNECTIONS_MAX;
use batchscan_server::serve::{ServeOptions, Server};
use batchscan_store::{DatabaseUrl, OpenOptions, ReadFrom, Store};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};

use crate::args::{ReadFromArg, Serve};
use crate::output::{print, start_log};

pub(crate) async fn run(database: &DatabaseUrl, command: Box<Serve>) -> anyhow::Result<ExitCode> {
    start_log(command.log_format);
    raise_open_files();
    let read_from = match command.read_from {
        ReadFromArg::Any => ReadFrom::Any,
        ReadFromArg::Standby => ReadFrom::Standby,
    };
    let connections = usize::from(command.database_connections);
    let store = Store::open(database, OpenOptions { read_from, connections, ..OpenOptions::CREATE }).await?;
    // Best effort: a database that cannot tell is no reason not to serve.
    let no_organisations = store.has_orgs().await.is_ok_and(|any| !any);
    let public_url = command.public_url.clone();
    let server = Server::bind(store, options(*command), Clock::system()).await?;
    if let Some(url) = server.operator_url() {
        tracing::info!(url, "health and metrics for operators");
    }
    if no_organisations {
        tracing::warn!(%database, "no organisation is in this database: add one with `batchscan org add NAME`");
    }
    tracing::info!(%database, public_url, "serving");
    // Whoever reads that it listens may ask it to stop at once.
    let stop = told_to_stop()?;
    print(&format!("listening on {}\n", server.url()))?;
    server.run(stop).await;
    Ok(ExitCode::SUCCESS)
}

fn options(command: Serve) -> ServeOptions {
    let config = Config {
        token_ttl_secs: i64::try_from(command.token_ttl.as_secs()).unwrap_or(i64::MAX),
        page_rows: usize::from(command.page_size),
        cache_bytes: u64::from(command.cache_mib) * 1024 * 1024,
        cors_origins: command.cors_origin,
        rate_limit: command.rate_limit,
        v1_sunset: command.v1_sunset,
        fail_rate: 0.0,
        metrics_in_public: command.operator_listen.is_none(),
        public_url: command.public_url,
    };
    let tls = command.tls_cert.zip(command.tls_key).map(|(cert, key)| TlsFiles { cert, key });
    ServeOptions {
        listen: command.listen,
        operator_listen: command.operator_listen,
        tls,
        drain: command.drain,
        config,
    }
}

/// Done at SIGTERM or SIGINT. A second one ends the process at once.
pub(super) fn told_to_stop() -> anyhow::Result<impl Future<Output = ()>> {
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! { _ = term.recv() => {}, _ = int.recv() => {} }
        tracing::info!("stopping: answers under way may finish");
        tokio::spawn(async move {
            // Whoever sends the signal again has waited long enough; but not twice in the same breath.
            tokio::time::sleep(Duration::from_millis(200)).await;
            tokio::select! { _ = term.recv() => {}, _ = int.recv() => {} }
            std::process::exit(1);
        });
    })
}

/// Every connection is a file descriptor, and the usual limit is 1024.
pub(super) fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = CONNECTIONS_MAX as u64 + 256;
    let raised = limit.maximum.map_or(wanted, |maximum| maximum.min(wanted));
    if limit.current.is_some_and(|current| current < raised) {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum: limit.maximum });
    }
}
