//! A cluster and the service in process.

use std::fmt::Debug;
use std::ops::Deref;

use batchscan_model::Batch;
use batchscan_server::config::Config;
use batchscan_server::serve::ServeOptions;
use batchscan_store::{
    Caller, DatabaseUrl, Encoding, HostHealth, OpenOptions, Page, PageLimit, PageRequest, PageResult,
    ReadFrom, Resume, StoreError,
};
use batchscan_testbed::{Cluster, Postgres, Replication, Settings};

use crate::http::app::Database;
pub(crate) use crate::http::until;
use crate::http::{Client, Reply, TestApp, at, instant};

pub(crate) const ORG: &str = "Nursery";

/// A cluster with five batches, and a service.
pub(crate) struct Site {
    pub(crate) cluster: Cluster,
    pub(crate) database: String,
    pub(crate) nursery: Nursery,
}

/// A service with five batches in pages of two.
pub(crate) struct Nursery {
    app: TestApp,
    pub(crate) caller: Caller,
    pub(crate) client: Client,
}

impl Deref for Nursery {
    type Target = TestApp;

    fn deref(&self) -> &TestApp {
        &self.app
    }
}

impl Site {
    /// A cluster whose standbys are current, which the store knows.
    pub(crate) async fn start(read_from: ReadFrom) -> Self {
        Self::with(&Settings::default(), read_from).await
    }

    pub(crate) async fn with(settings: &Settings, read_from: ReadFrom) -> Self {
        let cluster = blocking(|| Cluster::start(settings, Replication::Asynchronous));
        let database = blocking(|| cluster.primary().fresh_database());
        let url = cluster.url(&database).parse().unwrap();
        let nursery = Nursery::open(&url, OpenOptions { read_from, ..OpenOptions::CREATE }).await;
        let site = Self { cluster, database, nursery };
        site.catch_up();
        let all_current = |hosts: &[HostHealth]| hosts.iter().all(|host| host.is_current);
        site.nursery.wait_for_hosts(all_current).await;
        site
    }

    /// Waits until the standbys have all data of the primary.
    pub(crate) fn catch_up(&self) {
        for standby in self.cluster.standbys() {
            blocking(|| standby.wait_to_catch_up_with(self.cluster.primary()));
        }
    }

    /// Pauses replication: the standbys get no new data.
    pub(crate) async fn pause_standbys(&self) {
        for standby in self.cluster.standbys() {
            blocking(|| standby.sql("postgres", "SELECT pg_wal_replay_pause()"));
            let paused =
                || blocking(|| standby.sql("postgres", "SELECT pg_get_wal_replay_pause_state()")) == "paused";
            until(async || paused()).await;
        }
    }
}

/// Serves a database in pages of two.
pub(crate) async fn serve(url: &DatabaseUrl, open: OpenOptions) -> TestApp {
    let config = Config { page_rows: 2, ..Config::default() };
    let options = ServeOptions { config, ..TestApp::options() };
    TestApp::open(Database::Url(url.clone()), options, open).await
}

impl Nursery {
    pub(crate) async fn open(url: &DatabaseUrl, open: OpenOptions) -> Self {
        let app = serve(url, open).await;
        let client = app.org(ORG).await;
        let org = app.store.org(ORG).await.unwrap().id;
        let batches: Vec<Batch> = (0..5).map(|number| batch(&format!("b{number}"), number)).collect();
        app.import(ORG, &batches).await;
        Self { app, caller: Caller { org, client: client.client_id() }, client }
    }

    /// Adds a batch after the others.
    pub(crate) async fn add(&self, id: &str) {
        self.import(ORG, &[batch(id, 1_000)]).await;
    }

    /// Gives one of the first five batches another comment.
    pub(crate) async fn correct(&self, id: &str, comment: &str) {
        self.import(ORG, &[Batch { comment: Some(comment.to_owned()), ..batch(id, 0) }]).await;
    }

    pub(crate) async fn add_credential(&self) -> Client {
        self.credential(ORG, None).await
    }

    /// The ids on one page that is not older than this version.
    pub(crate) async fn ids_since(&self, min_version: i64) -> Result<Vec<String>, StoreError> {
        self.page(1_000, min_version, None).await.map(|(ids, _)| ids)
    }

    pub(crate) async fn ids(&self) -> Vec<String> {
        self.ids_since(0).await.unwrap()
    }

    /// The ids on a page of the store, and where paging continues.
    pub(crate) async fn page(
        &self,
        rows: usize,
        min_version: i64,
        resume: Option<Resume>,
    ) -> Result<(Vec<String>, Option<Resume>), StoreError> {
        let request = PageRequest {
            range: Default::default(),
            resume,
            limit: PageLimit { rows, bytes: usize::MAX },
            body_prefix: "[",
            encoding: Encoding::Identity,
            min_version,
            now: self.now(),
        };
        let PageResult::Read::<(), Page>(mut page) = self.store.page(&self.caller, request, |_| None).await?
        else {
            panic!("an invalid credential")
        };
        let next = page.next.take();
        let batches: Vec<serde_json::Value> = serde_json::from_slice(&page.finish("]")).unwrap();
        Ok((batches.iter().map(|batch| batch["batch_id"].as_str().unwrap().to_owned()).collect(), next))
    }

    /// Waits until the store sees the hosts like this.
    pub(crate) async fn wait_for_hosts(&self, condition: impl Fn(&[HostHealth]) -> bool) {
        until(async || condition(&self.store.hosts())).await;
    }

    /// Waits until the store sees this host as up or down.
    pub(crate) async fn wait_for_host(&self, host: &Postgres, is_up: bool) {
        let name = format!("127.0.0.1:{}", host.port());
        let is_seen = |all: &[HostHealth]| all.iter().any(|seen| seen.host == name && seen.is_up == is_up);
        self.wait_for_hosts(is_seen).await;
    }

    pub(crate) async fn get_if_changed(&self, path: &str, token: &str, etag: &str) -> Reply {
        self.app.get_with(path, token, "if-none-match", etag).await
    }

    pub(crate) async fn auth(&self, client: &Client) -> Reply {
        self.app.post_form("/v2/auth", client.form()).await
    }
}

/// Runs a blocking call of the testbed next to the service, which runs on the same threads.
pub(crate) fn blocking<T, E: Debug>(call: impl FnOnce() -> Result<T, E>) -> T {
    tokio::task::block_in_place(call).unwrap()
}

/// The ids of every site, then these.
pub(crate) fn first_five_plus(more: &[&str]) -> Vec<String> {
    ["b0", "b1", "b2", "b3", "b4"].iter().chain(more).map(|id| (*id).to_owned()).collect()
}

/// A batch created this many seconds after the first.
pub(crate) fn batch(id: &str, secs: i64) -> Batch {
    at(id, instant("2026-01-01T00:00:00Z").plus_secs(secs))
}
