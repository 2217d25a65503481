//! The real service in process: a database and a port of its own, a clock that the test sets.

use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use batchscan_model::{Batch, ClientId, UtcInstant};
use batchscan_server::auth::{KeyRing, issue, new_secret};
use batchscan_server::clock::Clock;
use batchscan_server::config::Config;
use batchscan_server::serve::{ServeOptions, Server};
use batchscan_store::{
    DatabaseUrl, ImportCounts, ImportRow, ImportStep, NewCredential, Opening, OrgName, Rotation, Store,
};
use batchscan_testbed::{Postgres, Settings};
use reqwest::{Method, RequestBuilder};
use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::http::journal;
use crate::http::reply::Reply;
use crate::http::sample::many;

/// When every test begins.
pub(crate) const BEGINNING: &str = "2026-02-01T00:00:00Z";

/// The password to PostgreSQL, which asks for none. It must not be seen anywhere.
pub(crate) const PASSWORD: &str = "hush-6bd1";

/// A service that runs.
pub(crate) struct TestApp {
    pub(crate) url: String,
    pub(crate) operator_url: Option<String>,
    pub(crate) store: Store,
    pub(crate) http: reqwest::Client,
    now: Arc<AtomicI64>,
    keys: KeyRing,
    database: Arc<Database>,
    stop: Option<oneshot::Sender<()>>,
    running: Option<JoinHandle<()>>,
}

/// Which store the claims are held on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(dead_code, reason = "each of the two test programs uses one")]
pub(crate) enum Kind {
    Sqlite,
    Postgres,
}

/// A database of its own for each test.
pub(crate) enum Database {
    Sqlite(TempDir),
    Postgres { server: Arc<Postgres>, name: String },
}

impl Database {
    fn new() -> Self {
        match crate::STORE {
            Kind::Sqlite => Self::Sqlite(tempfile::tempdir().unwrap()),
            Kind::Postgres => Self::on(shared_server()),
        }
    }

    /// A new database on a server.
    pub(crate) fn on(server: Arc<Postgres>) -> Self {
        let name = server.fresh_database().unwrap();
        Self::Postgres { server, name }
    }

    fn url(&self) -> DatabaseUrl {
        match self {
            Self::Sqlite(folder) => DatabaseUrl::Sqlite(folder.path().join("batches.db")),
            Self::Postgres { server, name } => {
                server.url(name).replace("postgres@", &format!("postgres:{PASSWORD}@")).parse().unwrap()
            }
        }
    }

    /// Runs SQL from outside the service.
    fn sql(&self, sqlite: &str, postgres: &str) {
        match self {
            Self::Sqlite(folder) => {
                let connection = rusqlite::Connection::open(folder.path().join("batches.db")).unwrap();
                connection.busy_timeout(Duration::from_secs(10)).unwrap();
                connection.execute_batch(sqlite).unwrap();
            }
            Self::Postgres { server, name } => {
                server.sql(name, postgres).unwrap();
            }
        }
    }
}

/// The server of this test run. Tests that break a server have one of their own.
pub(crate) fn shared_server() -> Arc<Postgres> {
    static SERVER: OnceLock<Arc<Postgres>> = OnceLock::new();
    let settings = || Settings::default().with("max_connections", "1000");
    SERVER.get_or_init(|| Arc::new(Postgres::start(&settings()).unwrap())).clone()
}

/// A credential with its secret.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) id: String,
    pub(crate) secret: String,
}

impl Client {
    /// The form that asks for a token.
    pub(crate) fn form(&self) -> String {
        format!("client_id={}&client_secret={}&grant_type=client_credentials", self.id, self.secret)
    }

    pub(crate) fn client_id(&self) -> ClientId {
        ClientId::new(self.id.clone()).unwrap()
    }
}

impl TestApp {
    pub(crate) async fn start() -> Self {
        Self::with(Config::default()).await
    }

    pub(crate) async fn with(config: Config) -> Self {
        Self::serve(ServeOptions { config, ..Self::options() }).await
    }

    /// Pages of so many batches.
    pub(crate) async fn paged(page_rows: usize) -> Self {
        Self::with(Config { page_rows, ..Config::default() }).await
    }

    /// A service with pages of two, five batches, and a token for them.
    pub(crate) async fn nursery() -> (Self, String) {
        let app = Self::paged(2).await;
        let client = app.org("Nursery").await;
        app.import("Nursery", &many(5)).await;
        let token = app.token(&client).await;
        (app, token)
    }

    pub(crate) async fn serve(options: ServeOptions) -> Self {
        Self::over_database(Database::new(), options).await
    }

    pub(crate) async fn over_database(database: Database, options: ServeOptions) -> Self {
        Self::opened(database, options, Opening::OR_MAKE).await
    }

    pub(crate) async fn opened(database: Database, options: ServeOptions, opening: Opening) -> Self {
        let now = Arc::new(AtomicI64::new(instant(BEGINNING).micros()));
        Self::over(Arc::new(database), now, options, opening).await
    }

    /// Another process on the same database, in effect: a store and a cache of its own.
    pub(crate) async fn node(&self, config: Config) -> Self {
        let options = ServeOptions { config, ..Self::options() };
        Self::over(self.database.clone(), self.now.clone(), options, Opening::OR_MAKE).await
    }

    pub(crate) fn options() -> ServeOptions {
        ServeOptions {
            listen: "127.0.0.1:0".into(),
            operator_listen: None,
            tls: None,
            drain: Duration::from_secs(30),
            config: Config::default(),
        }
    }

    async fn over(
        database: Arc<Database>,
        now: Arc<AtomicI64>,
        options: ServeOptions,
        opening: Opening,
    ) -> Self {
        journal::begin();
        let store = Store::open(&database.url(), opening).await.unwrap();
        let told = now.clone();
        let clock = Clock::from_fn(move || UtcInstant::from_micros(told.load(Ordering::SeqCst)).unwrap());
        let server = Server::bind(store.clone(), options, clock.clone()).await.unwrap();
        let (url, operator_url) = (server.url(), server.operator_url());
        let keys = KeyRing::new(&store.keys(clock.now()).await.unwrap(), clock.now()).unwrap();
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(server.run(async {
            let _ = stopped.await;
        }));
        let http = plain_client().build().unwrap();
        Self { url, operator_url, store, http, now, keys, database, stop: Some(stop), running: Some(running) }
    }

    /// Where the SQLite file is.
    #[cfg_attr(test, allow(dead_code, reason = "only where the store is a file"))]
    pub(crate) fn database(&self) -> PathBuf {
        match self.database.url() {
            DatabaseUrl::Sqlite(path) => path,
            DatabaseUrl::Postgres(_) => panic!("no file"),
        }
    }

    /// `HOST:PORT`.
    pub(crate) fn address(&self) -> &str {
        self.url.split("//").nth(1).unwrap()
    }

    pub(crate) fn now(&self) -> UtcInstant {
        UtcInstant::from_micros(self.now.load(Ordering::SeqCst)).unwrap()
    }

    pub(crate) fn set_now(&self, now: UtcInstant) {
        self.now.store(now.micros(), Ordering::SeqCst);
    }

    pub(crate) fn advance_secs(&self, secs: i64) {
        self.set_now(self.now().plus_secs(secs));
    }

    /// Tells the service to stop. What it returns is done when the service is down.
    pub(crate) fn stop(&mut self) -> JoinHandle<()> {
        let _ = self.stop.take().unwrap().send(());
        self.running.take().unwrap()
    }

    /// A new organisation and its first credential.
    pub(crate) async fn org(&self, name: &str) -> Client {
        self.store.add_org(&OrgName::new(name).unwrap(), self.now()).await.unwrap();
        self.credential(name, None).await
    }

    pub(crate) async fn credential(&self, org: &str, expires_at: Option<UtcInstant>) -> Client {
        let issued = issue().unwrap();
        let new = NewCredential {
            client: issued.client.clone(),
            label: String::new(),
            expires_at,
            secret_hash: self.keys.hash_secret(&issued.secret),
            now: self.now(),
        };
        self.store.add_credential(org, new).await.unwrap();
        let (id, secret) = (issued.client.to_string(), issued.secret.reveal().to_owned());
        Client { id, secret }
    }

    /// The client with a second secret; the first lives until `retire_at`.
    pub(crate) async fn rotate(&self, client: &Client, retire_at: UtcInstant) -> Client {
        let secret = new_secret().unwrap();
        let secret_hash = self.keys.hash_secret(&secret);
        let rotation = Rotation { secret_hash, retire_at, now: self.now() };
        self.store.rotate_credential(&client.client_id(), rotation).await.unwrap();
        Client { secret: secret.reveal().to_owned(), ..client.clone() }
    }

    pub(crate) async fn revoke(&self, client: &Client) {
        self.store.revoke_credential(&client.client_id(), self.now()).await.unwrap();
    }

    pub(crate) async fn import(&self, org: &str, batches: &[Batch]) -> ImportCounts {
        let row = |batch: &Batch| ImportRow { position: batch.position(), json: batch.to_json() };
        let (sender, rows) = mpsc::channel(2);
        sender.send(ImportStep::Rows(batches.iter().map(row).collect())).await.unwrap();
        sender.send(ImportStep::Commit).await.unwrap();
        self.store.import(org, rows).await.unwrap()
    }

    /// Takes a batch away, as only an operator at an SQL prompt can.
    pub(crate) fn remove(&self, id: &str) {
        let statements = |random| {
            format!(
                "BEGIN;
                 UPDATE organisation SET version = version + 1, version_mark = {random} WHERE name = 'Nursery';
                 DELETE FROM batch WHERE batch_id = '{id}';
                 COMMIT;"
            )
        };
        self.database.sql(&statements("random()"), &statements("(random() * 1e15)::bigint"));
    }

    /// Destroys the table of batches.
    pub(crate) fn lose_batches(&self) {
        self.database.sql("DROP TABLE batch", "DROP TABLE batch CASCADE");
    }

    pub(crate) fn request(&self, method: &str, path: &str) -> RequestBuilder {
        self.http.request(Method::from_bytes(method.as_bytes()).unwrap(), format!("{}{path}", self.url))
    }

    /// `GET` with a bearer token.
    pub(crate) async fn get(&self, path: &str, token: &str) -> Reply {
        Reply::to(self.request("GET", path).bearer_auth(token)).await
    }

    /// `GET` with a bearer token and one more header.
    pub(crate) async fn get_with(&self, path: &str, token: &str, name: &str, value: &str) -> Reply {
        Reply::to(self.request("GET", path).bearer_auth(token).header(name, value)).await
    }

    /// `POST` of a form.
    pub(crate) async fn post_form(&self, path: &str, form: impl Into<String>) -> Reply {
        let kind = "application/x-www-form-urlencoded";
        Reply::to(self.request("POST", path).header("content-type", kind).body(form.into())).await
    }

    /// An access token.
    pub(crate) async fn token(&self, client: &Client) -> String {
        let reply = self.post_form("/v2/auth", client.form()).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()["access_token"].as_str().unwrap().to_owned()
    }

    /// The ids of v1's answer, in its order.
    pub(crate) async fn v1_ids(&self, query: &str, token: &str) -> Vec<String> {
        let reply = self.get(&format!("/v1/batches{query}"), token).await;
        assert_eq!(reply.status, 200, "{query}: {}", reply.text());
        reply.ids()
    }

    /// The ids of all of v2's pages, in their order.
    pub(crate) async fn v2_ids(&self, query: &str, token: &str) -> Vec<String> {
        let mut ids = Vec::new();
        let mut path = format!("/v2/batches{query}");
        loop {
            let reply = self.get(&path, token).await;
            assert_eq!(reply.status, 200, "{path}: {}", reply.text());
            ids.extend(reply.ids());
            let Some(next) = reply.next_token() else { return ids };
            path = format!("/v2/batches?next_token={next}");
        }
    }
}

pub(crate) fn instant(text: &str) -> UtcInstant {
    UtcInstant::parse_any_offset(text).unwrap()
}

/// A client that decodes nothing by itself and goes through no proxy.
pub(crate) fn plain_client() -> reqwest::ClientBuilder {
    // The first test to come installs it; for the others it is there already.
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().no_gzip().no_zstd().tls_certs_only([])
}
