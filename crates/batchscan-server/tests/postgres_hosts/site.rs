//! A cluster, a store over it, and the service in process.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use batchscan_model::{Batch, ClientId, UtcInstant};
use batchscan_server::auth::{KeyRing, issue};
use batchscan_server::clock::Clock;
use batchscan_server::config::Config;
use batchscan_server::serve::{ServeOptions, Server};
use batchscan_store::{
    AdminError, Answer, Caller, DatabaseUrl, HostHealth, ImportRow, ImportStep, NewCredential, Opening,
    OrgName, PageLimit, PageRequest, PageText, ReadFrom, Store, StoreError,
};
use batchscan_testbed::{Cluster, Postgres, Replication, Settings};
use reqwest::header::HeaderMap;
use reqwest::{Client as Http, RequestBuilder};
use serde_json::Value;
use tokio::sync::mpsc;

/// The organisation that every site has.
pub(crate) const ORG: &str = "Nursery";
/// Decision 028: no request takes longer, whatever comes of it.
pub(crate) const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// Between two looks at what is waited for.
const PAUSE: Duration = Duration::from_millis(10);

/// A cluster with five batches on it, and a service that reads them.
pub(crate) struct Site {
    pub(crate) cluster: Cluster,
    pub(crate) database: String,
    pub(crate) nursery: Nursery,
}

/// A store with an organisation, and a service over it.
pub(crate) struct Nursery {
    pub(crate) store: Store,
    pub(crate) tenant: Caller,
    pub(crate) client: Client,
    keys: KeyRing,
    url: String,
    http: Http,
}

/// A credential with its secret.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) id: ClientId,
    pub(crate) secret: String,
}

/// An answer over HTTP, read whole.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Site {
    /// A cluster whose standbys have caught up, as the store knows.
    pub(crate) async fn start(read_from: ReadFrom) -> Self {
        Self::with(&Settings::default(), read_from).await
    }

    pub(crate) async fn with(settings: &Settings, read_from: ReadFrom) -> Self {
        let cluster = harm(|| Cluster::start(settings, Replication::Asynchronous));
        let database = harm(|| cluster.primary().fresh_database());
        let url = cluster.url(&database).parse().unwrap();
        let nursery = Nursery::open(&url, Opening { read_from, ..Opening::OR_MAKE }).await;
        let site = Self { cluster, database, nursery };
        site.catch_up();
        let all_current = |hosts: &[HostHealth]| hosts.iter().all(|host| host.is_current);
        site.nursery.sees(Duration::from_secs(5), all_current).await;
        site
    }

    /// Waits until the standbys have all that the primary has.
    pub(crate) fn catch_up(&self) {
        for standby in self.cluster.standbys() {
            harm(|| standby.wait_to_catch_up_with(self.cluster.primary()));
        }
    }

    /// From now on the standbys learn nothing new.
    pub(crate) async fn hold_standbys_back(&self) {
        for standby in self.cluster.standbys() {
            harm(|| standby.sql("postgres", "SELECT pg_wal_replay_pause()"));
            let paused =
                || harm(|| standby.sql("postgres", "SELECT pg_get_wal_replay_pause_state()")) == "paused";
            until(Duration::from_secs(10), async || paused()).await;
        }
    }
}

impl Nursery {
    /// Opens the database, adds the organisation with five batches, and serves it in pages of two.
    pub(crate) async fn open(url: &DatabaseUrl, opening: Opening) -> Self {
        let store = Store::open(url, opening).await.unwrap();
        let keys = KeyRing::new(&store.keys(now()).await.unwrap(), now()).unwrap();
        let org = store.add_org(&OrgName::new(ORG).unwrap(), now()).await.unwrap();
        let client = add_credential(&store, &keys).await;
        let tenant = Caller { org: org.id, client: client.id.clone() };
        let (url, http) = serve(&store).await;
        let nursery = Self { store, tenant, client, keys, url, http };
        let batches: Vec<Batch> = (0..5).map(|number| batch(&format!("b{number}"), number)).collect();
        nursery.import(&batches).await.unwrap();
        nursery
    }

    pub(crate) async fn import(&self, batches: &[Batch]) -> Result<(), AdminError> {
        let (steps, rows) = mpsc::channel(2);
        steps.send(ImportStep::Rows(batches.iter().map(ImportRow::from).collect())).await.unwrap();
        steps.send(ImportStep::Commit).await.unwrap();
        self.store.import(ORG, rows).await.map(drop)
    }

    /// Adds a batch behind those that are there.
    pub(crate) async fn add(&self, id: &str) {
        self.import(&[batch(id, 1_000)]).await.unwrap();
    }

    pub(crate) async fn add_credential(&self) -> Client {
        add_credential(&self.store, &self.keys).await
    }

    /// The ids of one long page, for a caller who has seen that version.
    pub(crate) async fn ids_since(&self, seen: i64) -> Result<Vec<String>, StoreError> {
        let limit = PageLimit { rows: 1_000, bytes: usize::MAX };
        let ask = PageRequest { limit, opening: "[", seen, ..PageRequest::nothing(now()) };
        let Answer::Page(page) = self.store.page(&self.tenant, ask, |_| None::<()>).await? else {
            panic!("a dead credential")
        };
        let PageText::Plain(text) = page.text else { panic!("text that was not asked for") };
        let text = String::from_utf8(text).unwrap() + "]";
        Ok(ids_of(&serde_json::from_str(&text).unwrap()))
    }

    pub(crate) async fn ids(&self) -> Vec<String> {
        self.ids_since(0).await.unwrap()
    }

    /// Waits until this is what is known of the hosts.
    pub(crate) async fn sees(&self, limit: Duration, holds: impl Fn(&[HostHealth]) -> bool) {
        until(limit, async || holds(&self.store.hosts())).await;
    }

    /// Waits until this host is known to be up or not.
    pub(crate) async fn sees_host(&self, host: &Postgres, is_up: bool) {
        let name = format!("127.0.0.1:{}", host.port());
        let holds = |all: &[HostHealth]| all.iter().any(|known| known.host == name && known.is_up == is_up);
        self.sees(Duration::from_secs(10), holds).await;
    }

    pub(crate) async fn get(&self, path: &str, token: &str) -> Reply {
        Reply::to(self.http.get(format!("{}{path}", self.url)).bearer_auth(token)).await
    }

    pub(crate) async fn get_unless(&self, path: &str, token: &str, etag: &str) -> Reply {
        let request = self.http.get(format!("{}{path}", self.url)).bearer_auth(token);
        Reply::to(request.header("if-none-match", etag)).await
    }

    pub(crate) async fn auth(&self, client: &Client) -> Reply {
        let form = [
            ("client_id", client.id.as_str()),
            ("client_secret", &client.secret),
            ("grant_type", "client_credentials"),
        ];
        Reply::to(self.http.post(format!("{}/v2/auth", self.url)).form(&form)).await
    }

    pub(crate) async fn token(&self, client: &Client) -> String {
        let reply = self.auth(client).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.body["access_token"].as_str().unwrap().to_owned()
    }
}

impl Reply {
    async fn to(request: RequestBuilder) -> Self {
        let asked = Instant::now();
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let bytes = response.bytes().await.unwrap();
        assert!(asked.elapsed() < ANSWER_LIMIT, "{status} after {:?}", asked.elapsed());
        let body = if bytes.is_empty() { Value::Null } else { serde_json::from_slice(&bytes).unwrap() };
        Self { status, headers, body }
    }

    /// The batches' ids, of either version.
    pub(crate) fn ids(&self) -> Vec<String> {
        assert_eq!(self.status, 200, "{self:?}");
        ids_of(if self.body.is_array() { &self.body } else { &self.body["data"] })
    }

    pub(crate) fn etag(&self) -> &str {
        self.headers["etag"].to_str().unwrap()
    }

    pub(crate) fn next_path(&self) -> String {
        format!("/v2/batches?next_token={}", self.body["next_token"].as_str().unwrap())
    }

    /// Decision 028.
    #[track_caller]
    pub(crate) fn is_unavailable(&self) {
        assert_eq!(self.status, 503, "{self:?}");
        assert!(self.body["detail"].is_string() && self.headers.contains_key("retry-after"), "{self:?}");
    }
}

/// Does to servers what takes a while, beside the service that runs on the same threads.
pub(crate) fn harm<T, E: Debug>(done: impl FnOnce() -> Result<T, E>) -> T {
    tokio::task::block_in_place(done).unwrap()
}

#[track_caller]
pub(crate) fn until(limit: Duration, holds: impl AsyncFn() -> bool) -> impl Future<Output = ()> {
    let caller = std::panic::Location::caller();
    async move {
        let began = Instant::now();
        while !holds().await {
            assert!(began.elapsed() < limit, "{caller}: not within {limit:?}");
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// The ids that every site begins with, and these behind them.
pub(crate) fn first_five_and(more: &[&str]) -> Vec<String> {
    ["b0", "b1", "b2", "b3", "b4"].iter().chain(more).map(|id| (*id).to_owned()).collect()
}

pub(crate) fn now() -> UtcInstant {
    Clock::system().now()
}

/// A batch of that id, created so many seconds after the first.
pub(crate) fn batch(id: &str, secs: i64) -> Batch {
    let date = UtcInstant::parse_any_offset("2026-01-01T00:00:00Z").unwrap().plus_secs(secs);
    let json = serde_json::json!({
        "batch_id": id, "batch_name": "Tray", "batch_creation_date": date.to_string(),
        "number_of_images": 1, "warnings": false,
    });
    Batch::from_json(&json.to_string()).unwrap()
}

/// Serves a store until the test ends.
pub(crate) async fn serve(store: &Store) -> (String, Http) {
    // The first test to come installs it; for the others it is there already.
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
    let options = ServeOptions {
        listen: "127.0.0.1:0".into(),
        operator_listen: None,
        tls: None,
        drain: Duration::from_secs(1),
        config: Config { page_rows: 2, ..Config::default() },
    };
    let server = Server::bind(store.clone(), options, Clock::system()).await.unwrap();
    let url = server.url();
    tokio::spawn(server.run(std::future::pending()));
    (url, Http::builder().no_proxy().tls_certs_only([]).build().unwrap())
}

async fn add_credential(store: &Store, keys: &KeyRing) -> Client {
    let issued = issue().unwrap();
    let new = NewCredential {
        client: issued.client.clone(),
        label: String::new(),
        expires_at: None,
        secret_hash: keys.hash_secret(&issued.secret),
        now: now(),
    };
    store.add_credential(ORG, new).await.unwrap();
    Client { id: issued.client, secret: issued.secret.reveal().to_owned() }
}

fn ids_of(batches: &Value) -> Vec<String> {
    let id = |batch: &Value| batch["batch_id"].as_str().unwrap().to_owned();
    batches.as_array().unwrap().iter().map(id).collect()
}
