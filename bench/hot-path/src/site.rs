//! The service with a filled store, called without a socket. There is no log.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, request};
use batchscan_model::{Batch, ClientId, UtcInstant};
use batchscan_server::auth::KeyRing;
use batchscan_server::clock::Clock;
use batchscan_server::config::Config;
use batchscan_server::http::{App, router};
use batchscan_store::{
    DatabaseUrl, IdAndSecret, ImportEnd, ImportRow, ImportSource, ImportStep, NewCredential, OpenOptions,
    OrgName, Store,
};
use http_body_util::BodyExt;
use tempfile::TempDir;
use tower::ServiceExt;

use crate::{Failure, sample};

/// The organisation of every store.
pub(crate) const ORG: &str = "hot";
/// More than one page, so that a page has a cursor.
pub(crate) const BATCHES: usize = 4_000;

/// A service, and a client with a token.
pub(crate) struct Site {
    router: Router,
    form: String,
    bearer: String,
    _folder: TempDir,
}

/// A response.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Site {
    /// Fills a store and opens the service on it.
    pub(crate) async fn open(config: Config) -> Result<Self, Failure> {
        let folder = tempfile::tempdir()?;
        let store = fresh_store(&folder, "hot.db").await?;
        fill(&store, &sample::batches(BATCHES)?).await?;
        let (client, secret) = credential(&store).await?;
        let router = router(App::new(store, config, Clock::system()).await?);
        let form = format!("grant_type=client_credentials&client_id={client}&client_secret={secret}");
        let mut site = Self { router, form, bearer: String::new(), _folder: folder };
        let token: serde_json::Value = serde_json::from_slice(&site.auth().await?.body)?;
        site.bearer = format!("Bearer {}", token["access_token"].as_str().ok_or("no token")?);
        Ok(site)
    }

    /// Gets a token.
    pub(crate) async fn auth(&self) -> Result<Reply, Failure> {
        let kind = "application/x-www-form-urlencoded";
        let request = Request::post("/v2/auth").header("host", "localhost").header("content-type", kind);
        self.send(request, self.form.clone().into()).await
    }

    /// Gets batches, with an additional header field.
    pub(crate) async fn get(&self, target: &str, field: Option<(&str, &str)>) -> Result<Reply, Failure> {
        let request = Request::get(target).header("host", "localhost").header("authorization", &self.bearer);
        let request = field.into_iter().fold(request, |request, (name, value)| request.header(name, value));
        self.send(request, Body::empty()).await
    }

    async fn send(&self, request: request::Builder, body: Body) -> Result<Reply, Failure> {
        let response = self.router.clone().oneshot(request.body(body)?).await?;
        let (parts, body) = response.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok(Reply { status: parts.status, headers: parts.headers, body })
    }
}

/// A new file with the organisation only.
pub(crate) async fn fresh_store(folder: &TempDir, name: &str) -> Result<Store, Failure> {
    let store = Store::open(&DatabaseUrl::Sqlite(folder.path().join(name)), OpenOptions::CREATE).await?;
    store.add_org(&OrgName::new(ORG).ok_or("no name")?, Clock::system().now()).await?;
    Ok(store)
}

async fn fill(store: &Store, batches: &[Batch]) -> Result<(), Failure> {
    let (steps, receiver) = tokio::sync::mpsc::channel(2);
    steps.send(ImportStep::Rows(batches.iter().map(ImportRow::from).collect())).await?;
    steps.send(ImportStep::End(ImportEnd::default())).await?;
    store.import(ORG, ImportSource::default(), receiver, UtcInstant::EPOCH).await?;
    Ok(())
}

async fn credential(store: &Store) -> Result<(ClientId, String), Failure> {
    let now = Clock::system().now();
    let issued = IdAndSecret::of_client().ok_or("no random numbers")?;
    let secret_hash = KeyRing::new(&store.keys(now).await?, now)?.secret.hash(&issued.secret);
    let client = issued.id.clone();
    let credential = NewCredential { client, label: String::new(), expires_at: None, secret_hash, now };
    store.add_credential(ORG, credential).await?;
    Ok((issued.id, issued.secret.reveal().to_owned()))
}
