//! `batchscan serve`.

use std::sync::Arc;

use batchscan_server::clock::Clock;
use batchscan_server::config::{Config, TlsFiles};
use batchscan_server::listener::CONNECTIONS_MAX;
use batchscan_server::serve::{ServeOptions, Server};
use batchscan_server::tls::Tls;
use batchscan_store::{OpenOptions, Store};

use super::context::{is_new, shutdown_signal};
use super::self_signed;
use crate::args::{Serve, unknown_variables};
use crate::log;
use crate::platform::raise_file_limit;
use crate::terminal::print;

/// Each connection needs a file descriptor, and the usual limit is 1024.
pub(super) const FILES_MAX: u64 = CONNECTIONS_MAX as u64 + 256;

pub(crate) async fn run(command: Serve) -> anyhow::Result<()> {
    log::start("serve", command.log_format)?;
    unknown_variables().iter().for_each(|warning| tracing::warn!("{warning}"));
    raise_file_limit(FILES_MAX);
    let database = command.database.database.clone();
    let read_from = command.read_from;
    let connections = usize::from(command.database_connections);
    let is_new = is_new(&database);
    let store = Store::open(&database, OpenOptions { read_from, connections, ..OpenOptions::CREATE }).await?;
    if is_new {
        tracing::info!("created the database {database}");
    }
    // Only for the warning below: an error here does not prevent the start.
    let no_organisations = store.has_orgs().await.is_ok_and(|any| !any);
    let public_url = command.public_url.clone();
    let server = Server::bind(store, options(command)?, Clock::system()).await?;
    if no_organisations {
        tracing::warn!(%database, "the database has no organisation: add one with `batchscan org add NAME`");
    }
    tracing::info!(version = env!("CARGO_PKG_VERSION"), %database, public_url, "serving");
    // Before the line below, after which a signal may come.
    let stop = shutdown_signal()?;
    print(&format!("listening on {}\n", server.url()))?;
    if let Some(url) = server.operator_url() {
        print(&format!("operator API on {url}\n"))?;
    }
    log::log_panics();
    server.run(stop).await;
    Ok(())
}

fn options(command: Serve) -> anyhow::Result<ServeOptions> {
    let tls = tls(&command)?;
    let cache_bytes = command.cache_mib as usize * 1024 * 1024;
    let config = Config {
        token_ttl_secs: i64::try_from(command.token_ttl.as_secs()).unwrap_or(i64::MAX),
        page_rows: usize::from(command.page_size),
        cache_bytes: cache_bytes as u64,
        // Cached pages count for the client that requested them. They must not take up all of its share.
        response_bytes_max: Config::default().response_bytes_max.max(4 * cache_bytes),
        cors_origins: command.cors_origin,
        rate_limit: command.rate_limit,
        v1_sunset: command.v1_sunset,
        metrics_in_public: command.public_metrics,
        is_https: tls.is_some() || command.public_url.as_ref().is_some_and(|url| url.starts_with("https:")),
        public_url: command.public_url,
        trusted_proxies: command.trusted_proxy,
        import_bytes_max: command.max_delivery,
        ..Config::default()
    };
    Ok(ServeOptions {
        listen: command.listen,
        operator_listen: command.operator_listen,
        tls,
        drain: command.drain,
        config,
    })
}

fn tls(command: &Serve) -> anyhow::Result<Option<Arc<Tls>>> {
    if let Some(file) = &command.self_signed {
        return Ok(Some(self_signed::create(file, &command.listen)?));
    }
    let files = command.tls_cert.clone().zip(command.tls_key.clone());
    Ok(files.map(|(cert, key)| Tls::load(TlsFiles { cert, key })).transpose()?)
}
