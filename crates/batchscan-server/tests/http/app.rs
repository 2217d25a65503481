//! The service in process, with its own database and port and a clock that the test sets.

use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use batchscan_model::{Batch, ClientId, UtcInstant};
use batchscan_server::auth::KeyRing;
use batchscan_server::clock::Clock;
use batchscan_server::config::Config;
use batchscan_server::serve::{ServeOptions, Server};
use batchscan_store::{
    DatabaseUrl, IdAndSecret, ImportCounts, ImportEnd, ImportRow, ImportSource, ImportStep, NewCredential,
    OpenOptions, OperatorRole, OrgName, Rotation, Store, new_secret,
};
use batchscan_testbed::{Postgres, Settings};
use reqwest::{Method, RequestBuilder};
use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::{Reply, log, many};

/// The time at the start of every test.
const START: &str = "2026-02-01T00:00:00Z";
/// The password for PostgreSQL, which does not require one. It must not be logged.
pub(crate) const PASSWORD: &str = "hush-6bd1";
pub(crate) const FORM: &str = "application/x-www-form-urlencoded";

/// A running service.
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

/// The store under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(dead_code, reason = "each of the two test programs uses one")]
pub(crate) enum StoreKind {
    Sqlite,
    Postgres,
}

/// The database of a test.
#[cfg_attr(test, allow(dead_code, reason = "each of the two test programs uses some"))]
pub(crate) enum Database {
    Sqlite(TempDir),
    Postgres {
        server: Arc<Postgres>,
        name: String,
    },
    /// A database that the test created.
    Url(DatabaseUrl),
}

impl Database {
    fn new() -> Self {
        match crate::STORE {
            StoreKind::Sqlite => Self::Sqlite(tempfile::tempdir().unwrap()),
            StoreKind::Postgres => {
                let server = shared_server();
                let name = server.fresh_database().unwrap();
                Self::Postgres { server, name }
            }
        }
    }

    fn url(&self) -> DatabaseUrl {
        match self {
            Self::Sqlite(folder) => DatabaseUrl::Sqlite(folder.path().join("batches.db")),
            Self::Postgres { server, name } => {
                server.url(name).replace("postgres@", &format!("postgres:{PASSWORD}@")).parse().unwrap()
            }
            Self::Url(url) => url.clone(),
        }
    }

    /// Runs SQL outside the service.
    fn sql(&self, sqlite: &str, postgres: &str) {
        match self {
            Self::Sqlite(folder) => {
                let connection = rusqlite::Connection::open(folder.path().join("batches.db")).unwrap();
                connection.busy_timeout(Duration::from_secs(10)).unwrap();
                connection.execute_batch(sqlite).unwrap();
            }
            Self::Postgres { server, name } => drop(server.sql(name, postgres).unwrap()),
            Self::Url(url) => panic!("no SQL for {url}"),
        }
    }
}

/// The server of this test run. Tests that break a server start their own.
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
    /// The form of a token request.
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

    /// With pages of this size.
    pub(crate) async fn paged(page_rows: usize) -> Self {
        Self::with(Config { page_rows, ..Config::default() }).await
    }

    /// With an organisation "Nursery", its credential and a token.
    pub(crate) async fn signed_in() -> (Self, Client, String) {
        Self::filled(1_000, &[]).await
    }

    /// As [`TestApp::signed_in`], with batches and pages of this size.
    pub(crate) async fn filled(page_rows: usize, batches: &[Batch]) -> (Self, Client, String) {
        let app = Self::paged(page_rows).await;
        let client = app.org("Nursery").await;
        if !batches.is_empty() {
            app.import("Nursery", batches).await;
        }
        let token = app.token(&client).await;
        (app, client, token)
    }

    /// Five batches in pages of two, and a token.
    pub(crate) async fn nursery() -> (Self, String) {
        let (app, _, token) = Self::filled(2, &many(5)).await;
        (app, token)
    }

    /// With an address for operators.
    pub(crate) async fn with_operator() -> Self {
        let operator_listen = Some("127.0.0.1:0".to_owned());
        Self::serve(ServeOptions { operator_listen, ..Self::options() }).await
    }

    pub(crate) async fn serve(options: ServeOptions) -> Self {
        Self::open(Database::new(), options, OpenOptions::CREATE).await
    }

    pub(crate) async fn open(database: Database, options: ServeOptions, opening: OpenOptions) -> Self {
        let now = Arc::new(AtomicI64::new(instant(START).micros()));
        Self::over(Arc::new(database), now, options, opening).await
    }

    /// A second service on the same database, like another process: with its own store and cache.
    pub(crate) async fn node(&self, config: Config) -> Self {
        let options = ServeOptions { config, ..Self::options() };
        Self::over(self.database.clone(), self.now.clone(), options, OpenOptions::CREATE).await
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
        opening: OpenOptions,
    ) -> Self {
        log::start();
        let store = Store::open(&database.url(), opening).await.unwrap();
        let clock = now.clone();
        let clock = Clock::from_fn(move || UtcInstant::from_micros(clock.load(Ordering::SeqCst)).unwrap());
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

    /// The SQLite file.
    pub(crate) fn database(&self) -> PathBuf {
        match self.database.url() {
            DatabaseUrl::Sqlite(path) => path,
            DatabaseUrl::Postgres(_) => panic!("not a file"),
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

    /// Stops the service. The task ends when the service has shut down.
    pub(crate) fn stop(&mut self) -> JoinHandle<()> {
        let _ = self.stop.take().unwrap().send(());
        self.running.take().unwrap()
    }

    /// Adds an organisation and its first credential.
    pub(crate) async fn org(&self, name: &str) -> Client {
        self.store.add_org(&OrgName::new(name).unwrap(), self.now()).await.unwrap();
        self.credential(name, None).await
    }

    pub(crate) async fn credential(&self, org: &str, expires_at: Option<UtcInstant>) -> Client {
        let issued = IdAndSecret::of_client().unwrap();
        let new = NewCredential {
            client: issued.id.clone(),
            label: String::new(),
            expires_at,
            secret_hash: self.keys.secret.hash(&issued.secret),
            now: self.now(),
        };
        self.store.add_credential(org, new).await.unwrap();
        Client { id: issued.id.to_string(), secret: issued.secret.reveal().to_owned() }
    }

    /// Adds a secret; the old one is valid until `retire_at`.
    pub(crate) async fn rotate(&self, client: &Client, retire_at: UtcInstant) -> Client {
        let secret = new_secret().unwrap();
        let rotation = Rotation { secret_hash: self.keys.secret.hash(&secret), retire_at, now: self.now() };
        self.store.rotate_credential(&client.client_id(), rotation).await.unwrap();
        Client { secret: secret.reveal().to_owned(), ..client.clone() }
    }

    pub(crate) async fn revoke(&self, client: &Client) {
        self.store.revoke_credential(&client.client_id(), self.now()).await.unwrap();
    }

    /// Issues a token of the operator API.
    pub(crate) async fn operator_token(
        &self,
        role: OperatorRole,
        org: Option<&str>,
        expires_at: Option<UtcInstant>,
    ) -> String {
        let issued = IdAndSecret::of_operator().unwrap();
        let new = NewCredential {
            client: issued.id.clone(),
            label: "scanner".into(),
            expires_at,
            secret_hash: self.keys.secret.hash(&issued.secret),
            now: self.now(),
        };
        self.store.add_operator_token(role, org, new).await.unwrap();
        issued.reveal()
    }

    pub(crate) async fn import(&self, org: &str, batches: &[Batch]) -> ImportCounts {
        let (sender, rows) = mpsc::channel(2);
        sender.send(ImportStep::Rows(batches.iter().map(ImportRow::from).collect())).await.unwrap();
        sender.send(ImportStep::End(ImportEnd::default())).await.unwrap();
        self.store.import(org, ImportSource::default(), rows, self.now()).await.unwrap().counts
    }

    /// Deletes a batch with SQL: the service itself never does.
    pub(crate) fn delete_batch(&self, id: &str) {
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

    /// Gives every version another mark, as if the database had been restored and its changes imported again.
    pub(crate) fn replace_versions(&self) {
        let statements = "UPDATE organisation SET version_mark = version_mark / 2;
                          UPDATE data_version SET mark = mark / 2;";
        self.database.sql(statements, statements);
    }

    /// Makes every read of batches fail.
    pub(crate) fn drop_batch_table(&self) {
        self.database.sql("DROP TABLE batch", "DROP TABLE batch CASCADE");
    }

    pub(crate) fn request(&self, method: &str, path: &str) -> RequestBuilder {
        self.http.request(Method::from_bytes(method.as_bytes()).unwrap(), format!("{}{path}", self.url))
    }

    /// A request to the operator API: the path after `/operator/v1`.
    pub(crate) fn operator(&self, method: &str, path: &str, token: &str) -> RequestBuilder {
        let url = format!("{}/operator/v1{path}", self.operator_url.as_ref().unwrap());
        self.http.request(Method::from_bytes(method.as_bytes()).unwrap(), url).bearer_auth(token)
    }

    /// Sends a request without a token.
    pub(crate) async fn send(&self, method: &str, path: &str) -> Reply {
        Reply::to(self.request(method, path)).await
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
        Reply::to(self.request("POST", path).header("content-type", FORM).body(form.into())).await
    }

    pub(crate) async fn token(&self, client: &Client) -> String {
        let reply = self.post_form("/v2/auth", client.form()).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()["access_token"].as_str().unwrap().to_owned()
    }

    /// The ids in the response of v1.
    pub(crate) async fn v1_ids(&self, query: &str, token: &str) -> Vec<String> {
        let reply = self.get(&format!("/v1/batches{query}"), token).await;
        assert_eq!(reply.status, 200, "{query}: {}", reply.text());
        reply.ids()
    }

    /// The ids on all pages of v2.
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

/// Lets this time pass at once, for every timer of the test's runtime.
pub(crate) async fn skip_time(duration: Duration) {
    tokio::time::pause();
    tokio::time::advance(duration).await;
    tokio::time::resume();
}

/// A client that does not decode bodies and uses no proxy.
pub(crate) fn plain_client() -> reqwest::ClientBuilder {
    // Fails if another test has installed it.
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().no_gzip().tls_certs_only([])
}
