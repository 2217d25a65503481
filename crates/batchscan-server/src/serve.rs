//! The running service: listeners, background work, and the way down.

use std::future::Future;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::clock::Clock;
use crate::config::{Config, TlsFiles};
use crate::edge::{Listener, Tls, TlsError};
use crate::http::{App, Service, StartError};
use batchscan_store::Store;

/// How often "last used" is written down.
const FLUSH_EVERY: Duration = Duration::from_secs(5);
/// How often keys are read again. A leaked one that was removed must be dead everywhere within 5 s, also where a standby
/// is 2 s behind.
const REFRESH_KEYS_EVERY: Duration = Duration::from_secs(2);

/// Where and how to serve.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// The address of the interface.
    pub listen: String,
    /// An address of its own for health and metrics.
    pub operator_listen: Option<String>,
    /// TLS on the interface's address.
    pub tls: Option<TlsFiles>,
    /// How long answers may take to finish once the service is told to stop.
    pub drain: Duration,
    /// How it answers.
    pub config: Config,
}

/// Why the service does not run. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// An address cannot be listened at.
    #[error("cannot listen on {address}: {why}: choose another with {flag}")]
    Address {
        /// The address.
        address: String,
        /// What is in the way.
        why: String,
        /// Where the address came from.
        flag: &'static str,
    },
    /// The certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The parts could not be put together.
    #[error(transparent)]
    Start(#[from] StartError),
}

/// A service that is bound to its addresses and has not begun.
#[derive(Debug)]
pub struct Server {
    app: Arc<App>,
    listener: Listener,
    operator: Option<Listener>,
    tls: Option<Arc<Tls>>,
    drain: Duration,
}

impl Server {
    /// Binds the addresses and puts the service together.
    pub async fn bind(store: Store, options: ServeOptions, clock: Clock) -> Result<Self, ServeError> {
        let tls = options.tls.map(Tls::load).transpose()?;
        let listener = listen(&options.listen, tls.clone(), "--listen").await?;
        let operator = match &options.operator_listen {
            Some(address) => Some(listen(address, None, "--operator-listen").await?),
            None => None,
        };
        let app = App::new(store, options.config, clock).await?;
        Ok(Self { app, listener, operator, tls, drain: options.drain })
    }

    /// The interface's URL.
    pub fn url(&self) -> String {
        self.listener.url()
    }

    /// The URL of the operator's own address.
    pub fn operator_url(&self) -> Option<String> {
        self.operator.as_ref().map(Listener::url)
    }

    /// Serves until `stop` is done, then lets the answers under way finish.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let Self { app, listener, operator, tls, drain } = self;
        let (stopping, stopped) = watch::channel(false);
        let background = [
            tokio::spawn(flush_now_and_then(app.clone())),
            tokio::spawn(refresh_keys_now_and_then(app.clone())),
        ];
        let watching = tls.map(|tls| tokio::spawn(tls.watch()));
        let operator = operator.map(|listener| {
            tokio::spawn(listener.serve(
                Service::operator(app.clone()),
                app.metrics.clone(),
                stopped.clone(),
                drain,
            ))
        });
        let serving = listener.serve(Service::public(app.clone()), app.metrics.clone(), stopped, drain);
        let told = async {
            stop.await;
            app.drain();
            // The listeners hear it while they live; if they are gone there is nobody to tell.
            let _ = stopping.send(true);
        };
        tokio::join!(serving, told);
        if let Some(operator) = operator {
            let _ = operator.await;
        }
        background.iter().for_each(tokio::task::JoinHandle::abort);
        watching.iter().for_each(tokio::task::JoinHandle::abort);
        app.flush_uses().await;
    }
}

async fn listen(address: &str, tls: Option<Arc<Tls>>, flag: &'static str) -> Result<Listener, ServeError> {
    Listener::bind(address, tls).await.map_err(|error| {
        let why = match error.kind() {
            ErrorKind::AddrInUse => "another program uses that port".into(),
            ErrorKind::PermissionDenied => "ports below 1024 need more rights".into(),
            ErrorKind::InvalidInput => "it is no address of the form HOST:PORT".into(),
            _ => error.to_string(),
        };
        ServeError::Address { address: address.to_owned(), why, flag }
    })
}

async fn flush_now_and_then(app: Arc<App>) {
    loop {
        tokio::time::sleep(FLUSH_EVERY).await;
        app.flush_uses().await;
    }
}

async fn refresh_keys_now_and_then(app: Arc<App>) {
    loop {
        tokio::time::sleep(REFRESH_KEYS_EVERY).await;
        app.refresh_keys().await;
    }
}
