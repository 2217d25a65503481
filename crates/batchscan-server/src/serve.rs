//! The running service: listeners, background tasks, shutdown.

use std::future::Future;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use batchscan_store::Store;
use tokio::sync::watch;

use crate::clock::Clock;
use crate::config::Config;
use crate::http::{self, App, CHECK_INTERVAL, StartError};
use crate::listener::Listener;
use crate::operator;
use crate::tls::Tls;

/// How often the last use of credentials is written to the store.
const FLUSH_INTERVAL: Duration = Duration::from_secs(5);
/// How often keys are read from the store. A removed key must be rejected everywhere within 5 s, also where a standby
/// is 2 s behind.
const KEY_REFRESH_INTERVAL: Duration = Duration::from_secs(2);
/// How often the names of organisations are read from the store: only the log needs them.
const ORGANISATION_REFRESH_INTERVAL: Duration = Duration::from_secs(10);

/// Where and how to serve.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// The address of the API.
    pub listen: String,
    /// A separate address for health and metrics.
    pub operator_listen: Option<String>,
    /// TLS for the address of the API.
    pub tls: Option<Arc<Tls>>,
    /// How long responses may take to finish after the service was stopped.
    pub drain: Duration,
    /// How requests are handled.
    pub config: Config,
}

/// Why the service cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// An address cannot be used.
    #[error("cannot listen on {address}: {why}: choose another address with {flag}")]
    Address {
        /// The address.
        address: String,
        /// The reason.
        why: String,
        /// The option that set the address.
        flag: &'static str,
    },
    /// The store failed or has no keys.
    #[error(transparent)]
    Start(#[from] StartError),
}

/// A service that is bound to its addresses and not running yet.
#[derive(Debug)]
pub struct Server {
    app: App,
    listener: Listener,
    operator: Option<Listener>,
    tls: Option<Arc<Tls>>,
    drain: Duration,
}

impl Server {
    /// Binds the addresses and loads the keys.
    pub async fn bind(store: Store, options: ServeOptions, clock: Clock) -> Result<Self, ServeError> {
        let tls = options.tls;
        let listener = listen(&options.listen, tls.clone(), "--listen").await?;
        let operator = match &options.operator_listen {
            Some(address) => Some(listen(address, None, "--operator-listen").await?),
            None => None,
        };
        let app = App::new(store, options.config, clock).await?;
        // For the first lines of the log. A failure is logged when it is repeated.
        let _ = app.refresh_organisations().await;
        Ok(Self { app, listener, operator, tls, drain: options.drain })
    }

    /// The URL of the API.
    pub fn url(&self) -> String {
        self.listener.url()
    }

    /// The URL for health and metrics, if it is a separate one.
    pub fn operator_url(&self) -> Option<String> {
        self.operator.as_ref().map(Listener::url)
    }

    /// Serves until `stop` completes, then waits for unfinished responses.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let Self { app, listener, operator, tls, drain } = self;
        let (stop_sender, stop_receiver) = watch::channel(false);
        let background = [
            Some(tokio::spawn(flush_uses_periodically(app.clone()))),
            Some(tokio::spawn(refresh_keys_periodically(app.clone()))),
            Some(tokio::spawn(refresh_organisations_periodically(app.clone()))),
            Some(tokio::spawn(check_waiting_periodically(app.clone()))),
            tls.map(|tls| tokio::spawn(tls.reload_on_change())),
        ];
        let operator = operator.map(|listener| {
            let router = operator::router(app.clone());
            let shared = (app.metrics.clone(), app.budget.clone());
            tokio::spawn(listener.serve(router, shared, stop_receiver.clone(), drain))
        });
        let shared = (app.metrics.clone(), app.budget.clone());
        let serving = listener.serve(http::router(app.clone()), shared, stop_receiver, drain);
        let stopping = async {
            stop.await;
            app.start_draining();
            let _ = stop_sender.send(true);
        };
        tokio::join!(serving, stopping);
        if let Some(operator) = operator {
            let _ = operator.await;
        }
        background.iter().flatten().for_each(tokio::task::JoinHandle::abort);
        app.flush_uses().await;
    }
}

async fn listen(address: &str, tls: Option<Arc<Tls>>, flag: &'static str) -> Result<Listener, ServeError> {
    Listener::bind(address, tls).await.map_err(|error| {
        let why = match error.kind() {
            ErrorKind::AddrInUse => "the port is already in use".into(),
            ErrorKind::PermissionDenied => "ports below 1024 require additional privileges".into(),
            _ => error.to_string(),
        };
        ServeError::Address { address: address.to_owned(), why, flag }
    })
}

async fn flush_uses_periodically(app: App) {
    loop {
        tokio::time::sleep(FLUSH_INTERVAL).await;
        app.flush_uses().await;
    }
}

/// Not together with the keys, which must not wait for it.
async fn refresh_organisations_periodically(app: App) {
    loop {
        if let Err(error) = app.refresh_organisations().await {
            tracing::debug!(%error, "cannot read the organisations");
        }
        tokio::time::sleep(ORGANISATION_REFRESH_INTERVAL).await;
    }
}

async fn check_waiting_periodically(app: App) {
    loop {
        tokio::time::sleep(CHECK_INTERVAL).await;
        if let Err(error) = app.check_waiting().await {
            tracing::debug!(%error, "cannot check for changes");
        }
    }
}

async fn refresh_keys_periodically(app: App) {
    loop {
        tokio::time::sleep(KEY_REFRESH_INTERVAL).await;
        // Without a primary, keys cannot be rotated either.
        if let Err(error) = app.refresh_keys().await {
            tracing::debug!(%error, "cannot refresh the service's keys");
        }
    }
}
